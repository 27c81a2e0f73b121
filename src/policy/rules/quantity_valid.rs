//! `quantity-valid`: GPU quantities are whole and not negative.

use crate::policy::decision::RuleId;
use crate::policy::judge::Judged;
use crate::policy::rules::Draft;
use crate::workload::demand::{Why, spelling};

pub(super) fn check(judged: &Judged<'_>) -> Vec<Draft> {
    judged
        .demand
        .invalid
        .iter()
        .map(|invalid| {
            let found = spelling(invalid.value.value);
            let who = judged.asker(invalid.asker);
            let (wrong, value) = match &invalid.why {
                Why::Unreadable(error) => (error.to_string(), found.clone()),
                Why::Uncountable(quantity, error) => (error.to_string(), quantity.to_string()),
            };
            Draft {
                rule: RuleId::QuantityValid,
                field: invalid.value.path.to_string(),
                message: format!("the quantity {found:?} that {who} asks of {} {wrong}", invalid.resource),
                fix: "write a whole number of devices, such as \"1\"".to_owned(),
                repair: Vec::new(),
                about: format!("{who}/{}={value}", invalid.resource),
                wanted: None,
                found,
            }
        })
        .collect()
}

/// Why the rule finds nothing.
pub(super) fn passes(judged: &Judged<'_>) -> String {
    if judged.demand.resources.is_empty() {
        return "no GPU quantity is above zero".to_owned();
    }
    "every GPU quantity is a whole number".to_owned()
}
