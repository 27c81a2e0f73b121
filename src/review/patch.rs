//! Changes into a JSON patch of RFC 6902, tried before it is sent.
//!
//! Invariant: what is returned applies to the object. A patch that does not would fail the request whatever the
//! failurePolicy.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, Patch, PatchOperation};

use serde_json::Value;

use crate::json::Json;
use crate::policy::decision::Change;

/// The patch in base64, as the review carries it; nothing where there is no change.
///
/// # Errors
/// Says which operation does not apply to the object.
pub(super) fn encode(object: &Json<'_>, changes: &[Change]) -> Result<Option<String>, String> {
    if changes.is_empty() {
        return Ok(None);
    }
    let patch = patch(changes)?;
    json_patch::patch(&mut object.to_value(), &patch).map_err(|error| error.to_string())?;
    let bytes = serde_json::to_vec(&patch).map_err(|error| error.to_string())?;
    Ok(Some(STANDARD.encode(bytes)))
}

/// An object as changes leave it.
///
/// # Errors
/// Says which change does not apply.
pub fn apply(object: &Json<'_>, changes: &[Change]) -> Result<Value, String> {
    let mut value = object.to_value();
    json_patch::patch(&mut value, &patch(changes)?).map_err(|error| error.to_string())?;
    Ok(value)
}

/// Changes as a JSON patch.
///
/// # Errors
/// Says which of them names no place.
pub(super) fn patch(changes: &[Change]) -> Result<Patch, String> {
    let operation = |change: &Change| {
        let path = PointerBuf::parse(change.pointer.as_str()).map_err(|error| error.to_string())?;
        Ok(PatchOperation::Add(AddOperation { path, value: change.value.clone() }))
    };
    changes.iter().map(operation).collect::<Result<Vec<_>, String>>().map(Patch)
}
