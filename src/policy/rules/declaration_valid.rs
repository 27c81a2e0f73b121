//! `declaration-valid`: declared words are known, and `tolerant` does not contradict the priority class.

use crate::policy::decision::{Change, RuleId};
use crate::policy::judge::{Judged, Scene};
use crate::policy::rules::Draft;
use crate::workload::class::Unknown;

pub(super) fn check(_scene: &Scene<'_>, judged: &Judged<'_>) -> Vec<Draft> {
    let class = &judged.class;
    // A word of the Namespace concerns only those for whom it would have counted.
    let involved = judged.is_involved();
    let unknown = class.unknown.iter().filter(|unknown| involved || unknown.pointer.is_some()).map(|unknown| {
        let words = unknown.words.join(", ");
        Draft {
            rule: RuleId::DeclarationValid,
            field: unknown.source.clone(),
            found: unknown.found.clone(),
            wanted: Some(unknown.words.join(" or ")),
            message: if unknown.is_text {
                format!("{} is {:?}, which is none of the words {words}", unknown.key, unknown.found)
            } else {
                format!("{} is {}, which is no string", unknown.key, unknown.found)
            },
            fix: format!("use one of {words}, as a quoted string"),
            repair: in_quotes(unknown),
            about: format!("{}={}", unknown.key, unknown.found),
        }
    });
    let tolerant = class.latency.as_ref().filter(|declared| declared.word == "tolerant" && declared.in_object);
    let contradiction = tolerant.zip(class.critical_priority.as_ref()).map(|(declared, (name, source))| Draft {
        rule: RuleId::DeclarationValid,
        field: declared.source.clone(),
        found: "tolerant".to_owned(),
        wanted: Some("critical".to_owned()),
        message: format!(
            "tolerant contradicts the priority class {name} ({source}), which makes a workload latency-critical"
        ),
        fix: "declare critical, or use another priority class".to_owned(),
        repair: Vec::new(),
        about: format!("tolerant/{name}"),
    });
    unknown.chain(contradiction).collect()
}

/// Why the rule finds nothing.
pub(super) fn passes(judged: &Judged<'_>) -> String {
    if judged.class.is_declared() {
        return "every declared word is known, and none contradicts the priority class".to_owned();
    }
    "nothing is declared".to_owned()
}

/// A word that was written without quotes, and so became something else.
fn in_quotes(unknown: &Unknown) -> Vec<Change> {
    let pointer = unknown.pointer.clone().filter(|_| !unknown.is_text && unknown.words.contains(&&*unknown.found));
    pointer.map(|pointer| Change { pointer, value: unknown.found.clone().into() }).into_iter().collect()
}
