//! What a client says it has seen of an object must be what stands there: its UID and its resourceVersion.

use crate::{call::Call, refusal::Refusal};
use api::{
    field::{Error, ErrorList, Path},
    go,
    kind::GroupKind,
    object,
};
use serde_json::Value;

/// What it means that a client does not say which version it saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    Any,
    /// Some kinds want to be told.
    AsStrategySays,
}

/// What a client says it saw must be what stands there.
pub(crate) fn check_conditions(call: &Call, live: &Value, draft: &Value) -> Result<(), Refusal> {
    check_uid(call, object::uid(draft), object::uid(live))?;
    check_version(call, live, draft, Absent::Any)
}

pub(crate) fn check_uid(call: &Call, wanted: &str, found: &str) -> Result<(), Refusal> {
    if wanted.is_empty() || wanted == found {
        return Ok(());
    }
    let name = call.target.name.as_str();
    let key = call.served.key(&call.target.namespace, name);
    // Kubernetes: the storage's own words; a dry run does not get as far as the prefix of all keys.
    let key = key.strip_prefix("/registry").filter(|_| call.options.is_dry_run()).unwrap_or(&key);
    let cause = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    );
    Err(Refusal::conflict(&call.resource(), name, cause))
}

pub(crate) fn check_version(call: &Call, live: &Value, draft: &Value, absent: Absent) -> Result<(), Refusal> {
    let (name, wanted) = (call.target.name.as_str(), seen_version(draft)?);
    if wanted.is_none() {
        if absent == Absent::Any || call.served.strategy().allow_unconditional_update {
            return Ok(());
        }
        let path = Path::new("metadata.resourceVersion");
        let mut errors = ErrorList::new();
        errors.push(Error::invalid(&path, 0, "must be specified for an update"));
        // Kubernetes: it names the resource where the kind should be.
        let resource = call.resource();
        return Err(Refusal::invalid(&GroupKind::new(resource.group, resource.resource), name, &errors));
    }
    if wanted != seen_version(live)? {
        return Err(Refusal::modified(&call.resource(), name));
    }
    Ok(())
}

/// The version that a client says it saw. Kubernetes: zero is none.
pub(crate) fn seen_version(object: &Value) -> Result<Option<u64>, Refusal> {
    match object::resource_version(object) {
        "" => Ok(None),
        text => go::parse_uint(text).map(|it| (it > 0).then_some(it)).map_err(Refusal::unclassified),
    }
}
