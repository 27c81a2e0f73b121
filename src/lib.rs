//! slicegate: the admission control of shared GPU pools on Kubernetes.
//!
//! # Map
//!
//! Data flows one way: bytes, review, workload, decision, response. A request enters at [`server::routes`], is taken through
//! its steps in [`server::admit`], and is decided by [`policy::decide`], the only way to a verdict. A write of a policy or of the
//! configuration enters there too and is judged in [`server::guard`].
//!
//! The pure core decides from its arguments alone:
//!
//! - [`json`]: JSON text as an exact tree; [`quantity`]: Kubernetes quantities, exactly; `names`: what is a name.
//! - [`manifest`]: text of manifests to the objects that kubectl would send, and back to the place in the text.
//! - [`review`]: bytes to a request; a decision to bytes, its patch tried before it is sent.
//! - [`workload`]: one normal form for every kind that carries Pod templates: where they stand, what they demand, declare and
//!   where they may run.
//! - [`facts`]: what is known of the cluster; [`config`]: what the platform team says.
//! - [`policy`]: the rules, one file each, what existed before, exemptions, mutation, what policy sets said and add.
//! - [`rego`]: policy sets: what an author wrote, what is wrong with it, the engine, what its rules say, its tests.
//!
//! The shell does the rest:
//!
//! - [`server`]: TLS, limits, routes, the admin port, what all parts share; [`metrics`], [`logging`], [`shutdown`].
//! - [`policies`]: which sets are in force, and how they change; [`workers`]: the processes that evaluate them.
//! - [`feed`]: the interface by which a watch hands on what it learned; [`cluster`] and [`files`] are the two watches.
//! - [`args`], [`duration`] and [`command`]: the command line; [`certificates`]: authorities and what they
//!   sign; [`version`].
//!
//! # Invariants
//!
//! - The pure core names nothing of the shell: no runtime, client, file, clock or log. The shell may use all of the core.
//! - One request sees one configuration, one state of the policy sets and one of facts.
//! - A policy set can add to a verdict and take nothing away; its errors, and the end of the process that runs it, are its own.
//! - No panic is reachable from input; what cannot be judged is refused with its uid.
//! - What a rule says about an object does not depend on the order of its keys.
//!
//! Tests under `tests/core` hold these.

pub mod args;
pub mod certificates;
pub mod cluster;
pub mod command;
pub mod config;
pub mod duration;
pub mod facts;
pub mod feed;
pub mod files;
pub mod json;
pub mod logging;
pub mod manifest;
pub mod metrics;
mod names;
pub mod policies;
pub mod policy;
pub mod quantity;
pub mod rego;
pub mod review;
pub mod server;
pub mod shutdown;
pub mod version;
pub mod workers;
pub mod workload;
