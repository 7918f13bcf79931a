//! A built-in object in, everything wrong with it out: in the real server's words, and in its order.
//!
//! | call | when |
//! |---|---|
//! | [`create`] | a new object, defaulted and named |
//! | [`update`] | an object and what was stored before |
//! | [`subresource_update`] | the same through `status`, `scale`, `finalize`, `resize`, … |
//! | [`warnings`] | what to tell the client though nothing is wrong |
//!
//! The rules of a kind are its `Validation`, which lies with the kind; here is what several kinds share. Rules see
//! the object alone: what hangs on other objects (addresses that are taken, classes that do not exist) is checked
//! by the server.

pub(crate) mod at;
pub(crate) mod condition;
pub(crate) mod file_path;
pub(crate) mod go_type;
pub(crate) mod internal;
pub(crate) mod metadata;
pub(crate) mod resource_names;
pub(crate) mod rollout;
mod rules;
pub(crate) mod selector;
pub(crate) mod taken;
pub(crate) mod template;
#[cfg(test)]
mod tests;
pub(crate) mod validation;
pub(crate) mod volume_source;

use api::field::ErrorList;
use serde_json::Value;

use crate::{built_in, convert};
use at::At;
use rules::Rules;

/// Everything wrong with a new object.
pub fn create(group: &str, version: &str, kind: &str, object: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(rules) = Rules::of(group, kind) else { return errors };
    let object = &*convert::internal(group, version, kind, object);
    if !rules.fails_before_allocation(object, None, &mut errors) {
        rules.create(object, &mut errors);
        if errors.is_empty() {
            rules.create_of_any_kind(object, &mut errors);
        }
    }
    show_values(group, version, kind, &mut errors);
    errors
}

/// Everything wrong with an object that replaces another. What does not change may stay as bad as it was where
/// the real server lets it.
pub fn update(group: &str, version: &str, kind: &str, new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(rules) = Rules::of(group, kind) else { return errors };
    let (new, old) =
        (&*convert::internal(group, version, kind, new), &*convert::internal(group, version, kind, old));
    if !rules.fails_before_allocation(new, Some(old), &mut errors) {
        rules.update_of_any_kind(new, old, &mut errors);
        rules.update(new, old, &mut errors);
    }
    show_values(group, version, kind, &mut errors);
    errors
}

/// The same for a write to a subresource. `kind` is that of the object, not of what the client sent.
pub fn subresource_update(
    group: &str,
    version: &str,
    kind: &str,
    subresource: &str,
    new: &Value,
    old: &Value,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(rules) = Rules::of(group, kind) else { return errors };
    rules.update_of_any_kind(new, old, &mut errors);
    rules.subresource(subresource, new, old, &mut errors);
    show_values(group, version, kind, &mut errors);
    errors
}

fn show_values(group: &str, version: &str, kind: &str, errors: &mut ErrorList) {
    go_type::show_values(group, convert::internal_version(group, version, kind), kind, errors);
}

/// What a client should hear about an object that is accepted, [`deprecation`] included. `old` is what an update
/// replaces.
pub fn warnings(group: &str, version: &str, kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::from_iter(deprecation(group, version, kind).map(str::to_owned));
    if let Some(warn) = built_in::of_kind(group, kind).and_then(|it| it.warnings) {
        warn(&At::root(new), old, &mut warnings);
    }
    warnings
}

/// What a client should hear about a kind whatever it does with it, reads included.
pub fn deprecation(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let (deprecated, warning) = built_in::of_kind(group, kind)?.deprecation?;
    (deprecated == version).then_some(warning)
}
