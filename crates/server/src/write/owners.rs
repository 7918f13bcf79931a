//! Who owns which field after a write.

use crate::verbs::Call;
pub(super) use schema::managed_fields::keep_times;
use schema::managed_fields::{self, Target, Unconvertible};
use serde_json::Value;

/// What the write replaces.
pub(crate) enum Previous<'a> {
    Nothing,
    Object(&'a Value),
}

/// Sets the managedFields of `draft`.
pub(super) fn record(call: &Call<'_>, previous: Previous<'_>, draft: &mut Value) {
    with_target(call, |target| {
        let (manager, now) = (call.manager(), super::now(call).to_string());
        match previous {
            Previous::Nothing => managed_fields::create(target, draft, &manager, &now),
            Previous::Object(live) => managed_fields::update(target, live, draft, &manager, &now),
        }
    });
}

/// Hands on what the record of owners needs to know about the resource.
pub(crate) fn with_target<T>(call: &Call<'_>, act: impl FnOnce(&Target<'_>) -> T) -> T {
    let served = call.served;
    let resource = served.resource;
    let api_version = served.api_version();
    let convert = |object: &Value, to: &str| {
        let (group, version) = to.rsplit_once('/').unwrap_or(("", to));
        let (of, _) = call.types().kind(group, version, resource.kind).ok_or(Unconvertible::NoSuchVersion)?;
        let from = (resource.group, resource.version);
        Ok((crate::registry::convert(object.clone(), from, (group, version), resource.kind), of))
    };
    let filters =
        kinds::strategy::strategy(resource.group, resource.name).reset_fields(&call.target.subresource);
    act(&Target {
        types: call.types(),
        of: served.of,
        version: &api_version,
        subresource: &call.target.subresource,
        filters: &[(api_version.as_str(), filters)],
        convert: &convert,
    })
}
