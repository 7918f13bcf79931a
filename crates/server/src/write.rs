//! The stages of a write, in travel order. What is stored has passed all of them.

mod by_server;
mod change;
mod commit;
mod device_rights;
mod metadata;
mod own_part;
mod owners;
mod preconditions;
pub(crate) mod scale;
mod service_allocation;
mod validate;

pub(crate) use by_server::{ByServer, KUBE_APISERVER, own_change};
pub(crate) use change::{Attempt, Change, Changed, Next, change, try_again};
pub(crate) use commit::{Outcome, Writer, commit, create, encode, remove, replace, replace_or_release};
pub(crate) use metadata::{check_target, forget_system_fields, take_name, wants_name};
pub(crate) use own_part::OwnPart;
pub(crate) use owners::with_target;
pub(crate) use preconditions::{Absent, check_conditions, check_uid, check_version, seen_version};
pub use service_allocation::{BadRange, ServiceRange};
pub(crate) use validate::Checked;

use crate::{
    admission::{self, Review},
    authorize::escalation,
    call::Call,
    refusal::Refusal,
    stored::{self, Stored},
};
use api::{object, time::Time};
use kinds::strategy::Circumstances;
use metadata::Stage;
use owners::Previous;
use serde_json::Value;

/// Whether defaults are still to be set and who owns what is still to be worked out, or an apply has done that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Now,
    AlreadyDone,
}

/// Whether the caller may create the object: a put or an apply to a name that is free has the right to something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    Held,
    ToBeAskedFor,
}

/// Makes of what a client sent what everybody who has a say lets through: defaulted, owned, changed.
pub(crate) async fn admit_new(call: &Call, mut draft: Value, record: Record) -> Result<Value, Refusal> {
    metadata::check_kind(call, &draft)?;
    let served = &call.served;
    if record == Record::Now {
        served.default(&mut draft);
    }
    metadata::forget_storage_fields(&mut draft);
    served.normalize(&mut draft);
    metadata::drop_repeated_owners(call, &mut draft, Stage::Sent);
    // Before the server adds what is its own: nobody owns that.
    if record == Record::Now {
        owners::record(call, Previous::Nothing, &mut draft).await?;
    }
    let mut review = Review::create(call, draft);
    admission::mutate(&mut review).await?;
    let mut draft = review.object;
    metadata::drop_repeated_owners(call, &mut draft, Stage::Admitted);
    // Whoever had a say may have changed what it is called.
    check_target(call, &mut draft)?;
    Ok(draft)
}

/// Makes a new object of what was let through and has its name: begun, checked.
pub(crate) async fn prepare_new(call: &Call, mut draft: Value, right: Right) -> Result<Checked, Refusal> {
    let served = &call.served;
    metadata::begin(call, &mut draft);
    served.strategy().prepare_create(&mut draft, &Circumstances { now: now(call), user: &|| user(call) });
    served.normalize(&mut draft);
    escalation::check(call, &draft, None).await?;
    validate::new_object(call, draft, right).await
}

/// Makes the next state of an object of what a client wants it to be. `None` where nothing changes. The object comes
/// as it is stored, and in the version of the request.
pub(crate) async fn prepare_next(
    call: &Call,
    (stored, current): (&Stored, &Value),
    mut draft: Value,
    record: Record,
) -> Result<Option<Checked>, Refusal> {
    metadata::check_kind(call, &draft)?;
    let served = &call.served;
    if record == Record::Now {
        served.default(&mut draft);
    }
    metadata::put_back(current, &mut draft);
    served.normalize(&mut draft);
    metadata::drop_repeated_owners(call, &mut draft, Stage::Sent);
    if record == Record::Now {
        owners::record(call, Previous::Object(current), &mut draft).await?;
    }
    let mut review = Review::update(call, draft, current);
    admission::mutate(&mut review).await?;
    let mut draft = review.object;
    metadata::drop_repeated_owners(call, &mut draft, Stage::Admitted);
    // Whoever had a say may have left out what is the server's.
    metadata::carry_over(current, &mut draft);
    let strategy = served.strategy();
    let with = Circumstances { now: now(call), user: &|| user(call) };
    match call.target.subresource.as_str() {
        // Kubernetes: a scale is written through the resource itself.
        "" | "scale" => strategy.prepare_update(&mut draft, current, &with),
        subresource => strategy.prepare_subresource(subresource, &mut draft, current, &with),
    }
    served.normalize(&mut draft);
    let is_same = |draft: &Value| draft == current || stored::is_kept_alike(served, draft, current);
    owners::keep_times(current, &mut draft, is_same);
    let is_unchanged = is_same(&draft) || service_allocation::is_same(call, &draft, current);
    escalation::check(call, &draft, Some(current)).await?;
    let checked = validate::next_object(call, draft, current).await?;
    // An object that nothing holds any more goes with the next write to it.
    let is_settled = is_unchanged && !is_released(call, checked.object());
    Ok((!is_settled || !is_stored_as_of_now(call, stored, current).await?).then_some(checked))
}

/// Whether an object lies in the store as it would be stored today. Where another version of its definition has become the
/// one that is stored, or has new defaults, a write that changes nothing else brings it there.
async fn is_stored_as_of_now(call: &Call, stored: &Stored, current: &Value) -> Result<bool, Refusal> {
    Ok(commit::encode(call, &mut current.clone()).await? == stored.json)
}

/// Who writes, as objects that record it carry it.
fn user(call: &Call) -> Value {
    let caller = call.caller();
    serde_json::json!({"username": caller.name, "uid": caller.uid, "groups": caller.groups, "extra": caller.extra})
}

/// The time, as objects carry it.
pub(crate) fn now(call: &Call) -> Time {
    call.time.unwrap_or_else(|| Time::from(call.inner.world.wall()))
}

/// Whether an object goes away with this write: it is being deleted, and nothing holds it any more.
pub(crate) fn is_released(call: &Call, object: &Value) -> bool {
    object::is_deleting(object)
        && !is_held_by_spec(call, object)
        && object::finalizers(object).next().is_none()
        && object::deletion_grace_period_seconds(object).unwrap_or(0) == 0
}

pub(crate) fn is_namespaces(call: &Call) -> bool {
    call.served.is("", "namespaces")
}

/// Namespaces have finalizers of their own beside those that every object can have.
pub(crate) fn is_held_by_spec(call: &Call, object: &Value) -> bool {
    is_namespaces(call) && object["spec"]["finalizers"].as_array().is_some_and(|held| !held.is_empty())
}
