//! How many GPUs a template asks for, by the scheduler's rule.
//!
//! What it does: reads `limits` and `requests` of every container and adds them up as `PodRequests` of
//! `k8s.io/component-helpers/resource` does. Limits are read too, since Pod defaulting copies them to requests for Pods only
//! and never for templates; where both are set and differ, the greater counts.
//!
//! Invariant: what cannot be read is listed in [`Demand::invalid`] and counts as at least one, so that it is never taken for
//! a workload that asks for nothing. The work grows with the number of quantities and no faster.

use std::collections::HashMap;

use crate::json::Json;
use crate::quantity::{CountError, Quantity, QuantityError};
use crate::workload::{Placed, Role, Template};

/// What a template asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demand<'r> {
    /// The GPU resources with a demand above zero, in the order in which the containers name them.
    pub resources: Vec<ResourceDemand<'r>>,
    /// GPU quantities that are not whole, negative, or none at all.
    pub invalid: Vec<Invalid<'r>>,
}

/// The demand for one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceDemand<'r> {
    /// The resource's name.
    pub resource: &'r str,
    /// Those who ask, with a count above zero.
    pub asks: Vec<Ask<'r>>,
    /// What the whole Pod holds at once.
    pub total: u128,
}

/// Who asks for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asker {
    /// The container at this place in the template's list.
    Container(usize),
    /// The Pod as a whole, by its pod-level resources.
    Pod,
    /// The overhead of its runtime class.
    Overhead,
}

/// The greatest value that one asker names for one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask<'r> {
    /// Who asks.
    pub asker: Asker,
    /// How many units.
    pub count: u128,
    /// The value, where it stands.
    pub value: Placed<'r>,
}

/// A GPU quantity that does not count devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid<'r> {
    /// Who asks.
    pub asker: Asker,
    /// The resource's name.
    pub resource: &'r str,
    /// The value, where it stands.
    pub value: Placed<'r>,
    /// What is wrong with it.
    pub why: Why,
}

/// What is wrong with a GPU quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// It cannot be read.
    Unreadable(QuantityError),
    /// It can, but counts no whole devices.
    Uncountable(Quantity, CountError),
}

impl<'r> Demand<'r> {
    /// Adds up a template. `is_gpu` tells which resources count.
    pub fn of(template: &Template<'r>, is_gpu: impl Fn(&str) -> bool) -> Self {
        let mut reader = Reader::default();
        for (place, container) in template.containers.iter().enumerate() {
            let asker = Asker::Container(place);
            if let Some(resources) = &container.resources {
                reader.read_resources(asker, resources, &is_gpu);
            }
            if let Some((resource, value)) = &container.gpu
                && is_gpu(resource)
            {
                reader.read(asker, resource, value.clone());
            }
        }
        if let Some(resources) = template.field("resources") {
            reader.read_resources(Asker::Pod, &resources, &is_gpu);
        }
        for level in &template.levels {
            for (resource, value) in level.entries("overhead").filter(|(resource, _)| is_gpu(resource)) {
                reader.read(Asker::Overhead, resource, value);
            }
        }
        let mut demand = reader.demand;
        for resource in &mut demand.resources {
            resource.total = Sum::of(template, &resource.asks).total();
        }
        demand
    }
}

/// Gathers what the askers ask for, one asker after the other.
#[derive(Default)]
struct Reader<'r> {
    demand: Demand<'r>,
    /// Places in the demand, by resource.
    known: HashMap<&'r str, usize>,
}

impl<'r> Reader<'r> {
    fn read_resources(&mut self, asker: Asker, resources: &Placed<'r>, is_gpu: &impl Fn(&str) -> bool) {
        for side in ["limits", "requests"] {
            for (resource, value) in resources.entries(side).filter(|(resource, _)| is_gpu(resource)) {
                self.read(asker, resource, value);
            }
        }
    }

    fn read(&mut self, asker: Asker, resource: &'r str, value: Placed<'r>) {
        let (count, why) = match Quantity::from_json(value.value) {
            Ok(quantity) => match quantity.count() {
                Ok(count) => (count, None),
                Err(error) => (quantity.ceil().unwrap_or(1), Some(Why::Uncountable(quantity, error))),
            },
            Err(error) => (1, Some(Why::Unreadable(error))),
        };
        if let Some(why) = why {
            self.demand.invalid.push(Invalid { asker, resource, value: value.clone(), why });
        }
        if count == 0 {
            return;
        }
        let ask = Ask { asker, count, value };
        let resources = &mut self.demand.resources;
        let Some(known) = self.known.get(resource).and_then(|place| resources.get_mut(*place)) else {
            self.known.insert(resource, resources.len());
            resources.push(ResourceDemand { resource, asks: vec![ask], total: 0 });
            return;
        };
        // An asker is read to its end before the next one.
        match known.asks.last_mut().filter(|known| known.asker == asker) {
            None => known.asks.push(ask),
            Some(known) if known.count < count => *known = ask,
            Some(_) => {}
        }
    }
}

impl Ask<'_> {
    /// The value as its author wrote it.
    pub fn spelling(&self) -> String {
        spelling(self.value.value)
    }
}

/// A JSON value as its author wrote it, for a message.
pub fn spelling(value: &Json<'_>) -> String {
    match value {
        Json::String(text) => text.to_string(),
        Json::Number(literal) => (*literal).to_owned(),
        other => other.to_value().to_string(),
    }
}

/// How the demand of a Pod for one resource, or for those of one pool, adds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// The most that init containers hold at a time, each with the sidecars that were started before it.
    pub init: u128,
    /// What the containers hold.
    pub run: u128,
    /// What the sidecars hold.
    pub sidecars: u128,
    /// The Pod's own resources, which are a lower bound.
    pub pod: u128,
    /// The overhead, on top.
    pub overhead: u128,
}

impl Sum {
    /// Adds up asks in the order of the containers.
    pub fn of(template: &Template<'_>, asks: &[Ask<'_>]) -> Self {
        let of = |asker| asks.iter().find(|ask| ask.asker == asker).map_or(0, |ask| ask.count);
        let mut sum = Self { pod: of(Asker::Pod), overhead: of(Asker::Overhead), ..Self::default() };
        for ask in asks {
            let Asker::Container(place) = ask.asker else { continue };
            match template.containers.get(place).map(|container| container.role) {
                Some(Role::Init) => sum.init = sum.init.max(sum.sidecars.saturating_add(ask.count)),
                Some(Role::Sidecar) => {
                    sum.sidecars = sum.sidecars.saturating_add(ask.count);
                    sum.init = sum.init.max(sum.sidecars);
                }
                _ => sum.run = sum.run.saturating_add(ask.count),
            }
        }
        sum
    }

    /// What the Pod holds at once: the greater of the init phase and the run phase (containers and all sidecars), at least
    /// its pod-level resources, and the overhead on top.
    pub fn total(self) -> u128 {
        let containers = self.init.max(self.run.saturating_add(self.sidecars));
        containers.max(self.pod).saturating_add(self.overhead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::workload::path::Path;
    use crate::workload::template::pod_template;

    fn total_of(spec: &str) -> (u128, usize) {
        let text = format!(r#"{{"spec":{spec}}}"#);
        let pod = json::parse(text.as_bytes()).unwrap();
        let template = pod_template(&pod, &Placed::new(Path::root(), &pod));
        let demand = Demand::of(&template, |resource| resource == "g");
        (demand.resources.first().map_or(0, |resource| resource.total), demand.invalid.len())
    }

    fn asks(value: &str) -> String {
        format!(r#"{{"resources":{{"limits":{{"g":{value},"cpu":"3"}}}}}}"#)
    }

    #[test]
    fn phases_add_up_as_the_scheduler_does() {
        let (one, two) = (asks("1"), asks("\"2\""));
        let sidecar = one.replacen('{', r#"{"restartPolicy":"Always","#, 1);
        for (spec, total) in [
            (format!(r#"{{"containers":[{one},{two}]}}"#), 3),
            (format!(r#"{{"initContainers":[{two}],"containers":[{one}]}}"#), 2),
            (format!(r#"{{"initContainers":[{sidecar},{two}],"containers":[{one}]}}"#), 3),
            (format!(r#"{{"initContainers":[{two},{sidecar}],"containers":[{one}]}}"#), 2),
            (format!(r#"{{"containers":[{one}],"ephemeralContainers":[{one}]}}"#), 2),
            (format!(r#"{{"containers":[{one}],"resources":{{"requests":{{"g":"5"}}}},"overhead":{{"g":1}}}}"#), 6),
            (r#"{"containers":[{"resources":{"limits":{"g":"0"}}}]}"#.to_owned(), 0),
            (r#"{"containers":null}"#.to_owned(), 0),
        ] {
            assert_eq!(total_of(&spec), (total, 0), "{spec}");
        }
    }

    #[test]
    fn the_greater_of_limit_and_request_counts() {
        let spec = r#"{"containers":[{"resources":{"limits":{"g":"1"},"requests":{"g":"2"}}}]}"#;
        assert_eq!(total_of(spec), (2, 0));
    }

    #[test]
    fn what_cannot_be_read_is_never_nothing() {
        for (value, total) in [("\"two\"", 1), ("\"-1\"", 1), ("\"1999999u\"", 2), ("[]", 1), ("true", 1)] {
            assert_eq!(total_of(&format!(r#"{{"containers":[{}]}}"#, asks(value))), (total, 1), "{value}");
        }
    }
}
