//! The answer to a write of what verdicts are made by.
//!
//! What it does: writes a refusal with each mistake and the line of text in which it stands. Invariant: that of all answers:
//! bounded, harmless, and with the request's uid.

use super::response::{Audit, Cause, Details, MAX_CAUSES, Response, Status, status, write};
use crate::review::text;

/// The most characters of a line of a policy's text.
const MAX_EXCERPT: usize = 200;

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// The name of the ConfigMap.
    pub name: String,
    /// What refuses the write.
    pub complaints: Vec<Complaint>,
    /// What its author should know.
    pub warnings: Vec<String>,
    /// The digest of what is written, where there is one.
    pub digest: String,
}

/// One reason to refuse.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Complaint {
    /// The key of the ConfigMap; empty where it is about all of it.
    pub key: String,
    /// The place and what is wrong there.
    pub message: String,
    /// The line of text, and the column in it, from 1; 0 where it is about the line as a whole.
    pub excerpt: Option<(String, usize)>,
}

impl Answer {
    /// Whether the write is let through.
    pub fn allowed(&self) -> bool {
        self.complaints.is_empty()
    }
}

impl Complaint {
    /// A complaint about the whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The line of text with a mark below the column, as far as they fit.
    fn shown(&self) -> Vec<String> {
        let Some((line, column)) = &self.excerpt else { return Vec::new() };
        let start = line.chars().take_while(|character| character.is_whitespace()).count();
        // A tab would be escaped, and the mark would stand elsewhere.
        let plain = |character: char| if character == '\t' { ' ' } else { character };
        let kept: String = line.trim().chars().take(MAX_EXCERPT).map(plain).collect();
        if kept.is_empty() {
            return Vec::new();
        }
        let place = column.checked_sub(1).and_then(|column| column.checked_sub(start));
        let mark = place.filter(|place| *place < kept.chars().count() && kept == text::item(&kept));
        let more = if line.trim().chars().count() > MAX_EXCERPT { "…" } else { "" };
        let line = format!("  | {kept}{more}");
        std::iter::once(line).chain(mark.map(|place| format!("  | {}^", " ".repeat(place)))).collect()
    }
}

/// The answer as an AdmissionReview.
pub fn encode(uid: &str, answer: &Answer) -> Vec<u8> {
    let digest = answer.digest.as_str();
    write(&Response {
        status: (!answer.allowed()).then(|| refusal(answer)),
        warnings: text::warnings(answer.warnings.iter().cloned()),
        audit_annotations: (!digest.is_empty()).then_some(Audit::Guard { digest }),
        ..Response::new(uid, answer.allowed())
    })
}

fn refusal(answer: &Answer) -> Status<'_> {
    let blocks = answer.complaints.iter().map(|complaint| {
        let message = complaint.message.lines().map(str::to_owned);
        message.chain(complaint.shown()).collect()
    });
    let blocks: Vec<Vec<String>> = blocks.collect();
    let causes = answer.complaints.iter().take(MAX_CAUSES).map(|complaint| Cause {
        reason: "Refused".to_owned(),
        message: text::item(&complaint.message),
        field: if complaint.key.is_empty() { String::new() } else { text::item(&format!("data[{}]", complaint.key)) },
    });
    let details = Details { name: text::item(&answer.name), group: "", kind: "ConfigMap", causes: causes.collect() };
    Status { details: Some(details), ..status(text::blocks(&blocks)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn encoded(answer: &Answer) -> Value {
        serde_json::from_slice(&encode("u", answer)).unwrap()
    }

    #[test]
    fn a_refusal_shows_the_line_and_the_place() {
        let complaint = Complaint {
            key: "a.rego".to_owned(),
            message: "a.rego:3:9: no such thing".to_owned(),
            excerpt: Some(("\t  x := foo(1)".to_owned(), 9)),
        };
        let answer = Answer {
            name: "cap".to_owned(),
            complaints: vec![complaint],
            digest: "abc".to_owned(),
            ..Answer::default()
        };
        let response = &encoded(&answer)["response"];
        assert_eq!(response["status"]["message"], "a.rego:3:9: no such thing\n  | x := foo(1)\n  |      ^");
        assert_eq!(response["status"]["details"]["causes"][0]["field"], "data[a.rego]");
        assert_eq!(response["auditAnnotations"], json!({"digest": "abc"}));
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u"), &json!(false)));
    }

    #[test]
    fn many_complaints_are_counted_whole_and_hostile_ones_are_harmless() {
        let complaint = |place: usize| Complaint {
            message: format!("a.rego:{place}:1: \u{202e}wrong"),
            excerpt: Some(("\u{1b}[31m".repeat(1000), 5)),
            ..Complaint::default()
        };
        let answer = Answer { complaints: (0..200).map(complaint).collect(), ..Answer::default() };
        let message = encoded(&answer)["response"]["status"]["message"].as_str().unwrap().to_owned();
        assert!(message.len() <= 4096 && !message.contains('\u{1b}') && !message.contains('\u{202e}'), "{message}");
        let shown = message.matches("a.rego:").count();
        assert!(message.ends_with(&format!("and {} more problems", 200 - shown)), "{message}");
    }

    #[test]
    fn what_is_let_through_says_what_to_know() {
        let answer = Answer { warnings: vec!["mind this".to_owned()], ..Answer::default() };
        let response = &encoded(&answer)["response"];
        assert_eq!(*response, json!({"uid": "u", "allowed": true, "warnings": ["mind this"]}));
    }
}
