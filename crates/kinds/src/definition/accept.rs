//! A definition and the names of its neighbours in, its status out: which names it gets, and what its conditions say.
//!
//! The real server has four controllers for this, which take turns. Here it is one step, with what they arrive at in
//! the end. A definition keeps its names until it lets go of them: the first to ask for
//! a name has it.

use api::go;
use api::time::Time;
use serde_json::{Value, json};

use super::InUse;
use super::approval::{Approval, approval, is_protected};
use super::condition::{self, API_APPROVED, Condition, ESTABLISHED, NAMES_ACCEPTED, NON_STRUCTURAL};
use crate::built_in::apiextensions::custom_resource_definition::validate as rules;

/// The status that the definition should have. `in_use` are the names that its group has given, also to itself.
/// The same status comes back when there is nothing to do. Of its versions only a definition that preserves unknown
/// fields, or is told to be non-structural, needs to show anything.
pub fn accept(definition: &Value, in_use: &InUse, now: Time) -> Value {
    let mut status =
        definition.get("status").filter(|it| it.is_object()).cloned().unwrap_or_else(|| json!({}));
    approve(definition, &mut status, now);
    let wanted = &definition["spec"]["names"];
    if !same_names(wanted, &status["acceptedNames"]) {
        let (names, accepted) = name(wanted, &definition["status"]["acceptedNames"], in_use);
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

/// The names that it gets, each for itself, and whether it got all.
fn name(wanted: &Value, had: &Value, in_use: &InUse) -> (Value, Condition) {
    let mut names = if had.is_object() { had.clone() } else { json!({}) };
    let mut problem = None;
    let mut settle = |field: &str, reason, is_in_use: &dyn Fn(&str) -> bool| match conflict(
        text(wanted, field),
        text(had, field),
        is_in_use,
    ) {
        Some(message) => problem = Some((reason, message)),
        None => put(&mut names, field, &wanted[field]),
    };
    settle("plural", "PluralConflict", &|name| in_use.has_resource(name));
    settle("singular", "SingularConflict", &|name| in_use.has_resource(name));
    let short = short_name_conflicts(wanted, had, in_use);
    match aggregate(&short) {
        Some(message) => problem = Some(("ShortNamesConflict", message)),
        None => put(&mut names, "shortNames", &wanted["shortNames"]),
    }
    let mut settle = |field: &str, reason| match conflict(text(wanted, field), text(had, field), &|name| {
        in_use.has_kind(name)
    }) {
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

fn short_name_conflicts(wanted: &Value, had: &Value, in_use: &InUse) -> Vec<String> {
    let mine: Vec<_> = texts(had, "shortNames").collect();
    let fresh = texts(wanted, "shortNames").filter(|name| !mine.contains(name));
    fresh.filter_map(|name| conflict(name, "", &|name| in_use.has_resource(name))).collect()
}

fn conflict(wanted: &str, had: &str, is_in_use: &dyn Fn(&str) -> bool) -> Option<String> {
    let is_free = wanted == had || !is_in_use(wanted);
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
