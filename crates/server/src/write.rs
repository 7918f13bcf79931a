//! The stages of a write, in travel order. What is stored has passed all of them.

mod claims;
mod commit;
mod metadata;
mod owners;
pub(crate) mod scale;
mod validate;

pub use claims::{BadRange, ServiceRange};
pub(crate) use commit::{Outcome, create, remove, replace};
pub(crate) use metadata::{check_target, take_name};
pub(crate) use owners::with_target;
pub(crate) use validate::Checked;

use crate::verbs::Call;
use api::{object, status::Status, time::Time};
use kinds::strategy::Circumstances;
use owners::Previous;
use serde_json::Value;

/// Whether who owns what is still to be worked out, or an apply has done that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Now,
    AlreadyDone,
}

/// Makes a new object of what a client sent: defaulted, named, owned, checked.
pub(crate) fn prepare_new(call: &Call<'_>, mut draft: Value, record: Record) -> Result<Checked, Status> {
    let resource = call.served.resource;
    kinds::defaults::default(resource.group, resource.version, resource.kind, &mut draft);
    metadata::begin(call, &mut draft);
    schema::encode::normalize(call.types(), call.served.of, &mut draft);
    // Before the server adds what is its own: nobody owns that.
    if record == Record::Now {
        owners::record(call, Previous::Nothing, &mut draft);
    }
    let strategy = kinds::strategy::strategy(resource.group, resource.name);
    strategy.prepare_create(&mut draft, &circumstances(call, &user(call)));
    schema::encode::normalize(call.types(), call.served.of, &mut draft);
    validate::new_object(call, draft)
}

/// Makes the next state of an object of what a client wants it to be. `None` where nothing changes.
pub(crate) fn prepare_next(
    call: &Call<'_>,
    current: &Value,
    mut draft: Value,
    record: Record,
) -> Result<Option<Checked>, Status> {
    let resource = call.served.resource;
    kinds::defaults::default(resource.group, resource.version, resource.kind, &mut draft);
    metadata::carry_over(current, &mut draft);
    schema::encode::normalize(call.types(), call.served.of, &mut draft);
    if record == Record::Now {
        owners::record(call, Previous::Object(current), &mut draft);
    }
    let strategy = kinds::strategy::strategy(resource.group, resource.name);
    let user = user(call);
    let with = circumstances(call, &user);
    match call.target.subresource.as_str() {
        // Kubernetes: a scale is written through the resource itself.
        "" | "scale" => strategy.prepare_update(&mut draft, current, &with),
        subresource => strategy.prepare_subresource(subresource, &mut draft, current, &with),
    }
    schema::encode::normalize(call.types(), call.served.of, &mut draft);
    owners::keep_times(current, &mut draft);
    if draft == *current {
        return Ok(None);
    }
    validate::next_object(call, draft, current).map(Some)
}

fn circumstances<'a>(call: &Call<'_>, user: &'a Value) -> Circumstances<'a> {
    Circumstances { now: now(call), user }
}

/// Who writes, as objects that record it carry it.
fn user(call: &Call<'_>) -> Value {
    let caller = call.permit.caller();
    serde_json::json!({"username": caller.name, "uid": caller.uid, "groups": caller.groups})
}

/// The time, as objects carry it.
pub(crate) fn now(call: &Call<'_>) -> Time {
    Time::from(call.inner.world.wall())
}

/// Whether an object goes away with this write: it is being deleted, and nothing holds it any more.
pub(crate) fn is_released(call: &Call<'_>, object: &Value) -> bool {
    object::is_deleting(object)
        && !is_held_by_spec(call, object)
        && object::finalizers(object).next().is_none()
        && object::deletion_grace_period_seconds(object).unwrap_or(0) == 0
}

pub(crate) fn is_namespaces(call: &Call<'_>) -> bool {
    (call.served.resource.group, call.served.resource.name) == ("", "namespaces")
}

/// Namespaces have finalizers of their own beside those that every object can have.
pub(crate) fn is_held_by_spec(call: &Call<'_>, object: &Value) -> bool {
    is_namespaces(call) && object["spec"]["finalizers"].as_array().is_some_and(|held| !held.is_empty())
}
