//! The outcome as workflow commands of GitHub Actions, which become annotations of the changed lines.

use std::fmt::Write as _;

use super::Source;
use super::outcome::Outcome;
use crate::manifest::Located;
use crate::policy::decision::{Action, Spared};

/// The commands, one a line.
pub(super) fn report(sources: &[Source], outcome: &Outcome) -> String {
    let mut text = String::new();
    let mut command = |source: usize, level: &str, line: usize, column: usize, title: &str, message: &str| {
        let file = property(sources.get(source).map_or("", |source| source.name.as_str()).trim_start_matches("./"));
        let (title, message) = (property(title), data(message));
        let _ = writeln!(text, "::{level} file={file},line={line},col={column},title={title}::{message}");
    };
    for (source, mistake) in &outcome.mistakes {
        command(*source, "error", mistake.line, mistake.column, "slicegate", &mistake.message);
    }
    for judged in &outcome.judged {
        let subject = judged.subject();
        if let Some(reason) = &judged.refusal {
            command(judged.source, "error", judged.located.line, judged.located.column, &subject, reason);
        }
        for (finding, Located { line, column, .. }) in &judged.findings {
            let level = match finding.action {
                Action::Deny => "error",
                Action::Warn => "warning",
                Action::DryRun | Action::Off => "notice",
            };
            let fix = if finding.fix.is_empty() { String::new() } else { format!("\n{}", finding.fix) };
            let exempted = match &finding.spared {
                Some(Spared::Exempted(reason)) => format!("\nexempted: {reason}"),
                _ => String::new(),
            };
            let message = format!("{subject}: {}{fix}{exempted}", finding.message);
            command(judged.source, level, *line, *column, finding.rule.as_str(), &message);
        }
        for (note, Located { line, column, .. }) in &judged.notes {
            command(judged.source, "warning", *line, *column, &subject, &note.text);
        }
    }
    text
}

fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
