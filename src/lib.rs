//! slicegate
pub mod config;
pub mod facts;
pub mod json;
pub mod policy;
pub mod quantity;
pub mod review;
pub mod workload;
