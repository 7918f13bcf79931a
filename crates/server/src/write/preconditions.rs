//! Preconditions: the UID and resourceVersion that a client sends must be those of the stored object.

use crate::{call::Call, refusal::Refusal};
use api::{
    field::{Error, ErrorList, Path},
    go,
    kind::GroupKind,
    object,
};
use serde_json::Value;

/// What a write without a resourceVersion means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingVersion {
    Allowed,
    /// Rejected for kinds that do not allow unconditional updates.
    AsStrategyAllows,
}

/// Checks UID and resourceVersion.
pub(crate) fn check_conditions(call: &Call, live: &Value, draft: &Value) -> Result<(), Refusal> {
    check_uid(call, object::uid(draft), object::uid(live))?;
    check_version(call, live, draft, MissingVersion::Allowed)
}

pub(crate) fn check_uid(call: &Call, wanted: &str, found: &str) -> Result<(), Refusal> {
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let name = call.target.name.as_str();
    let key = call.served.key(&call.target.namespace, name);
    // Kubernetes: the text of the storage layer; a dry run has the key without its `/registry` prefix.
    let key = key.strip_prefix("/registry").filter(|_| call.options.is_dry_run()).unwrap_or(&key);
    let cause = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    Err(Refusal::conflict(&call.resource(), name, cause))
}

pub(crate) fn check_version(
    call: &Call,
    live: &Value,
    draft: &Value,
    absent: MissingVersion,
) -> Result<(), Refusal> {
    let (name, wanted) = (call.target.name.as_str(), seen_version(draft)?);
    if wanted.is_none() {
        if absent == MissingVersion::Allowed || call.served.strategy().allow_unconditional_update {
            return Ok(());
        }
        let path = Path::new("metadata.resourceVersion");
        let mut errors = ErrorList::new();
        errors.push(Error::invalid(&path, 0, "must be specified for an update"));
        // Kubernetes: the error has the resource in place of the kind.
        let resource = call.resource();
        return Err(Refusal::invalid(&GroupKind::new(resource.group, resource.resource), name, &errors));
    }
    if wanted != seen_version(live)? {
        return Err(Refusal::modified(&call.resource(), name));
    }
    Ok(())
}

/// The resourceVersion that a client sends. Kubernetes: zero means none.
pub(crate) fn seen_version(object: &Value) -> Result<Option<u64>, Refusal> {
    match object::resource_version(object) {
        "" => Ok(None),
        text => go::parse_uint(text).map(|it| (it > 0).then_some(it)).map_err(Refusal::unclassified),
    }
}
