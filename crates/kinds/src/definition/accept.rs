//! A definition and its neighbours in, its status out: which names it gets, and what its conditions say.
//!
//! The real server has four controllers for this, which take turns. Here it is one step, with what they arrive at in
//! the end. Names are taken from others only when these let go of them: whoever was there first keeps them.

use std::collections::BTreeSet;

use api::go;
use api::time::Time;
use serde_json::{Value, json};

use super::approval::{Approval, approval, is_protected};
use super::condition::{self, API_APPROVED, Condition, ESTABLISHED, NAMES_ACCEPTED, NON_STRUCTURAL};
use crate::validate::custom_resource_definition as rules;

/// Names in use by definitions of the same group.
#[derive(Default)]
struct Taken<'a> {
    resources: BTreeSet<&'a str>,
    kinds: BTreeSet<&'a str>,
}

/// The status that the definition should have. `others` are all definitions; those of other groups do not matter.
/// The same status comes back when there is nothing to do.
pub fn accept<'a>(definition: &'a Value, others: impl Iterator<Item = &'a Value>, now: Time) -> Value {
    let mut status =
        definition.get("status").filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
    approve(definition, &mut status, now);
    let wanted = &definition["spec"]["names"];
    if !same_names(wanted, &status["acceptedNames"]) {
        let group = text(&definition["spec"], "group");
        let others = others.filter(|it| text(&it["spec"], "group") == group);
        let taken = Taken::of(others.chain([definition]));
        let (names, accepted) = name(wanted, &definition["status"]["acceptedNames"], &taken);
        status["acceptedNames"] = names;
        condition::set_if_new(&mut status, &accepted, now);
        if condition::find(&status, ESTABLISHED).is_none() {
            let message = "not all names are accepted";
            condition::set(&mut status, &Condition::new(ESTABLISHED, "False", "NotAccepted", message), now);
        }
    }
    establish(definition, &mut status, now);
    tell_non_structural(definition, &mut status, now);
    status
}

/// Once established it stays so, whatever becomes of its names.
fn establish(definition: &Value, status: &mut Value, now: Time) {
    if condition::is_true(status, ESTABLISHED) || !condition::is_true(status, NAMES_ACCEPTED) {
        return;
    }
    let bundle = definition.pointer("/spec/conversion/webhook/clientConfig/caBundle").and_then(Value::as_str);
    let condition = if rules::ca_bundle_problem(bundle.unwrap_or_default()).is_some() {
        let message = "The conversion webhook CABundle is invalid";
        Condition::new(ESTABLISHED, "False", "InvalidCABundle", message)
    } else {
        let message = "the initial names have been accepted";
        Condition::new(ESTABLISHED, "True", "InitialNamesAccepted", message)
    };
    condition::set_if_new(status, &condition, now);
}

fn approve(definition: &Value, status: &mut Value, now: Time) {
    if !is_protected(text(&definition["spec"], "group")) {
        return;
    }
    let (approval, message) = approval(definition);
    let (is_so, reason) = match approval {
        Approval::Invalid => ("False", "InvalidAnnotation"),
        Approval::Missing => ("False", "MissingAnnotation"),
        Approval::Approved => ("True", "ApprovedAnnotation"),
        Approval::Bypassed => ("False", "UnapprovedAnnotation"),
    };
    condition::set_if_new(status, &Condition::new(API_APPROVED, is_so, reason, message), now);
}

fn tell_non_structural(definition: &Value, status: &mut Value, now: Time) {
    let violations = rules::structural_violations(definition);
    if violations.is_empty() {
        condition::remove(status, NON_STRUCTURAL);
    } else {
        let condition = Condition::new(NON_STRUCTURAL, "True", "Violations", violations.to_string());
        condition::set_if_new(status, &condition, now);
    }
}

impl<'a> Taken<'a> {
    fn of(definitions: impl Iterator<Item = &'a Value>) -> Self {
        let mut taken = Taken::default();
        for definition in definitions {
            let names = &definition["status"]["acceptedNames"];
            taken.resources.extend([text(names, "plural"), text(names, "singular")]);
            taken.resources.extend(texts(names, "shortNames"));
            taken.kinds.extend([text(names, "kind"), text(names, "listKind")]);
        }
        taken
    }
}

/// The names that it gets, each for itself, and whether it got all.
fn name(wanted: &Value, had: &Value, taken: &Taken<'_>) -> (Value, Condition) {
    let mut names = if had.is_object() { had.clone() } else { json!({}) };
    let mut problem = None;
    let mut settle = |field: &str, reason, in_use: &BTreeSet<&str>| match conflict(
        text(wanted, field),
        text(had, field),
        in_use,
    ) {
        Some(message) => problem = Some((reason, message)),
        None => put(&mut names, field, &wanted[field]),
    };
    settle("plural", "PluralConflict", &taken.resources);
    settle("singular", "SingularConflict", &taken.resources);
    let short = short_name_conflicts(wanted, had, taken);
    match aggregate(&short) {
        Some(message) => problem = Some(("ShortNamesConflict", message)),
        None => put(&mut names, "shortNames", &wanted["shortNames"]),
    }
    let mut settle = |field: &str, reason| match conflict(text(wanted, field), text(had, field), &taken.kinds)
    {
        Some(message) => problem = Some((reason, message)),
        None => put(&mut names, field, &wanted[field]),
    };
    settle("kind", "KindConflict");
    settle("listKind", "ListKindConflict");
    put(&mut names, "categories", &wanted["categories"]);
    let condition = match problem {
        Some((reason, message)) => Condition::new(NAMES_ACCEPTED, "False", reason, message),
        None => Condition::new(NAMES_ACCEPTED, "True", "NoConflicts", "no conflicts found"),
    };
    (names, condition)
}

fn short_name_conflicts(wanted: &Value, had: &Value, taken: &Taken<'_>) -> Vec<String> {
    let mine: Vec<_> = texts(had, "shortNames").collect();
    let fresh = texts(wanted, "shortNames").filter(|name| !mine.contains(name));
    fresh.filter_map(|name| conflict(name, "", &taken.resources)).collect()
}

fn conflict(wanted: &str, had: &str, taken: &BTreeSet<&str>) -> Option<String> {
    let is_free = wanted == had || !taken.contains(wanted);
    (!is_free).then(|| format!("{} is already in use", go::quote(wanted)))
}

/// As Go prints several errors.
fn aggregate(problems: &[String]) -> Option<String> {
    match problems {
        [] => None,
        [only] => Some(only.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}

fn same_names(one: &Value, other: &Value) -> bool {
    let same_text = |field| text(one, field) == text(other, field);
    let same_list = |field| texts(one, field).eq(texts(other, field));
    ["plural", "singular", "kind", "listKind"].into_iter().all(same_text)
        && ["shortNames", "categories"].into_iter().all(same_list)
}

fn put(names: &mut Value, field: &str, value: &Value) {
    let Some(names) = names.as_object_mut() else { return };
    match value {
        Value::Null => drop(names.remove(field)),
        value => drop(names.insert(field.to_owned(), value.clone())),
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(value: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    value.get(field).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
