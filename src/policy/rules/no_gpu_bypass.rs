//! `no-gpu-bypass`: no way to a GPU around its resource: `NVIDIA_VISIBLE_DEVICES`, or a hostPath to its device files,
//! without a GPU request.

use std::collections::HashSet;

use crate::policy::decision::RuleId;
use crate::policy::judge::Judged;
use crate::policy::rules::Draft;
use crate::workload::demand::Asker;
use crate::workload::{Container, Placed};

/// Host paths that hold GPU devices, or the folder of all devices. A last `*` stands for any ending.
const DEVICES: [&str; 8] =
    ["/dev", "/dev/nvidia*", "/dev/dri*", "/dev/kfd*", "/dev/dxg*", "/dev/davinci*", "/dev/accel*", "/dev/hl*"];

/// How many volumes of one template are named; templates of a Workflow share theirs.
const MOST_VOLUMES: usize = 16;

const VARIABLE: &str = "NVIDIA_VISIBLE_DEVICES";

pub(super) fn check(judged: &Judged<'_>) -> Vec<Draft> {
    // The request may stand in the other object, and the Pods are judged when they are made.
    if judged.template.declared_elsewhere {
        return Vec::new();
    }
    let asks = judged.demand.resources.iter().flat_map(|resource| &resource.asks);
    let asking: HashSet<Asker> = asks.map(|ask| ask.asker).collect();
    let containers = judged.template.containers.iter().enumerate();
    let containers = containers.filter(|(place, _)| !asking.contains(&Asker::Container(*place)));
    let mut drafts: Vec<Draft> = containers.filter_map(|(_, container)| variable(container)).collect();
    if judged.demand.resources.is_empty() {
        drafts.extend(judged.template.fields("volumes").flat_map(volumes).take(MOST_VOLUMES));
    }
    drafts
}

/// Why the rule finds nothing.
pub(super) fn passes(judged: &Judged<'_>) -> String {
    if judged.template.declared_elsewhere {
        return "its GPU request may stand in another object; the Pods are judged when they are made".to_owned();
    }
    format!("no container without a GPU request sets {VARIABLE}, and no volume holds device files")
}

fn variable(container: &Container<'_>) -> Option<Draft> {
    let piece = Placed::new(container.path.clone(), container.object);
    // Of several entries of one name the last one counts.
    let entry = piece.elements("env").filter(|entry| entry.value.text("name") == Some(VARIABLE)).last()?;
    let value = entry.value.text("value").unwrap_or_default();
    let hidden = entry.value.get("valueFrom").is_some();
    if !hidden && matches!(value.trim(), "" | "none" | "void") {
        return None;
    }
    let found = if hidden { "valueFrom" } else { value };
    Some(Draft {
        rule: RuleId::NoGpuBypass,
        field: entry.path.to_string(),
        found: found.to_owned(),
        wanted: Some("none".to_owned()),
        message: format!("container {:?} makes GPUs visible by {VARIABLE} ({found}) and asks for none", container.name),
        fix: "ask for a GPU resource and remove the variable, or set it to none".to_owned(),
        repair: Vec::new(),
        about: format!("{}={found}", container.name),
    })
}

fn volumes(list: Placed<'_>) -> impl Iterator<Item = Draft> {
    let elements = list.value.as_array().unwrap_or_default().iter().enumerate();
    elements.filter_map(move |(index, volume)| {
        let path = volume.at(&["hostPath", "path"])?.as_str()?;
        is_device(path).then(|| Draft {
            rule: RuleId::NoGpuBypass,
            field: list.path.index(index).key("hostPath").key("path").to_string(),
            found: path.to_owned(),
            wanted: None,
            message: format!("the volume mounts {path}, where GPU device files are, and no container asks for a GPU"),
            fix: "ask for a GPU resource and remove the volume".to_owned(),
            repair: Vec::new(),
            about: format!("volume={path}"),
        })
    })
}

/// Whether a host path is one of the devices, `//dev/./nvidia0` and its like included.
fn is_device(path: &str) -> bool {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let path = format!("/{}", parts.join("/"));
    DEVICES.iter().any(|device| match device.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == *device,
    })
}
