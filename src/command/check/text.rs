//! The outcome for people: the line of the file, what is wrong with it, and what to do.

use std::fmt::Write as _;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use super::outcome::{Judged, Outcome};
use super::{Source, diff};
use crate::manifest::Located;
use crate::policy::decision::{Action, Spared};
use crate::review::text::item;

/// The report.
pub(super) fn report(sources: &[Source], outcome: &Outcome, quiet: bool, colored: bool) -> String {
    let mut text = String::new();
    for (source, mistake) in &outcome.mistakes {
        let Some(source) = sources.get(*source) else { continue };
        let located = at(&source.text, mistake.line, mistake.column);
        let group = Level::ERROR.primary_title(item(&mistake.message));
        text.push_str(&shown(source, 0..source.text.len(), &located, group, None, colored));
    }
    for judged in &outcome.judged {
        if quiet && judged.worst() < Action::Warn {
            continue;
        }
        let Some(source) = sources.get(judged.source) else { continue };
        object(source, judged, quiet, colored, &mut text);
    }
    if !quiet {
        let _ = writeln!(text, "{}", sum(outcome));
    }
    text
}

fn object(source: &Source, judged: &Judged, quiet: bool, colored: bool, text: &mut String) {
    let place = format!("{}:{}", source.name, judged.located.line);
    let (on, off) = match (judged.worst(), colored) {
        (_, false) => ("", ""),
        (Action::Deny, _) => ("\x1b[1;31m", "\x1b[0m"),
        (Action::Warn, _) => ("\x1b[1;33m", "\x1b[0m"),
        _ => ("\x1b[32m", "\x1b[0m"),
    };
    let _ = writeln!(text, "{on}{}{off} {} ({place})", judged.verdict(), item(&judged.subject()));
    let range = judged.document.start..judged.document.end;
    if let Some(reason) = &judged.refusal {
        let title = Level::ERROR.primary_title(item(reason));
        text.push_str(&shown(source, range.clone(), &judged.located, title, None, colored));
    }
    for (finding, located) in &judged.findings {
        let level = match finding.action {
            Action::Deny => Level::ERROR,
            Action::Warn => Level::WARNING,
            Action::DryRun | Action::Off => Level::NOTE,
        };
        let field =
            if located.exact || finding.field.is_empty() { String::new() } else { format!("{}: ", finding.field) };
        let why = match &finding.spared {
            Some(Spared::Exempted(reason)) => format!(" (exempted: {reason})"),
            _ => String::new(),
        };
        let title = level.primary_title(item(&format!("{field}{}{why}", finding.message))).id(finding.rule.to_string());
        let help = Some(finding.fix.as_str()).filter(|fix| !fix.is_empty());
        text.push_str(&shown(source, range.clone(), located, title, help, colored));
    }
    for (note, located) in &judged.notes {
        let title = Level::WARNING.primary_title(item(&note.text));
        text.push_str(&shown(source, range.clone(), located, title, None, colored));
    }
    if !quiet && !judged.changes.is_empty() {
        let _ = writeln!(text, "  would be completed when it is created:");
        text.push_str(&diff::added(&judged.changes, colored));
    }
}

/// One complaint with the line that it is about.
fn shown(
    source: &Source,
    range: std::ops::Range<usize>,
    located: &Located,
    title: annotate_snippets::Title<'_>,
    help: Option<&str>,
    colored: bool,
) -> String {
    // Only the lines that are shown, since a document may be a list of thousands of objects.
    let document = source.text.get(range.clone()).unwrap_or_default();
    let (start, end) = (located.span.start.max(range.start), located.span.end.max(located.span.start).max(range.start));
    let (start, end) = (start.saturating_sub(range.start), end.saturating_sub(range.start).min(document.len()));
    let from = document.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |end| end.saturating_add(1));
    let to =
        document.get(end..).and_then(|rest| rest.find('\n')).map_or(document.len(), |rest| end.saturating_add(rest));
    let lines = document.get(from..to).unwrap_or_default();
    let span = start.saturating_sub(from).min(lines.len())..end.saturating_sub(from).min(lines.len());
    let snippet = Snippet::source(lines).line_start(located.line).path(source.name.as_str());
    let group: Group<'_> = title.element(snippet.annotation(AnnotationKind::Primary.span(span)));
    let help = help.map(item);
    let group = match &help {
        Some(help) => group.element(Level::HELP.message(help)),
        None => group,
    };
    let renderer = if colored { Renderer::styled() } else { Renderer::plain() };
    format!("{}\n", renderer.render(&[group]))
}

/// A place by its line and column.
fn at(text: &str, line: usize, column: usize) -> Located {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    let inside = text.get(before..).unwrap_or_default().chars().take(column.saturating_sub(1));
    let start = inside.map(char::len_utf8).sum::<usize>().saturating_add(before).min(text.len());
    Located { line, column, span: start..start, exact: true }
}

fn sum(outcome: &Outcome) -> String {
    let parts = ["denied", "warned", "allowed"].map(|verdict| format!("{} {verdict}", outcome.count(verdict)));
    let objects = match outcome.judged.len() {
        1 => "1 object".to_owned(),
        many => format!("{many} objects"),
    };
    let unread = match outcome.mistakes.len() {
        0 => String::new(),
        1 => "; 1 text cannot be read".to_owned(),
        many => format!("; {many} texts cannot be read"),
    };
    format!("{objects}: {}{unread}", parts.join(", "))
}
