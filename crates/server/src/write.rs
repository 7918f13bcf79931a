//! The stages of a write, in the order in which they run. Every stored object has passed all of them.

mod by_server;
mod change;
mod commit;
mod device_rights;
mod metadata;
mod own_part;
mod owners;
mod preconditions;
mod privileged;
pub(crate) mod scale;
mod service_allocation;
mod validate;

pub(crate) use by_server::{ByServer, KUBE_APISERVER, own_change};
pub(crate) use change::{Attempt, Change, Changed, Next, change, try_again};
pub(crate) use commit::{Outcome, Writer, commit, create, encode, remove, replace, replace_or_release};
pub(crate) use metadata::{check_target, forget_system_fields, take_name, wants_name};
pub(crate) use own_part::OwnPart;
pub(crate) use owners::with_target;
pub(crate) use preconditions::{MissingVersion, check_conditions, check_uid, check_version, seen_version};
pub use service_allocation::{BadRange, ServiceRange};
pub(crate) use validate::Checked;

use crate::{
    admission::{self, Review},
    authorize::escalation::Grant,
    call::Call,
    refusal::Refusal,
    stored::{self, Stored},
};
use api::{object, time::Time};
use kinds::strategy::Circumstances;
use metadata::OwnerCheck;
use owners::Previous;
use serde_json::Value;

/// Whether `admit_new` and `prepare_next` still set defaults and managedFields, or the caller (apply,
/// scale) has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DraftState {
    AsSent,
    DefaultedAndOwned,
}

/// Whether create is authorized already: the permit of a PUT or an apply that creates is for update or
/// patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CreateRight {
    Authorized,
    NotYetChecked,
}

/// The check that a role or binding grants only rights that its writer has.
fn grant(call: &Call) -> Grant<'_> {
    Grant { inner: &call.inner, caller: call.caller(), target: &call.target }
}

/// Takes a new object through defaulting, managedFields and mutating admission.
pub(crate) async fn admit_new(call: &Call, mut draft: Value, state: DraftState) -> Result<Value, Refusal> {
    metadata::check_kind(call, &draft)?;
    let served = &call.served;
    if state == DraftState::AsSent {
        served.default(&mut draft);
    }
    metadata::forget_storage_fields(&mut draft);
    served.normalize(&mut draft);
    metadata::drop_repeated_owners(call, &mut draft, OwnerCheck::BeforeAdmission);
    // Managed fields first: server-set fields have no owner.
    if state == DraftState::AsSent {
        owners::record(call, Previous::Nothing, &mut draft).await?;
    }
    let mut review = Review::create(call, draft);
    admission::mutate(&mut review).await?;
    let mut draft = review.object;
    metadata::drop_repeated_owners(call, &mut draft, OwnerCheck::AfterAdmission);
    // Admission may have changed the name or namespace.
    check_target(call, &mut draft)?;
    Ok(draft)
}

/// Sets the metadata of an admitted object, runs its strategy's create and validates it.
pub(crate) async fn prepare_new(
    call: &Call,
    mut draft: Value,
    right: CreateRight,
) -> Result<Checked, Refusal> {
    let served = &call.served;
    metadata::begin(call, &mut draft);
    served.strategy().prepare_create(&mut draft, &Circumstances { now: now(call), user: &|| user(call) });
    served.normalize(&mut draft);
    grant(call).check(&draft, None).await?;
    validate::new_object(call, draft, right).await
}

/// Makes the next state of an object from a client's draft: `None` where nothing changes. The current
/// object comes as stored and in the version of the request.
pub(crate) async fn prepare_next(
    call: &Call,
    (stored, current): (&Stored, &Value),
    mut draft: Value,
    state: DraftState,
) -> Result<Option<Checked>, Refusal> {
    metadata::check_kind(call, &draft)?;
    let served = &call.served;
    if state == DraftState::AsSent {
        served.default(&mut draft);
    }
    metadata::put_back(current, &mut draft);
    served.normalize(&mut draft);
    metadata::drop_repeated_owners(call, &mut draft, OwnerCheck::BeforeAdmission);
    if state == DraftState::AsSent {
        owners::record(call, Previous::Object(current), &mut draft).await?;
    }
    let mut review = Review::update(call, draft, current);
    admission::mutate(&mut review).await?;
    let mut draft = review.object;
    metadata::drop_repeated_owners(call, &mut draft, OwnerCheck::AfterAdmission);
    // Admission may have removed metadata that only the server sets.
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
    grant(call).check(&draft, Some(current)).await?;
    let checked = validate::next_object(call, draft, current).await?;
    // An object under deletion with no finalizer left is removed by its next write, even one that changes
    // nothing.
    let is_no_op = is_unchanged && !is_released(call, checked.object());
    Ok((!is_no_op || !is_stored_in_current_form(call, stored, current).await?).then_some(checked))
}

/// Whether the stored bytes are those that a write would store now. They differ where the storage version
/// or the defaults of a definition have changed; a write that changes nothing else migrates the object.
async fn is_stored_in_current_form(call: &Call, stored: &Stored, current: &Value) -> Result<bool, Refusal> {
    Ok(commit::encode(call, &mut current.clone()).await? == stored.json)
}

/// The caller as `UserInfo`, for objects that record who wrote them.
fn user(call: &Call) -> Value {
    let caller = call.caller();
    serde_json::json!({"username": caller.name, "uid": caller.uid, "groups": caller.groups, "extra": caller.extra})
}

/// The time that objects of this request record.
pub(crate) fn now(call: &Call) -> Time {
    call.time.unwrap_or_else(|| Time::from(call.inner.world.wall()))
}

/// Whether this write removes the object: it is being deleted, and no finalizer is left.
pub(crate) fn is_released(call: &Call, object: &Value) -> bool {
    object::is_deleting(object)
        && !is_held_by_spec(call, object)
        && object::finalizers(object).next().is_none()
        && object::deletion_grace_period_seconds(object).unwrap_or(0) == 0
}

pub(crate) fn is_namespaces(call: &Call) -> bool {
    call.served.is("", "namespaces")
}

/// Namespaces have `spec.finalizers` beside `metadata.finalizers`.
pub(crate) fn is_held_by_spec(call: &Call, object: &Value) -> bool {
    is_namespaces(call) && object["spec"]["finalizers"].as_array().is_some_and(|held| !held.is_empty())
}
