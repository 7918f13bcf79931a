//! A definition remembers every version in which its objects have been stored.

use serde_json::{Value, json};

use super::Circumstances;
use crate::defaults::member::{self, Members};

pub(super) fn create(definition: &mut Members, _: &Circumstances<'_>) {
    remember_stored_version(definition);
}

pub(super) fn update(definition: &mut Members, _: &Members, _: &Circumstances<'_>) {
    remember_stored_version(definition);
}

fn remember_stored_version(definition: &mut Members) {
    let spec = definition.get("spec").and_then(Value::as_object);
    let stored = spec.and_then(|spec| member::items(spec, "versions").find(|it| member::flag(it, "storage")));
    let Some(name) = stored.map(|version| json!(member::text(version, "name"))) else { return };
    let known = member::list(member::made(definition, "status"), "storedVersions");
    if !known.contains(&name) {
        known.push(name);
    }
}
