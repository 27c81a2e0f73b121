//! slicegate
pub mod args;
pub mod cluster;
pub mod command;
pub mod config;
pub mod duration;
pub mod facts;
pub mod feed;
pub mod files;
pub mod json;
pub mod logging;
pub mod metrics;
pub mod policy;
pub mod quantity;
pub mod review;
pub mod server;
pub mod shutdown;
pub mod workload;
