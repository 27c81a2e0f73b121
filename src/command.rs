//! The verbs of the command line.

use std::process::ExitCode;

use crate::args::{Args, Verb};
use crate::workers;
use clap::CommandFactory as _;
use clap::error::ErrorKind;

mod certs;
mod check;
mod completions;
mod descriptors;
mod dev;
mod explain;
mod schema;
mod serve;
mod test;
mod version;

/// Does what the command line says.
///
/// # Errors
/// What went wrong at run time, with its causes; mistakes in the command line are told before this is called.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Serve(options) => match options.contradiction() {
            Some(contradiction) => Args::command().error(ErrorKind::ArgumentConflict, contradiction).exit(),
            None => serve::run(&options),
        },
        Verb::Check(options) => check::run(&options),
        Verb::Explain(options) => explain::run(&options),
        Verb::Test(options) => test::run(&options),
        Verb::Certs(options) => certs::run(&options),
        Verb::Schema(_) => schema::run(),
        Verb::Completions(options) => completions::run(&options),
        Verb::Version(options) => version::run(&options),
        Verb::RegoWorker(options) => workers::child::run(options.settings()),
    }
}

/// Whether an error says no more than that nobody reads any more.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let broken = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|cause| cause.downcast_ref()).any(broken)
}
