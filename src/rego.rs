//! Rego policies: sets of modules from ConfigMaps or files, checked, compiled, evaluated.
//!
//! What it does: everything on Rego that depends on its arguments alone. It runs in worker processes of their own, since the
//! engine can be ended by what it evaluates. Invariant: an error of a policy is a value that names the set, and never silence.

pub mod problem;
