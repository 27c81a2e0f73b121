//! Rego policies: sets of modules from ConfigMaps or files, checked, compiled, evaluated.
//!
//! What it does: everything on Rego that depends on its arguments alone. [`set`] is what an author wrote, [`mod@unit`] the set with
//! its libraries, [`lint`] what is wrong with it, [`program`] what can be asked, [`outcome`] the answer, [`testing`] whether its
//! author's own tests hold, [`routing`] whether what it matches is sent at all. It runs in worker processes of their own, since the engine can be ended by what it evaluates.
//! Invariant: an error of a policy is a value that names the set, and never silence.

pub mod engine;
pub mod input;
pub mod lint;
pub mod matching;
pub mod outcome;
pub mod problem;
pub mod program;
pub mod routing;
pub mod screen;
pub mod set;
pub mod state;
pub mod testing;
pub mod unit;
pub mod value;
