//! The metadata of built-in kinds: the checks of `api::meta`, and Kubernetes' finalizer names on top.

use api::field::{Error, ErrorList, Path};
use api::meta::{self, ObjectMeta, Scope};
use api::name::NameRule;
use serde_json::Value;

use super::at::At;

const PATH: Path<'static> = Path::new("metadata");
/// In the order of Go's fields.
const FORBIDDEN_IN_TEMPLATES: [&str; 13] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

fn typed<'a>(object: &'a Value, errors: &mut ErrorList) -> Option<ObjectMeta<'a>> {
    match api::object::meta(object) {
        Ok(meta) => Some(meta),
        Err(problem) => {
            errors.push(Error::internal(&PATH, problem));
            None
        }
    }
}

pub(crate) fn create(object: &Value, scope: Scope, rule: NameRule, errors: &mut ErrorList) {
    create_any(object, scope, rule, errors);
    finalizers(object, errors);
}

/// Whatever its finalizers are called.
pub(crate) fn create_any(object: &Value, scope: Scope, rule: NameRule, errors: &mut ErrorList) {
    let Some(meta) = typed(object, errors) else { return };
    errors.extend(meta::check_create(&PATH, &meta, scope, rule));
}

/// Only what the object is called, for one whose metadata has passed with another rule.
pub(crate) fn name(object: &Value, rule: NameRule, errors: &mut ErrorList) {
    let (prefix, name) = (api::object::generate_name(object), api::object::name(object));
    let of_prefix = if prefix.is_empty() { Vec::new() } else { rule.prefix_problems(prefix) };
    for (field, text, problems) in [("generateName", prefix, of_prefix), ("name", name, rule.problems(name))]
    {
        let path = PATH.child(field);
        errors.extend(problems.into_iter().map(|problem| Error::invalid(&path, text, problem)));
    }
}

pub(crate) fn update(new: &Value, old: &Value, errors: &mut ErrorList) {
    update_any(new, old, errors);
    finalizers(new, errors);
}

/// Whatever its finalizers are called.
pub(crate) fn update_any(new: &Value, old: &Value, errors: &mut ErrorList) {
    let (Some(new), Some(old)) = (typed(new, errors), typed(old, errors)) else { return };
    errors.extend(meta::check_update(&PATH, &new, &old));
}

fn finalizers(object: &Value, errors: &mut ErrorList) {
    let finalizers: Vec<_> = api::object::finalizers(object).map(str::to_owned).collect();
    errors.extend(meta::check_kube_finalizers(&PATH.child("finalizers"), &finalizers));
}

pub(crate) fn labels(labels: &At<'_, '_>, errors: &mut ErrorList) {
    let entries = labels.entries().map(|(key, value)| (key, value.text()));
    errors.extend(api::name::labels(labels.path(), entries));
}

pub(crate) fn annotations(annotations: &At<'_, '_>, errors: &mut ErrorList) {
    let entries = annotations.entries().map(|(key, value)| (key, value.text()));
    errors.extend(api::name::annotations(annotations.path(), entries));
}

/// Of objects that are made from a template: labels and annotations, and nothing else.
pub(crate) fn template(metadata: &At<'_, '_>, errors: &mut ErrorList) {
    annotations(&metadata.field("annotations"), errors);
    labels(&metadata.field("labels"), errors);
    for field in FORBIDDEN_IN_TEMPLATES.into_iter().filter(|field| metadata.has(field)) {
        let is_zero = metadata.value()[field] == "" || metadata.value()[field] == 0;
        // Only a pointer can be set to zero.
        if !is_zero || field == "deletionGracePeriodSeconds" {
            let shown = if field == "uid" { "uID" } else { field };
            metadata.field(shown).forbidden(errors, "cannot be set");
        }
    }
}
