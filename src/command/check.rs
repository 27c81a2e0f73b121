//! `slicegate check`: judges manifests as the cluster would.
//!
//! What it does: reads manifests, makes of each object the review that the API server would send, has it answered by the
//! code that serves, and shows the outcome. Invariant: an object that could not be judged never counts as one that is let
//! through.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::args::{Check, CheckFormat, Color, FailOn};
use crate::files::replace::{self, Access, File};
use crate::policy::decision::Action;

mod defaults;
mod diff;
mod fix;
mod github;
pub(super) mod input;
pub(super) mod json;
pub(super) mod judge;
mod junit;
mod outcome;
mod progress;
pub(super) mod rules;
mod sarif;
pub(super) mod subject;
mod text;

use input::{Source, read};
use rules::{Ruled, UNUSABLE};

use outcome::Outcome;

/// Judges what the paths hold.
pub(super) fn run(options: &Check) -> anyhow::Result<ExitCode> {
    let sources = match read(&options.paths) {
        Ok(sources) => sources,
        Err(why) => return refuse(&why),
    };
    let objects = input::objects(&sources);
    if objects.is_empty() {
        return refuse(&input::emptiness(&sources));
    }
    let ruled = match Ruled::start(&options.judged_by, &objects.facts) {
        Ok(ruled) => ruled,
        Err(error) => return refuse(&format!("{error:#}")),
    };
    let mut outcome = judge::all(&ruled, objects, !options.quiet);
    let mut repaired = Vec::new();
    if options.fix {
        repaired = fix::repair(&sources, &outcome);
        mend(options, &sources, &repaired)?;
        let objects = input::objects(&repaired);
        outcome = judge::all(&ruled, objects, !options.quiet);
    }
    let sources = if options.fix { &repaired } else { &sources };
    match show(options, sources, &outcome) {
        Ok(()) => Ok(conclude(options, &outcome)),
        // A report that cannot be written is no verdict.
        Err(error) if !super::is_closed_pipe(&error) => refuse(&format!("{error:#}")),
        Err(error) => Err(error),
    }
}

/// Writes repairs into their files, or shows them.
fn mend(options: &Check, sources: &[Source], repaired: &[Source]) -> anyhow::Result<()> {
    for (before, after) in sources.iter().zip(repaired).filter(|(before, after)| before.text != after.text) {
        match &before.path {
            Some(path) if options.write => {
                // What a link leads to is changed, and the link stays.
                let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
                replace::write(&[File { path: &target, access: Access::Kept, text: &after.text }]).map_err(
                    |(path, error)| anyhow::Error::new(error).context(format!("cannot write {}", path.display())),
                )?;
                writeln!(std::io::stderr(), "repaired {}", path.display()).context("cannot write to standard error")?;
            }
            _ => {
                let diff = diff::unified(&before.name, &before.text, &after.text, colored(options.color));
                if options.format == CheckFormat::Text {
                    std::io::stdout().lock().write_all(diff.as_bytes()).context("cannot write to standard output")?;
                } else {
                    std::io::stderr().lock().write_all(diff.as_bytes()).context("cannot write to standard error")?;
                }
            }
        }
    }
    Ok(())
}

fn show(options: &Check, sources: &[Source], outcome: &Outcome) -> anyhow::Result<()> {
    let written = match options.format {
        CheckFormat::Text => text::report(sources, outcome, options.quiet, colored(options.color)),
        CheckFormat::Json => json::report(sources, outcome)?,
        CheckFormat::Sarif => sarif::report(sources, outcome)?,
        CheckFormat::Junit => junit::report(sources, outcome)?,
        CheckFormat::Github => github::report(sources, outcome),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(written.as_bytes()).and_then(|()| out.flush()).context("cannot write to standard output")
}

fn conclude(options: &Check, outcome: &Outcome) -> ExitCode {
    let least = if options.fail_on == FailOn::Warn { Action::Warn } else { Action::Deny };
    if !outcome.mistakes.is_empty() {
        ExitCode::from(UNUSABLE)
    } else if outcome.judged.iter().any(|judged| judged.worst() >= least) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Whether colours are wanted and can be shown.
pub(super) fn colored(when: Color) -> bool {
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    }
}

pub(super) fn refuse(why: &str) -> anyhow::Result<ExitCode> {
    writeln!(std::io::stderr(), "slicegate: {why}").context("cannot write to standard error")?;
    Ok(ExitCode::from(UNUSABLE))
}
