//! The program: reads the command line, does what it says, and says how it went.

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use slicegate::args::Args;
use slicegate::command;

fn main() -> ExitCode {
    match command::run(Args::parse()) {
        Ok(code) => code,
        // Whoever reads has seen enough, as `| head` does; that is how a shell tells of it.
        Err(error) if command::is_closed_pipe(&error) => ExitCode::from(141),
        Err(error) => {
            // Where standard error is gone there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "slicegate: {error:#}");
            ExitCode::FAILURE
        }
    }
}
