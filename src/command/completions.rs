//! `slicegate completions`.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use crate::args::{Args, Completions};

/// Prints the completions of a shell, without what is hidden from its users.
pub(super) fn run(options: &Completions) -> anyhow::Result<ExitCode> {
    let whole = Args::command();
    let name = "slicegate";
    let shown: Vec<clap::Command> = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned().collect();
    let mut command = clap::Command::new(name).version(env!("CARGO_PKG_VERSION")).subcommands(shown);
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut command, name, &mut text);
    let mut out = std::io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush()).context("cannot write to standard output")?;
    Ok(ExitCode::SUCCESS)
}
