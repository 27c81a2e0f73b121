//! `slicegate schema`.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;

use crate::config::schema::schema;

/// Prints the schema of the configuration.
pub(super) fn run() -> anyhow::Result<ExitCode> {
    let text = serde_json::to_string_pretty(&schema())?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}
