//! Conditions of the common form: `type`, `status`, `reason`, and since when.

use api::field::{Error, ErrorList};
use api::name;

use super::at::At;
use super::taken::Taken;

const MAX_REASON_BYTES: usize = 1024;
const MAX_MESSAGE_BYTES: usize = 32 * 1024;

pub(crate) fn check(conditions: &At<'_, '_>, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for condition in conditions.items() {
        let sort = condition.field("type");
        if !taken.add(sort.text()) {
            sort.duplicate(errors);
        }
        errors.extend(name::label_key(sort.path(), sort.text()));
        condition.field("status").one_of(errors, &["False", "True", "Unknown"]);
        let generation = condition.field("observedGeneration");
        if generation.int() < 0 {
            generation.invalid_int(errors, "must be greater than or equal to zero");
        }
        let since = condition.field("lastTransitionTime");
        if !since.is_set() {
            since.required(errors, "");
        }
        reason(&condition.field("reason"), errors);
        let message = condition.field("message");
        if message.text().len() > MAX_MESSAGE_BYTES {
            errors.push(Error::too_long(message.path(), MAX_MESSAGE_BYTES));
        }
    }
}

fn reason(reason: &At<'_, '_>, errors: &mut ErrorList) {
    let text = reason.text();
    if text.is_empty() {
        return reason.required(errors, "");
    }
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_fine = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| is_word(c) || matches!(c, ',' | ':'))
        && text.ends_with(is_word);
    if !is_fine {
        reason.invalid_text(
            errors,
            "a condition reason must start with alphabetic character, optionally followed by a string of \
             alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  \
             or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is \
             '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
        );
    }
    if text.len() > MAX_REASON_BYTES {
        errors.push(Error::too_long(reason.path(), MAX_REASON_BYTES));
    }
}
