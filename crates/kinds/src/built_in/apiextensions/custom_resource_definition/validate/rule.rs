//! `x-kubernetes-validations`: what their texts must be, and whether the expressions can be understood and afforded.

use std::collections::BTreeSet;

use api::field::ErrorList;
use expression::pattern;
use schema::structural::Structural;

use super::field_path::{self, Notation};
use super::walk;
use crate::validate::at::At;

const RULES: &str = "x-kubernetes-validations";
const REASONS: [&str; 4] =
    ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Everything but the expressions.
pub(super) fn check_texts(schema: &At<'_, '_>, errors: &mut ErrorList) {
    for rule in schema.field(RULES).items() {
        check_message(&rule, errors);
        let expression = rule.field("messageExpression");
        if !expression.text().is_empty() && expression.text().trim().is_empty() {
            expression.required(errors, "messageExpression must be non-empty if specified");
        }
        let reason = rule.field("reason");
        if reason.is_set() && !REASONS.contains(&reason.text()) {
            reason.unsupported(errors, &REASONS);
        }
        let path = rule.field("fieldPath");
        if path.text().is_empty() {
            continue;
        }
        if path.text().trim().is_empty() {
            path.invalid_text(errors, "must be non-empty if specified");
        }
        if has_line_break(path.text()) {
            path.invalid_text(errors, "must not contain line breaks");
        }
        if field_path::find(path.text(), schema.value(), Notation::DotsAndBrackets).is_err() {
            path.invalid_text(errors, "must be a valid path");
        }
    }
}

fn check_message(rule: &At<'_, '_>, errors: &mut ErrorList) {
    let (expression, message) = (rule.field("rule"), rule.field("message"));
    let (rule_text, message_text) = (expression.text().trim(), message.text().trim());
    if rule_text.is_empty() {
        expression.required(errors, "rule is not specified");
    } else if !message.text().is_empty() && message_text.is_empty() {
        message.invalid_text(errors, "must be non-empty if specified");
    } else if has_line_break(message_text) {
        message.invalid_text(errors, "must not contain line breaks");
    } else if has_line_break(rule_text) && message_text.is_empty() {
        message.required(errors, "message must be specified if rule contains line breaks");
    }
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

/// The expressions of a schema that is sound, but for parts in `unsound`. Those of an unchanged schema may cost more
/// than is allowed today.
pub(super) fn check_all(
    schema: &At<'_, '_>,
    unsound: &BTreeSet<String>,
    is_unchanged: bool,
    errors: &mut ErrorList,
) {
    if !is_unchanged {
        check_patterns(schema, errors);
    }
    if !walk::any(schema.value(), &mut |part| part.get(RULES).is_some()) {
        return;
    }
    let compiled = Structural::compile(schema.value());
    let is_sound = |path: &str| !unsound.contains(path);
    errors.extend(compiled.check_rules(&schema.path().to_string(), !is_unchanged, &is_sound));
}

/// All patterns of a schema are compiled one day, and kept: together they may take no more than a limit.
fn check_patterns(schema: &At<'_, '_>, errors: &mut ErrorList) {
    let mut known = BTreeSet::new();
    let mut bytes = 0_usize;
    let is_too_much = walk::any(schema.value(), &mut |part| {
        let text = part.get("pattern").and_then(serde_json::Value::as_str).unwrap_or_default();
        if known.insert(text.to_owned()) {
            // An error in one of them is reported by another check.
            bytes = bytes.saturating_add(pattern::measure(text).unwrap_or_default());
        }
        bytes > pattern::MAX_TOGETHER_BYTES
    });
    if is_too_much {
        schema.forbidden(errors, "regular expressions of the schema are too large together");
    }
}
