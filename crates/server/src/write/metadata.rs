//! Metadata that the server sets, and checks of the metadata that a client sends.

use crate::{call::Call, input, refusal::Refusal};
use api::{
    field::{Error, ErrorList, Path},
    kind::GroupKind,
    object,
};
use serde_json::Value;
use std::collections::HashSet;

/// Kubernetes: a generated name leaves room for its suffix.
const MAX_GENERATED_PREFIX: usize = 58;

/// When ownerReferences are checked for duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerCheck {
    /// Kubernetes: the result of a patch is not checked here.
    BeforeAdmission,
    AfterAdmission,
}

/// The name and namespace of the body must match the URL.
pub(crate) fn check_target(call: &Call, draft: &mut Value) -> Result<(), Refusal> {
    let namespace = call.target.namespace.as_str();
    let sent = object::namespace(draft);
    if call.served.is_namespaced() {
        if sent.is_empty() {
            object::set_namespace(draft, namespace);
        } else if sent != namespace {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
    } else if !sent.is_empty() {
        object::set_namespace(draft, "");
    }
    let name = call.target.name.as_str();
    if name.is_empty() {
        return Ok(());
    }
    let sent = object::name(draft);
    if sent.is_empty() {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if sent != name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// A custom object must have the apiVersion and kind of its resource. Built-in kinds are decoded by type.
pub(super) fn check_kind(call: &Call, draft: &Value) -> Result<(), Refusal> {
    if call.served.custom().is_none() {
        return Ok(());
    }
    let (kind, version) = (&*call.served.resource.kind, call.served.api_version());
    if object::api_version(draft).is_empty() {
        return Err(Refusal::internal_error(
            "Object 'apiVersion' is missing in 'object has no apiVersion field'",
        ));
    }
    let mut errors = ErrorList::new();
    for (field, given, wanted) in
        [("kind", object::kind(draft), kind), ("apiVersion", object::api_version(draft), &version)]
    {
        if given != wanted {
            errors.push(Error::invalid(&Path::new(field), given, format!("must be {wanted}")));
        }
    }
    // Kubernetes: the error names the kind that the client sent.
    let (group, _) = object::api_version(draft).split_once('/').unwrap_or_default();
    let sent_kind = GroupKind::new(group, object::kind(draft));
    errors.into_result().map_err(|errors| Refusal::invalid(&sent_kind, object::name(draft), &errors))
}

/// Whether an object has a generateName and no name.
pub(crate) fn wants_name(draft: &Value) -> bool {
    object::name(draft).is_empty() && !object::generate_name(draft).is_empty()
}

/// Generates a name from generateName where one is wanted; returns whether it did.
pub(crate) fn take_name(call: &Call, draft: &mut Value) -> bool {
    if !wants_name(draft) {
        return false;
    }
    let prefix = object::generate_name(draft);
    let kept: String = prefix.chars().take(MAX_GENERATED_PREFIX).collect();
    object::set_name(draft, &format!("{kept}{}", call.inner.world.name_suffix()));
    true
}

/// Removes duplicate ownerReferences, and warns the client.
pub(super) fn drop_repeated_owners(call: &Call, draft: &mut Value, check: OwnerCheck) {
    let is_patch = input::media_type(&call.headers).contains("-patch+");
    if check == OwnerCheck::BeforeAdmission && is_patch {
        return;
    }
    let Some(Value::Array(owners)) = object::metadata_mut(draft).get_mut("ownerReferences") else { return };
    let mut earlier = HashSet::with_capacity(owners.len());
    let is_new: Vec<bool> = owners.iter().map(|owner| earlier.insert(owner)).collect();
    let (mut is_new, mut repeated) = (is_new.into_iter(), Vec::new());
    owners.retain(|owner| {
        let is_kept = is_new.next().unwrap_or(true);
        if !is_kept {
            repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        is_kept
    });
    let when = match check {
        OwnerCheck::BeforeAdmission => "",
        OwnerCheck::AfterAdmission => " after mutating admission happens",
    };
    if !repeated.is_empty() {
        call.warn(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in \
             1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) \
             observed: {}",
            repeated.join(", ")
        ));
    }
}

/// Removes metadata of a new object that only the server sets.
// Kubernetes: POST only; a PUT or apply that creates keeps the client's deletionTimestamp.
pub(crate) fn forget_system_fields(draft: &mut Value) {
    let metadata = object::metadata_mut(draft);
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(field);
    }
}

/// Removes the fields that come from the store.
pub(super) fn forget_storage_fields(draft: &mut Value) {
    let metadata = object::metadata_mut(draft);
    metadata.remove("resourceVersion");
    metadata.remove("selfLink");
}

/// Sets the server's metadata of a new object.
pub(super) fn begin(call: &Call, draft: &mut Value) {
    forget_storage_fields(draft);
    let now = super::now(call);
    object::set_uid(draft, &call.inner.world.uid());
    object::set_creation_timestamp(draft, Some(now));
}

/// Restores metadata that no client can change.
pub(super) fn put_back(current: &Value, draft: &mut Value) {
    let Some(before) = object::metadata(current) else { return };
    let after = object::metadata_mut(draft);
    for field in ["creationTimestamp", "generation", "resourceVersion"] {
        match before.get(field) {
            Some(value) => drop(after.insert(field.to_owned(), value.clone())),
            None => drop(after.remove(field)),
        }
    }
}

/// Restores it, and metadata that a client may leave out. managedFields are set before.
pub(super) fn carry_over(current: &Value, draft: &mut Value) {
    put_back(current, draft);
    let Some(before) = object::metadata(current) else { return };
    let after = object::metadata_mut(draft);
    // Kubernetes: a client may leave these out; validation rejects other values.
    for field in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if let (Some(value), false) = (before.get(field), after.contains_key(field)) {
            after.insert(field.to_owned(), value.clone());
        }
    }
}
