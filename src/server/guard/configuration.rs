//! The check of a configuration that is about to be written.
//!
//! Invariant: what passes here is what the watch will put in force.

use crate::cluster::CONFIG_KEY;
use crate::feed::configuration;
use crate::policy::Policy;
use crate::review::guard::Complaint;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) complaints: Vec<Complaint>,
    pub(super) warnings: Vec<String>,
    /// What it will be in force as.
    pub(super) policy: Option<Policy>,
}

/// Checks a text, for the version that it is labelled with.
pub(super) fn check(text: Option<&str>, version: Option<&str>) -> Checked {
    let Some(text) = text else {
        let message = format!(
            "the key {CONFIG_KEY} is missing; put the configuration under it, or delete the ConfigMap (what is in force \
             then stays)"
        );
        return Checked { complaints: vec![Complaint::new(message)], ..Checked::default() };
    };
    let mistakes = match configuration::policy(text) {
        Ok(policy) => return Checked { policy: Some(policy), ..Checked::default() },
        Err(mistakes) => mistakes,
    };
    let own = env!("CARGO_PKG_VERSION");
    let another = version.map(|version| version.trim_start_matches('v')).filter(|version| *version != own);
    if let (Some(another), true) = (another, mistakes.are_unknown_fields()) {
        let first = format!(
            "this configuration is for version {another}, and version {own} is running, which does not know all of it: the \
             last good one stays in force until {another} runs"
        );
        let each = mistakes
            .0
            .iter()
            .map(|mistake| format!("{CONFIG_KEY}:{}:{}: {}", mistake.line, mistake.column, mistake.message));
        return Checked { warnings: std::iter::once(first).chain(each).collect(), ..Checked::default() };
    }
    let lines: Vec<&str> = text.lines().collect();
    let complaints = mistakes.0.iter().map(|mistake| Complaint {
        key: CONFIG_KEY.to_owned(),
        message: format!("{CONFIG_KEY}:{}:{}: {}", mistake.line, mistake.column, mistake.message),
        excerpt: mistake
            .line
            .checked_sub(1)
            .and_then(|place| lines.get(place))
            .map(|line| ((*line).to_owned(), mistake.column)),
    });
    Checked { complaints: complaints.collect(), ..Checked::default() }
}
