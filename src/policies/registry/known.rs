//! What is known of one set.
//!
//! Invariant: what is in force is never of an earlier form than what was in force before.

use std::sync::Arc;

use crate::policies::Active;
use crate::policy::decision::Action;
use crate::rego::lint::Report;
use crate::rego::program::Speaks;
use crate::rego::routing::{self, Routes, Verdict};
use crate::rego::set::{Role, Set};
use crate::rego::state::{self, SetReport, State};
use crate::rego::unit::Unit;
use crate::workers::Installed;

/// What is known of one set.
#[derive(Default)]
pub(super) struct Known {
    /// The digest of what is judged or is to be; empty where that has to be done again.
    pub(super) wanted: String,
    /// The number of that judgement.
    pub(super) number: u64,
    /// Whether it waits for a library before it can be judged.
    pub(super) waits: bool,
    /// What was judged last.
    pub(super) judged: Option<Judged>,
    /// What is in force.
    pub(super) in_force: Option<InForce>,
    /// What comes of judgements below this number is too late.
    floor: u64,
    /// Whether what is in force is sent anything, once that was asked.
    routing: Option<Verdict>,
}

/// A form of a set, and what was found of it.
pub(super) struct Judged {
    /// The number of the judgement.
    pub(super) number: u64,
    pub(super) set: Arc<Set>,
    /// Its digest, with its libraries.
    pub(super) digest: String,
    pub(super) report: Report,
}

/// What is in force of a set.
pub(super) struct InForce {
    pub(super) unit: Arc<Unit>,
    pub(super) speaks: Speaks,
    /// Nothing for a library, which nobody asks.
    pub(super) installed: Option<Arc<Installed>>,
}

impl Known {
    /// A set that is new. What comes of earlier judgements is not of it.
    pub(super) fn after(number: u64) -> Self {
        Self { floor: number, ..Self::default() }
    }

    /// Whether something is to be told of it yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.waits || self.judged.as_ref().is_none_or(|judged| judged.number != self.number)
    }

    /// Whether what comes of this judgement can be put in force.
    pub(super) fn takes(&self, number: u64) -> bool {
        number >= self.floor
    }

    /// Puts a form in force that such a judgement found good.
    pub(super) fn put_in_force(&mut self, number: u64, form: InForce) {
        self.floor = number.saturating_add(1);
        self.in_force = Some(form);
        self.forget_routing();
    }

    /// Other things are sent from now on.
    pub(super) fn forget_routing(&mut self) {
        self.routing = None;
    }

    /// What is said of it; nothing before it was judged once.
    pub(super) fn report(&mut self, routes: Option<&Routes>) -> Option<SetReport> {
        let judged = self.judged.as_ref()?;
        let in_force = self.in_force.as_ref();
        if let (None, Some(in_force), Some(routes)) = (&self.routing, in_force, routes) {
            self.routing = Some(in_force.routing(routes));
        }
        let routing = self.routing.clone().filter(|_| in_force.is_some()).unwrap_or_default();
        let state = match in_force {
            Some(in_force) if in_force.unit.digest != judged.digest => State::LastGood,
            Some(_) if routing.none => State::NotRouted,
            Some(_) => State::Loaded,
            None => State::Rejected,
        };
        let shown = in_force.map_or(judged.set.as_ref(), |in_force| &in_force.unit.set);
        Some(SetReport {
            key: judged.set.key.clone(),
            digest: in_force.map_or(&judged.digest, |in_force| &in_force.unit.digest).clone(),
            state,
            action: shown.settings.action,
            engine: state::engine(shown.settings.syntax),
            modules: in_force.map_or(0, |in_force| in_force.unit.set.modules.len()),
            errors: judged.report.errors.clone(),
            warnings: judged.report.warnings.iter().cloned().chain(routing.warnings).collect(),
            in_force: in_force.map(|in_force| Arc::clone(&in_force.unit)),
            offered: judged.digest.clone(),
        })
    }

    /// What requests are held against; nothing where nobody is asked.
    pub(super) fn active(&self, home: &str) -> Option<Active> {
        let judged = self.judged.as_ref()?;
        let name = judged.set.shown_name(home).into();
        match &self.in_force {
            Some(InForce { unit, speaks, installed: Some(installed) }) => Some(Active {
                name,
                settings: Arc::new(unit.set.settings.clone()),
                digest: unit.digest.as_str().into(),
                speaks: *speaks,
                installed: Some(Arc::clone(installed)),
            }),
            Some(_) => None,
            // Nobody knows what it would have said: it obeys `on-error` in the call that may refuse.
            None => (judged.set.role == Role::Policy).then(|| Active {
                name,
                settings: Arc::new(judged.set.settings.clone()),
                digest: judged.digest.as_str().into(),
                speaks: Speaks { validates: true, mutates: false },
                installed: None,
            }),
        }
    }
}

impl InForce {
    /// Whether anything that it matches is sent; nothing where it is not asked anyway.
    fn routing(&self, routes: &Routes) -> Verdict {
        let settings = &self.unit.set.settings;
        if self.installed.is_none() || settings.action == Action::Off {
            return Verdict::default();
        }
        routing::verdict(routes, &settings.matches, self.speaks)
    }
}
