//! The metadata that the server fills in, and what it holds a client's to.

use crate::verbs::Call;
use api::{object, status::Status};
use serde_json::Value;

/// Kubernetes: a generated name leaves room for its suffix.
const MAX_GENERATED_PREFIX: usize = 58;

/// What a client sent must be about what the URL names.
pub(crate) fn check_target(call: &Call, draft: &mut Value) -> Result<(), Status> {
    let namespace = call.target.namespace.as_str();
    let said = object::namespace(draft);
    if call.served.is_namespaced() {
        if said.is_empty() {
            object::set_namespace(draft, namespace);
        } else if said != namespace {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    }
    let name = call.target.name.as_str();
    if name.is_empty() {
        return Ok(());
    }
    let said = object::name(draft);
    if said.is_empty() {
        return Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if said != name {
        return Err(Status::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// Names each owner once, and tells whoever named one twice.
pub(crate) fn name_owners_once(call: &Call, draft: &mut Value, is_admitted: bool) {
    let Some(owners) = object::metadata_mut(draft).get_mut("ownerReferences").and_then(Value::as_array_mut)
    else {
        return;
    };
    let mut again = Vec::new();
    let mut kept: Vec<Value> = Vec::new();
    for owner in owners.drain(..) {
        match kept.contains(&owner) {
            true => again.push(owner["uid"].as_str().unwrap_or_default().to_owned()),
            false => kept.push(owner),
        }
    }
    *owners = kept;
    if !again.is_empty() {
        let since = if is_admitted { " after mutating admission happens" } else { "" };
        call.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{since}; API server dedups owner references in \
             1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) \
             observed: {}",
            again.join(", ")
        ));
    }
}

/// Whether an object asks for a generated name.
pub(crate) fn wants_name(draft: &Value) -> bool {
    object::name(draft).is_empty() && !object::generate_name(draft).is_empty()
}

/// Gives an object that asks for it a generated name; answers whether it did.
pub(crate) fn take_name(call: &Call, draft: &mut Value) -> bool {
    if !wants_name(draft) {
        return false;
    }
    let prefix = object::generate_name(draft);
    let kept: String = prefix.chars().take(MAX_GENERATED_PREFIX).collect();
    object::set_name(draft, &format!("{kept}{}", call.inner.world.name_suffix()));
    true
}

/// Forgets what a client says of a new object and only the server can.
pub(super) fn wipe(draft: &mut Value) {
    let metadata = object::metadata_mut(draft);
    for field in [
        "uid",
        "creationTimestamp",
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        metadata.remove(field);
    }
}

/// What only the server says about a new object.
pub(super) fn begin(call: &Call, draft: &mut Value) {
    wipe(draft);
    let now = super::now(call);
    object::set_uid(draft, &call.inner.world.uid());
    object::set_creation_timestamp(draft, Some(now));
}

/// What no client changes about an object.
pub(super) fn carry_over(current: &Value, draft: &mut Value) {
    let Some(before) = object::metadata(current) else { return };
    let after = object::metadata_mut(draft);
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        match before.get(field) {
            Some(value) => drop(after.insert(field.to_owned(), value.clone())),
            None => drop(after.remove(field)),
        }
    }
    // Kubernetes: these may be left out, and must not differ where they are not.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if let (Some(value), false) = (before.get(field), after.contains_key(field)) {
            after.insert(field.to_owned(), value.clone());
        }
    }
}
