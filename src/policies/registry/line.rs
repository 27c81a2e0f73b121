//! What is being checked and loaded.
//!
//! What it does: has as many sets checked at a time as there are processes for it, in the order in which they came, and has what
//! is good loaded together, one batch after the other. Invariant: of one set, at most one form is checked; batches end in the
//! order in which they began.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures::future::{AbortHandle, BoxFuture, abortable};
use futures::stream::FuturesUnordered;

use super::known::Judged;
use crate::rego::lint::Report;
use crate::rego::program::Speaks;
use crate::rego::set::{Key, Set};
use crate::rego::unit::Unit;
use crate::workers::protocol::{Check, Checked};
use crate::workers::{CHECKS, Installed, Workers};

/// A form of a set that is to be judged.
pub(super) struct Judgement {
    /// Those of later forms have higher numbers.
    pub(super) number: u64,
    pub(super) set: Arc<Set>,
    pub(super) unit: Unit,
    /// What stands in for it if it is bad.
    pub(super) kept: Option<Unit>,
}

/// What was found of it.
pub(super) struct Finding {
    pub(super) judgement: Judgement,
    pub(super) checked: Checked,
    /// What was found of what stands in for it, where that was asked.
    pub(super) kept: Option<Checked>,
}

/// What is good and wants to be loaded: the form that was judged, or what stands in for it.
pub(super) struct Form {
    pub(super) judged: Judged,
    pub(super) unit: Arc<Unit>,
    pub(super) speaks: Speaks,
}

/// What came of a batch.
pub(super) type Loaded = Vec<(Form, Result<Arc<Installed>, Report>)>;

/// The line before the workers.
pub(super) struct Line {
    workers: Workers,
    queue: VecDeque<Judgement>,
    /// Ends with nothing where it was called off.
    pub(super) judging: FuturesUnordered<BoxFuture<'static, Option<Finding>>>,
    /// How to call it off.
    handles: BTreeMap<Key, AbortHandle>,
    good: Vec<Form>,
    /// One at most.
    pub(super) loading: FuturesUnordered<BoxFuture<'static, Loaded>>,
}

impl Line {
    pub(super) fn new(workers: Workers) -> Self {
        let (queue, handles, good) = Default::default();
        Self { workers, queue, judging: FuturesUnordered::new(), handles, good, loading: FuturesUnordered::new() }
    }

    /// Has a form judged in its turn.
    pub(super) fn join(&mut self, judgement: Judgement) {
        self.queue.push_back(judgement);
    }

    /// Calls off the judgement of a set.
    pub(super) fn leave(&mut self, key: &Key) {
        self.queue.retain(|judgement| judgement.set.key != *key);
        if let Some(handle) = self.handles.remove(key) {
            handle.abort();
        }
    }

    /// Has a form loaded.
    pub(super) fn load(&mut self, form: Form) {
        self.good.push(form);
    }

    /// Whether anything is loaded or about to be.
    pub(super) fn is_loading(&self) -> bool {
        !self.good.is_empty() || !self.loading.is_empty()
    }

    /// Begins what can be begun.
    pub(super) fn go_on(&mut self) {
        while self.judging.len() < CHECKS
            && let Some(judgement) = self.queue.pop_front()
        {
            let key = judgement.set.key.clone();
            let (judging, handle) = abortable(judge(self.workers.clone(), judgement));
            self.handles.insert(key, handle);
            self.judging.push(Box::pin(async { judging.await.ok() }));
        }
        if self.loading.is_empty() && !self.good.is_empty() {
            self.loading.push(Box::pin(load(self.workers.clone(), std::mem::take(&mut self.good))));
        }
    }
}

async fn judge(workers: Workers, judgement: Judgement) -> Finding {
    let checked = workers.check(&Check::of(judgement.unit.clone())).await;
    let mut kept = None;
    if !checked.report.errors.is_empty()
        && let Some(unit) = &judgement.kept
    {
        kept = Some(workers.check(&Check::of(unit.clone())).await);
    }
    Finding { judgement, checked, kept }
}

async fn load(workers: Workers, forms: Vec<Form>) -> Loaded {
    let units = forms.iter().map(|form| Arc::clone(&form.unit)).collect();
    let installed = workers.install(units).await;
    forms.into_iter().zip(installed).collect()
}
