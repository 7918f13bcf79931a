//! The CEL rules of a schema in, those that a server would refuse or that cost too much out.
//!
//! A server sums up what a rule could cost with the longest lists and texts that the schema allows.
//! The sum itself is its own; what is found here is what makes it explode: things without a limit.

use super::{
    Findings,
    schema::{Around, kind},
};
use serde_json::Value;

/// They look at each item or letter of what they are called on.
const THOROUGH: &[&str] = &[
    ".all(",
    ".exists(",
    ".exists_one(",
    ".map(",
    ".filter(",
    ".matches(",
    ".contains(",
    ".find(",
    ".findAll(",
    ".indexOf(",
    ".split(",
    ".join(",
    ".sum(",
    ".isSorted(",
    ".replace(",
];

pub(super) fn review(path: &str, schema: &Value, around: Around<'_>, findings: &mut Findings) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (place, validation) in rules.into_iter().flatten().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{place}].rule");
        let rule = validation.get("rule").and_then(Value::as_str).unwrap_or_default();
        if rule.trim().is_empty() {
            findings.refused(path, "must be there");
            continue;
        }
        if names(rule, "oldSelf") && around.is_nameless {
            findings
                .refused(&path, "looks at oldSelf, but items of this list cannot be matched with old ones");
        }
        if let Some(unbounded) = around.unbounded {
            findings.hurts(&path, format!("runs for each item of {unbounded}, which has no limit"));
        }
        if validation.get("message").is_none() && validation.get("messageExpression").is_none() {
            findings.hurts(&path, "has no message: people get to read the rule");
        }
        if let Some(endless) = endless(schema, rule) {
            findings.hurts(&path, format!("goes through {endless}, which has no limit"));
        }
    }
}

/// What the rule goes through that may be of any length.
fn endless(schema: &Value, rule: &str) -> Option<String> {
    if !THOROUGH.iter().any(|call| rule.contains(call)) {
        return None;
    }
    if is_endless(schema) && THOROUGH.iter().any(|call| rule.contains(&format!("self{call}"))) {
        return Some("self".into());
    }
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut used = fields.filter(|(name, field)| {
        let place = format!("self.{name}");
        is_endless(field) && THOROUGH.iter().any(|call| rule.contains(&format!("{place}{call}")))
    });
    used.next().map(|(name, _)| format!("self.{name}"))
}

fn is_endless(schema: &Value) -> bool {
    let limit = match kind(schema) {
        "array" => "maxItems",
        "object" if schema.get("additionalProperties").is_some() => "maxProperties",
        "string" if schema.get("enum").is_none() => "maxLength",
        _ => return false,
    };
    schema.get(limit).is_none()
}

/// Whether the rule has the word, as a word of its own.
fn names(rule: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    rule.split(|c| !is_letter(c)).any(|found| found == word)
}
