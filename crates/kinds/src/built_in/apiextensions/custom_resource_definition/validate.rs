//! A CustomResourceDefinition: its names, versions and conversion, and schemas that can be relied on.
//!
//! | file | what is checked there |
//! |---|---|
//! | `hoisted` | what is the same in every version lies at the top for Kubernetes, and so do its errors |
//! | `spec`, `names`, `version`, `conversion` | everything but schemas |
//! | `schema` | a schema as a whole, in the order of its checks |
//! | `structural`, `junctor`, `complete` | that it is structural: every field has one type, told in one place |
//! | `default_value` | that defaults are valid |
//! | `keywords`, `list_type`, `rule` | each keyword by itself |
//! | `leniency` | what an update may leave as bad as it was |
//! | `shown` | how Kubernetes prints what it refuses |

pub(crate) mod ca_bundle;
mod complete;
mod conversion;
mod default_value;
mod field_path;
mod hoisted;
mod junctor;
mod keywords;
mod leniency;
mod list_type;
mod names;
mod printable;
mod rule;
mod schema;
mod shown;
mod spec;
mod structural;
#[cfg(test)]
mod tests;
mod unsupported;
mod version;
mod walk;

use api::field::{Error, ErrorList, Path};
use serde_json::Value;

use crate::definition::approval::{ANNOTATION, Approval, approval, is_protected};
use crate::definition::condition;
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::taken::Taken;
use leniency::Leniency;

pub(crate) use ca_bundle::problem as ca_bundle_problem;
pub(crate) use walk::unrecognized_formats;

/// A new definition.
pub(super) fn check(definition: &At<'_, '_>, errors: &mut ErrorList) {
    check_name(definition, errors);
    spec::check(&definition.field("spec"), &Leniency::none(), errors);
    check_status_of(definition, errors);
    check_approval(definition, None, errors);
    check_preserving(definition, None, errors);
}

/// A definition that replaces another.
pub(super) fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let leniency = Leniency::of(old.value());
    spec::check(&spec, &leniency, errors);
    let (names, old_names) = (spec.field("names"), old_spec.field("names"));
    if condition::is_true(&old.value()["status"], condition::ESTABLISHED) {
        same(&spec.field("scope"), &old_spec.field("scope"), errors);
        same(&names.field("kind"), &old_names.field("kind"), errors);
    }
    same(&spec.field("group"), &old_spec.field("group"), errors);
    same(&names.field("plural"), &old_names.field("plural"), errors);
    check_status_of(new, errors);
    check_approval(new, Some(old), errors);
    check_preserving(new, Some(old), errors);
}

/// A write to the status.
pub(super) fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    names::check(&status.field("acceptedNames"), errors);
}

/// Why the schemas of a stored definition are not structural, told of each version.
pub(crate) fn structural_violations(definition: &Value) -> ErrorList {
    let definition = At::root(definition);
    let spec = definition.field("spec");
    let mut errors = ErrorList::new();
    if spec.flag_of("preserveUnknownFields") {
        spec.field("preserveUnknownFields").invalid(&mut errors, "must be false");
    }
    let versions = spec.field("versions");
    for version in versions.items() {
        let schema = version.field("schema");
        let schema = schema.field("openAPIV3Schema");
        if schema.is_set() && unsupported::find(schema.value()).is_none() {
            structural::check(&schema, &mut errors);
        }
    }
    errors
}

fn same(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if new.text() != old.text() {
        new.invalid_text(errors, IMMUTABLE);
    }
}

fn check_name(definition: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, metadata) = (definition.field("spec"), definition.field("metadata"));
    let expected = format!("{}.{}", spec.field("names").text_of("plural"), spec.text_of("group"));
    for field in ["generateName", "name"] {
        let name = metadata.field(field);
        if name.text() != expected && !name.text().is_empty() {
            name.invalid_text(errors, "must be spec.names.plural+\".\"+spec.group");
        }
    }
}

fn check_status_of(definition: &At<'_, '_>, errors: &mut ErrorList) {
    let status = definition.field("status");
    names::check(&status.field("acceptedNames"), errors);
    let stored = status.field("storedVersions");
    if stored.is_empty() {
        return stored.invalid(errors, "must have at least one stored version");
    }
    let spec = definition.field("spec");
    let versions = spec.field("versions");
    let stored_names: Taken<&str> = stored.items().map(|it| it.text()).collect();
    let mut earlier = Taken::default();
    for version in versions.items() {
        let name = version.text_of("name");
        // A name that comes twice is stored for the first of the two alone.
        let is_first = earlier.add(name);
        let is_known = stored_names.contains(name) && is_first;
        if version.flag_of("storage") && !is_known {
            stored.invalid(errors, format!("must have the storage version {name}"));
        }
    }
    for name in stored.items() {
        let text = name.text();
        if !earlier.contains(text) {
            let problem = format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {text} and removes \
                 {text} from status.storedVersions"
            );
            name.invalid_text(errors, problem);
        }
    }
}

/// What the annotation said before, it may go on saying.
fn check_approval(new: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    if !is_protected(new.field("spec").text_of("group")) {
        return;
    }
    let (state, reason) = approval(new.value());
    if old.is_some_and(|old| approval(old.value()).0 == state) {
        return;
    }
    let annotations = Path::new("metadata.annotations");
    let path = annotations.key(ANNOTATION);
    let shown = api::object::annotation(new.value(), ANNOTATION).unwrap_or_default();
    match state {
        Approval::Invalid => errors.push(Error::invalid(&path, shown, reason)),
        Approval::Missing => errors.push(Error::required(&path, reason)),
        Approval::Bypassed | Approval::Approved => {}
    }
}

fn check_preserving(new: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    const FIELD: &str = "preserveUnknownFields";
    let spec = new.field("spec");
    let was_so = old.is_some_and(|old| old.field("spec").flag_of(FIELD));
    if spec.flag_of(FIELD) && !was_so {
        let problem = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        spec.field(FIELD).invalid(errors, problem);
    }
}
