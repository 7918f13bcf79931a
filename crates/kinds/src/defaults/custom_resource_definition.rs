//! The names that follow from a custom resource's kind, and the version in which it is stored.

use super::member::{self, Members};

pub(super) fn definition(definition: &mut Members) {
    let spec = member::made(definition, "spec");
    let names = member::made(spec, "names");
    let kind = member::text(names, "kind").to_owned();
    if !kind.is_empty() {
        member::default_to(names, "singular", kind.to_lowercase());
        member::default_to(names, "listKind", format!("{kind}List"));
    } else if names.is_empty() {
        spec.remove("names");
    }
    let stored = member::items(spec, "versions").find(|version| member::flag(version, "storage"));
    let stored = stored.map(|version| member::text(version, "name").to_owned());
    let status = member::made(definition, "status");
    match stored {
        Some(stored) => member::default_to(status, "storedVersions", vec![stored]),
        None if status.is_empty() => {
            definition.remove("status");
        }
        None => {}
    }
}
