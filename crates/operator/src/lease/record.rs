//! What a candidate writes into a lease, without clock or network.

use super::Election;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use std::time::Duration;
use world::{Moment, Timestamp};

/// A lease, and since when this process has read it unchanged.
#[derive(Debug)]
pub(super) struct ObservedLease {
    pub(super) lease: Lease,
    pub(super) since: Moment,
}

/// What a candidate does next.
#[derive(Debug, PartialEq)]
pub(super) enum LeaseAction {
    Wait,
    Create(Lease),
    Replace(Lease),
}

pub(super) fn plan(
    election: &Election,
    observed: Option<&ObservedLease>,
    now: Moment,
    wall: Timestamp,
) -> LeaseAction {
    let Some(ObservedLease { lease, since }) = observed else {
        return LeaseAction::Create(Lease {
            metadata: named(election),
            spec: Some(held(election, None, wall)),
        });
    };
    let spec = lease.spec.as_ref();
    let is_mine = holder(lease) == Some(&election.identity);
    let is_free = holder(lease).is_none();
    let granted = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
    let granted = Duration::from_secs(u64::try_from(granted).unwrap_or_default());
    if !is_mine && !is_free && now.since(*since) < granted {
        return LeaseAction::Wait;
    }
    LeaseAction::Replace(Lease { metadata: lease.metadata.clone(), spec: Some(held(election, spec, wall)) })
}

/// The lease without its holder, if `identity` holds it.
pub(super) fn released(lease: Lease, identity: &str, wall: Timestamp) -> Option<Lease> {
    (holder(&lease) == Some(identity)).then(|| {
        let before = lease.spec.unwrap_or_default();
        let spec = LeaseSpec {
            holder_identity: None,
            // Kubernetes: the shortest that is valid.
            lease_duration_seconds: Some(1),
            renew_time: Some(MicroTime(wall)),
            ..before
        };
        Lease { metadata: lease.metadata, spec: Some(spec) }
    })
}

pub(super) fn is_held_by(lease: &Lease, identity: &str) -> bool {
    holder(lease) == Some(identity)
}

fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!holder.is_empty()).then_some(holder)
}

/// The spec with this candidate as the holder, after `before`.
fn held(election: &Election, before: Option<&LeaseSpec>, wall: Timestamp) -> LeaseSpec {
    let identity = Some(election.identity.clone());
    let seconds = i32::try_from(election.timing.lease.as_secs()).unwrap_or(i32::MAX).max(1);
    let goes_on = before.is_some_and(|before| before.holder_identity == identity);
    let transitions = before.and_then(|before| before.lease_transitions).unwrap_or_default();
    let acquired = before.filter(|_| goes_on).and_then(|before| before.acquire_time.clone());
    LeaseSpec {
        holder_identity: identity,
        lease_duration_seconds: Some(seconds),
        acquire_time: Some(acquired.unwrap_or(MicroTime(wall))),
        renew_time: Some(MicroTime(wall)),
        lease_transitions: Some(if goes_on || before.is_none() { transitions } else { transitions + 1 }),
        ..before.cloned().unwrap_or_default()
    }
}

fn named(election: &Election) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(election.namespace.clone()),
        name: Some(election.name.clone()),
        ..ObjectMeta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::Timing;

    /// What a candidate does about a lease that `holder` has for 15 seconds, unchanged for `age` seconds.
    fn look(holder: Option<&str>, age: u64) -> LeaseAction {
        let run = world::simulate(1, |world| async move {
            let since = world.now();
            let spec = LeaseSpec {
                holder_identity: holder.map(str::to_owned),
                lease_duration_seconds: Some(15),
                acquire_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
                lease_transitions: Some(4),
                ..LeaseSpec::default()
            };
            let lease = Lease { metadata: named(&me()), spec: Some(spec) };
            world.sleep(Duration::from_secs(age)).await;
            plan(&me(), Some(&ObservedLease { lease, since }), world.now(), world.wall())
        });
        run.expect("the sleep ends").output
    }

    fn me() -> Election {
        Election {
            namespace: "ops".into(),
            name: "lock".into(),
            identity: "me".into(),
            timing: Timing::default(),
        }
    }

    #[test]
    fn a_lease_is_taken_only_if_it_is_free_own_or_expired() {
        // The holder, seconds since the lease changed, and the transitions that are written, if any.
        for (holder, age, expected) in [
            (Some("other"), 0, None),
            (Some("other"), 14, None),
            (Some("other"), 15, Some(5)),
            (None, 0, Some(5)),
            (Some(""), 0, Some(5)),
            (Some("me"), 0, Some(4)),
            (Some("me"), 60, Some(4)),
        ] {
            let written = match look(holder, age) {
                LeaseAction::Replace(Lease { spec: Some(spec), .. }) => {
                    assert_eq!(spec.holder_identity.as_deref(), Some("me"));
                    let keeps_time = spec.acquire_time == Some(MicroTime(Timestamp::UNIX_EPOCH));
                    assert_eq!(keeps_time, holder == Some("me"), "{holder:?} {age}");
                    spec.lease_transitions
                }
                LeaseAction::Wait => None,
                other => panic!("{other:?}"),
            };
            assert_eq!(written, expected, "{holder:?} after {age} s");
        }
    }

    #[test]
    fn only_the_holder_releases() {
        let lease = |holder: &str| Lease {
            metadata: named(&me()),
            spec: Some(LeaseSpec { holder_identity: Some(holder.into()), ..LeaseSpec::default() }),
        };
        assert_eq!(released(lease("other"), "me", Timestamp::UNIX_EPOCH), None);
        let free = released(lease("me"), "me", Timestamp::UNIX_EPOCH).and_then(|lease| lease.spec);
        assert_eq!(free.map(|spec| spec.holder_identity), Some(None));
    }
}
