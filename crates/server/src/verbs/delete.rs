//! Delete: sets deletionTimestamp, and removes the object once grace period and finalizers allow.

mod collection;
mod options;

pub(crate) use collection::delete_collection;
pub(super) use options::DeleteOptions;

use crate::{
    admission,
    answer::{self, Body},
    call::Call,
    custom,
    refusal::Refusal,
    stored::Stored,
    write::{self, Change, Changed, Checked, Next, OwnPart},
};
use api::{object, time::Time};
use bytes::Bytes;
use collection::DeleteTurn;
use http::{Response, StatusCode};
use kinds::{
    definition::condition::{self, Condition},
    strategy::GcPolicy,
};
use serde_json::Value;
use std::time::Duration;
use world::Timestamp;

// Kubernetes: the finalizers that the garbage collector acts on.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

pub(crate) async fn delete(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let mut call = call.clone();
    let options = DeleteOptions::read(&mut call, &body)?;
    warn_of_orphans(&call, &options);
    Ok(match delete_one(&call, &options, Origin::Delete).await? {
        Deleted::Absent => return Err(call.not_found(&call.target.name)),
        Deleted::Gone(stored) if !call.served.strategy().return_deleted_object => {
            let object = stored.value()?;
            answer::deleted(&call, &object)
        }
        Deleted::Gone(stored) | Deleted::Marked(stored) => {
            answer::object(&call, StatusCode::OK, &stored).await?
        }
    })
}

/// Kubernetes: warns that the pods of a job are orphaned by default.
fn warn_of_orphans(call: &Call, options: &DeleteOptions) {
    if call.served.is("batch", "jobs") && options.policy().is_none() {
        call.warn(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
             remove them or set propagationPolicy=Orphan to suppress this warning",
        );
    }
}

/// A delete by the server. The object may be gone already.
pub(crate) async fn by_server(call: &Call) -> Result<(), Refusal> {
    delete_one(call, &DeleteOptions::default(), Origin::Delete).await.map(drop)
}

/// Which request the delete comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Delete,
    /// Admission has reviewed the eviction; the delete is not reviewed again.
    Eviction,
}

pub(super) enum Deleted {
    /// Its last state.
    Gone(Stored),
    /// It remains until its grace period ends and its finalizers are removed.
    Marked(Stored),
    /// There was no such object.
    Absent,
}

pub(super) async fn delete_one(
    call: &Call,
    options: &DeleteOptions,
    origin: Origin,
) -> Result<Deleted, Refusal> {
    delete_with(call, options, origin, DeleteTurn::default()).await
}

/// [`delete_one`] when its turn has come.
async fn delete_with(
    call: &Call,
    options: &DeleteOptions,
    origin: Origin,
    turn: DeleteTurn,
) -> Result<Deleted, Refusal> {
    let mut delete = Delete { options, origin, turn };
    let changed = write::change(call, &mut delete).await?;
    delete.turn.pass();
    match changed {
        Changed::Removed(stored) => Ok(Deleted::Gone(stored)),
        Changed::Absent => Ok(Deleted::Absent),
        changed => changed.stored(call).map(Deleted::Marked),
    }
}

struct Delete<'a> {
    options: &'a DeleteOptions,
    origin: Origin,
    turn: DeleteTurn,
}

impl Change for Delete<'_> {
    async fn next(&mut self, call: &Call, _: &Stored, live: Value) -> Result<Next, Refusal> {
        self.turn.come().await?;
        check_preconditions(call, self.options, &live)?;
        if self.origin == Origin::Delete {
            admission::delete(call, &live).await?;
        }
        self.turn.pass();
        if is_pending(call, self.options, &live) {
            return Ok(Next::Keep);
        }
        let mut marked = live.clone();
        mark(call, self.options, &mut marked);
        let is_marked = marked != live;
        if is_marked {
            bump_generation(&live, &mut marked);
        }
        // Kubernetes: the first delete of a namespace only sets deletionTimestamp, even without finalizers.
        let is_first = write::is_namespaces(call) && !object::is_deleting(&live);
        let is_gone = !is_first && write::is_released(call, &marked);
        let marked = Checked::by_server(OwnPart::Deletion, &live, marked);
        Ok(match (is_gone, is_marked) {
            (false, false) => Next::Keep,
            (false, true) => Next::Mark(marked),
            // Kubernetes: kinds with a grace period show watchers a deletionTimestamp even for zero
            // seconds; a delete after the end of the grace period shows the state before it.
            (true, _) => {
                let begins = !object::is_deleting(&live) || pending_grace(call, &live).is_some();
                let is_shown = is_marked && begins && call.served.strategy().is_graceful();
                Next::Remove { marked: is_shown.then_some(marked) }
            }
        })
    }

    async fn absent(&mut self, _: &Call) -> Result<Option<Checked>, Refusal> {
        self.turn.come().await?;
        Ok(None)
    }
}

pub(super) fn check_preconditions(call: &Call, options: &DeleteOptions, live: &Value) -> Result<(), Refusal> {
    let (kind, name) = (call.served.kept_kind(), call.target.name.as_str());
    let found = object::resource_version(live);
    let other_uid = options.uid.as_deref().filter(|wanted| *wanted != object::uid(live));
    let other_version = options.resource_version.as_deref().filter(|wanted| *wanted != found);
    // Kubernetes: namespaces have a delete of their own, with other texts.
    if write::is_namespaces(call) {
        let (what, wanted, found) = match (other_uid, other_version) {
            (Some(wanted), _) => ("UID", wanted, object::uid(live)),
            (None, Some(wanted)) => ("ResourceVersion", wanted, found),
            (None, None) => return Ok(()),
        };
        let cause =
            format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
        return Err(Refusal::conflict(&call.resource(), name, cause));
    }
    match (other_uid, other_version) {
        (Some(wanted), _) => Err(Refusal::uid_mismatch(&kind, name, wanted, object::uid(live))),
        (None, Some(wanted)) => Err(Refusal::resource_version_mismatch(&kind, name, wanted, found)),
        (None, None) => Ok(()),
    }
}

/// Whether another delete changes nothing.
// Kubernetes: of a namespace before its contents are removed, and of an object within its grace period
// unless the delete shortens it.
fn is_pending(call: &Call, options: &DeleteOptions, live: &Value) -> bool {
    let shortens = || shorter_grace(call, options, live).is_some();
    object::is_deleting(live)
        && (write::is_held_by_spec(call, live) || pending_grace(call, live).is_some() && !shortens())
}

/// The grace period of an object that is being deleted and still has one.
fn pending_grace(call: &Call, live: &Value) -> Option<i64> {
    let is_graceful = call.served.strategy().is_graceful() && object::is_deleting(live);
    object::deletion_grace_period_seconds(live).filter(|seconds| is_graceful && *seconds != 0)
}

/// The grace period of this delete, if it is shorter than that of a delete before.
fn shorter_grace(call: &Call, options: &DeleteOptions, live: &Value) -> Option<i64> {
    let pending = pending_grace(call, live)?;
    options.grace_seconds.map(not_negative).filter(|asked| *asked < pending)
}

/// Kubernetes: a negative grace period is one second.
fn not_negative(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

/// Sets the end of the grace period, counted from the delete that began it; the present if that is past.
fn shorten(call: &Call, draft: &mut Value, pending: i64, asked: i64) {
    let period = |seconds: i64| Duration::from_secs(seconds.unsigned_abs());
    let end = object::deletion_timestamp(draft).map_or(Timestamp::MIN, Time::timestamp);
    let end = end.checked_sub(period(pending)).and_then(|begun| begun.checked_add(period(asked)));
    let (now, end) = (call.inner.world.wall(), end.unwrap_or(Timestamp::MIN));
    let is_past = end < now;
    object::set_deletion_timestamp(draft, Some(Time::from(end.max(now))));
    object::set_deletion_grace_period_seconds(draft, Some(if is_past { asked.min(1) } else { asked }));
}

fn is_waiting(draft: &Value) -> bool {
    object::finalizers(draft).any(|one| one == FOREGROUND)
}

/// Sets deletionTimestamp, grace period and finalizers.
fn mark(call: &Call, options: &DeleteOptions, draft: &mut Value) {
    let mut finalizers: Vec<String> = object::finalizers(draft).map(str::to_owned).collect();
    let mut set = |finalizer: &str, wanted: bool| {
        finalizers.retain(|other| other != finalizer);
        if wanted {
            finalizers.push(finalizer.to_owned());
        }
    };
    let (orphans, waits) = (object::finalizers(draft).any(|one| one == ORPHAN), is_waiting(draft));
    match (options.policy(), call.served.strategy().gc_policy) {
        (_, GcPolicy::None) => {
            set(ORPHAN, false);
            set(FOREGROUND, false);
        }
        (Some(policy), _) => {
            set(ORPHAN, policy == "Orphan");
            set(FOREGROUND, policy == "Foreground");
        }
        (None, GcPolicy::Orphan) if !orphans && !waits => set(ORPHAN, true),
        (None, _) => {}
    }
    if call.served.is("apiextensions.k8s.io", "customresourcedefinitions") && !object::is_deleting(draft) {
        set(custom::CLEANUP_FINALIZER, true);
        condition::set(&mut draft["status"], &Condition::deletion_pending(), write::now(call));
    }
    object::set_finalizers(draft, finalizers.iter().map(String::as_str));
    if write::is_namespaces(call) && !object::is_deleting(draft) {
        draft["status"]["phase"] = "Terminating".into();
        return mark_without_grace(call, draft);
    }
    if call.served.is("apiextensions.k8s.io", "customresourcedefinitions") {
        return mark_without_grace(call, draft);
    }
    if let (Some(pending), Some(asked)) = (pending_grace(call, draft), shorter_grace(call, options, draft)) {
        return shorten(call, draft, pending, asked);
    }
    let grace = call.served.strategy().grace_period(draft, options.grace_seconds).unwrap_or(0).max(0);
    // A grace period beyond the largest timestamp ends there.
    let grace_period = Duration::from_secs(grace.unsigned_abs());
    let moment = call.inner.world.wall().checked_add(grace_period).unwrap_or(Timestamp::MAX);
    let shortened = object::deletion_grace_period_seconds(draft).is_none_or(|before| grace < before);
    let moment = Time::from(moment);
    // Kubernetes: another delete can only shorten the grace period.
    if object::deletion_timestamp(draft).is_none_or(|before| shortened && before > moment) {
        object::set_deletion_timestamp(draft, Some(moment));
    }
    if shortened {
        object::set_deletion_grace_period_seconds(draft, Some(grace));
    }
}

/// Namespaces and definitions wait for their contents to be removed, and have no grace period.
// Kubernetes: only the second delete of a definition sets deletionGracePeriodSeconds to zero.
fn mark_without_grace(call: &Call, draft: &mut Value) {
    if !object::is_deleting(draft) {
        object::set_deletion_timestamp(draft, Some(write::now(call)));
    } else if call.served.is("apiextensions.k8s.io", "customresourcedefinitions") {
        object::set_deletion_grace_period_seconds(draft, Some(0));
    }
}

/// Kubernetes: setting a grace period increments the generation.
fn bump_generation(live: &Value, marked: &mut Value) {
    let generation = object::generation(live);
    let has_grace = object::deletion_grace_period_seconds(marked).is_some();
    if generation > 0 && has_grace && !object::is_deleting(live) {
        object::set_generation(marked, generation.saturating_add(1));
    }
}
