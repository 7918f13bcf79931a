//! Reviews the CEL rules of a schema: those that a server would refuse, or that cost too much.
//!
//! A server estimates the cost of a rule with the longest lists and strings that the schema allows. This
//! review does not compute the cost; it finds what makes it too high: lists and strings without a limit.

use super::{
    Findings,
    schema::{SchemaContext, kind},
};
use serde_json::Value;

/// Functions that visit each item or character of what they are called on.
const ITERATING: &[&str] = &[
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

pub(super) fn review(path: &str, schema: &Value, context: SchemaContext<'_>, findings: &mut Findings) {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for (place, validation) in rules.into_iter().flatten().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{place}].rule");
        let rule = validation.get("rule").and_then(Value::as_str).unwrap_or_default();
        if rule.trim().is_empty() {
            findings.refused(path, "must be there");
            continue;
        }
        if names(rule, "oldSelf") && context.has_no_identity {
            findings
                .refused(&path, "looks at oldSelf, but items of this list cannot be matched with old ones");
        }
        if let Some(unbounded) = context.unbounded {
            findings.hurts(&path, format!("runs for each item of {unbounded}, which has no limit"));
        }
        if validation.get("message").is_none() && validation.get("messageExpression").is_none() {
            findings.hurts(&path, "has no message: people get to read the rule");
        }
        if let Some(field) = unlimited(schema, rule) {
            findings.hurts(&path, format!("goes through {field}, which has no limit"));
        }
    }
}

/// A field of any length through which the rule iterates.
fn unlimited(schema: &Value, rule: &str) -> Option<String> {
    if !ITERATING.iter().any(|call| rule.contains(call)) {
        return None;
    }
    if is_unlimited(schema) && ITERATING.iter().any(|call| rule.contains(&format!("self{call}"))) {
        return Some("self".into());
    }
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut used = fields.filter(|(name, field)| {
        let place = format!("self.{name}");
        is_unlimited(field) && ITERATING.iter().any(|call| rule.contains(&format!("{place}{call}")))
    });
    used.next().map(|(name, _)| format!("self.{name}"))
}

fn is_unlimited(schema: &Value) -> bool {
    let limit = match kind(schema) {
        "array" => "maxItems",
        "object" if schema.get("additionalProperties").is_some() => "maxProperties",
        "string" if schema.get("enum").is_none() => "maxLength",
        _ => return false,
    };
    schema.get(limit).is_none()
}

/// Whether the rule contains the word.
fn names(rule: &str, word: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    rule.split(|c| !is_letter(c)).any(|found| found == word)
}
