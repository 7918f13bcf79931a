//! The arithmetic of a rollout: how many replicas each ReplicaSet gets next.

use crate::int_or_percent::{Rounding, scaled};
use k8s_openapi::{api::apps::v1::DeploymentSpec, apimachinery::pkg::util::intstr::IntOrString};

/// How old pods are replaced by new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// The old pods end before new ones start.
    Recreate,
    RollingUpdate(Limits),
}

/// How far the number of pods may differ from the desired one during a rolling update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) surge: i32,
    pub(super) unavailable: i32,
}

/// The replicas of a ReplicaSet, wanted and available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) replicas: i32,
    pub(super) available: i32,
}

/// What the ReplicaSets of a Deployment get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) new: i32,
    /// In the order in which the old ones were given.
    pub(super) old: Vec<i32>,
}

impl Strategy {
    pub(super) fn of(spec: &DeploymentSpec) -> Strategy {
        let strategy = spec.strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate") {
            return Strategy::Recreate;
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let resolved = |value: Option<&IntOrString>, rounding| {
            // Validation lets no other text pass.
            value.and_then(|value| scaled(value, desired(spec), rounding).ok()).unwrap_or_default()
        };
        let surge = resolved(rolling.and_then(|it| it.max_surge.as_ref()), Rounding::Up);
        let unavailable = resolved(rolling.and_then(|it| it.max_unavailable.as_ref()), Rounding::Down);
        // Kubernetes: both may be rounded to zero, and then nothing could move.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Strategy::RollingUpdate(Limits { surge, unavailable })
    }

    pub(super) fn max_surge(self) -> i32 {
        match self {
            Strategy::Recreate => 0,
            Strategy::RollingUpdate(limits) => limits.surge,
        }
    }

    /// Of `desired` replicas.
    pub(super) fn max_unavailable(self, desired: i32) -> i32 {
        match self {
            Strategy::Recreate => 0,
            Strategy::RollingUpdate(limits) => limits.unavailable.min(desired),
        }
    }

    /// How many replicas the new ReplicaSet may have beside `others` of the old ones.
    pub(super) fn new_replicas(self, desired: i32, present: i32, others: i32) -> i32 {
        match self {
            Strategy::Recreate => desired,
            Strategy::RollingUpdate(limits) => {
                let free = desired + limits.surge - others - present;
                if free <= 0 { present } else { present + free.min(desired - present) }
            }
        }
    }
}

pub(super) fn desired(spec: &DeploymentSpec) -> i32 {
    spec.replicas.unwrap_or(1)
}

/// The next step of a rolling update: the new ReplicaSet changes, or the old ones shrink. `old` begins with the
/// one that was created first.
pub(super) fn next_step(desired: i32, limits: Limits, new: Size, old: &[Size]) -> Sizes {
    let sum = |sizes: &[i32]| sizes.iter().sum::<i32>();
    let present: Vec<i32> = old.iter().map(|size| size.replicas).collect();
    let others = sum(&present);
    let grown = match new.replicas > desired {
        true => desired,
        false => Strategy::RollingUpdate(limits).new_replicas(desired, new.replicas, others),
    };
    if grown != new.replicas || others == 0 {
        return Sizes { new: grown, old: present };
    }
    let min_available = desired - Strategy::RollingUpdate(limits).max_unavailable(desired);
    // New pods that are not available yet leave no room for ending old ones.
    let removable = others + new.replicas - min_available - (new.replicas - new.available);
    let healthy = without_unhealthy(old, removable);
    let available = new.available + old.iter().map(|size| size.available).sum::<i32>();
    let spare = if removable > 0 { available - min_available } else { 0 };
    Sizes { new: new.replicas, old: reduced(&healthy, spare) }
}

/// Pods that are not available are removed first: that makes nothing worse, and they may never become available.
fn without_unhealthy(old: &[Size], mut removable: i32) -> Vec<i32> {
    let shrink = |size: &Size| {
        let removed = (size.replicas - size.available).min(removable).max(0);
        removable -= removed;
        size.replicas - removed
    };
    old.iter().map(shrink).collect()
}

fn reduced(sizes: &[i32], mut spare: i32) -> Vec<i32> {
    let shrink = |size: &i32| {
        let removed = (*size).min(spare).max(0);
        spare -= removed;
        size - removed
    };
    sizes.iter().map(shrink).collect()
}

/// A ReplicaSet that takes part in proportional scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) replicas: i32,
    /// The most pods of the Deployment when the ReplicaSet was scaled last: its annotation.
    pub(super) max_replicas_before: Option<i32>,
}

/// Scales all active ReplicaSets of a Deployment in proportion to their sizes, so that a rollout is neither
/// hastened nor held up. The largest one comes first, and gets what rounding leaves.
pub(super) fn proportional(desired: i32, surge: i32, reported_replicas: i32, shares: &[Share]) -> Vec<i32> {
    let allowed = if desired > 0 { desired + surge } else { 0 };
    let to_add = allowed - shares.iter().map(|share| share.replicas).sum::<i32>();
    let mut added = 0;
    let mut sizes: Vec<i32> = Vec::with_capacity(shares.len());
    for share in shares {
        let fraction = fraction(desired, allowed, reported_replicas, *share);
        let part = match to_add - added {
            left if left == 0 || to_add == 0 || share.replicas == 0 => 0,
            left if to_add > 0 => fraction.min(left),
            left => fraction.max(left),
        };
        added += part;
        sizes.push(share.replicas + part);
    }
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes
}

/// How many replicas more, or fewer, it would have in proportion to the change of the Deployment.
fn fraction(desired: i32, allowed: i32, reported_replicas: i32, share: Share) -> i32 {
    if desired == 0 {
        return -share.replicas;
    }
    let before = share.max_replicas_before.filter(|before| *before != 0).unwrap_or(reported_replicas);
    if before == 0 {
        return 0;
    }
    let (product, before) = (i64::from(share.replicas) * i64::from(allowed), i64::from(before));
    // Rounded to the nearest: all are positive.
    let size = (2 * product + before).div_euclid(2 * before);
    i32::try_from(size).unwrap_or(i32::MAX) - share.replicas
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn strategy(replicas: i32, strategy: &Value) -> Strategy {
        let spec = json!({"replicas": replicas, "strategy": strategy, "selector": {}, "template": {}});
        Strategy::of(&serde_json::from_value(spec).unwrap())
    }

    #[test]
    fn limits_are_rounded_so_that_something_can_move() {
        let rolling = |surge: Value, unavailable: Value| {
            json!({"type": "RollingUpdate", "rollingUpdate":
            {"maxSurge": surge, "maxUnavailable": unavailable}})
        };
        for (replicas, surge, unavailable, expected) in [
            (10, json!(3), json!(2), (3, 2)),
            (10, json!("25%"), json!("25%"), (3, 2)),
            (1, json!("25%"), json!("25%"), (1, 0)),
            (2, json!("0%"), json!("1%"), (0, 1)),
            (1, json!("0%"), json!("1%"), (0, 1)),
            (2, json!("1%"), json!("25%"), (1, 0)),
            (2, json!("1%"), json!("0%"), (1, 0)),
            (0, json!("25%"), json!("25%"), (0, 1)),
        ] {
            let limits = Limits { surge: expected.0, unavailable: expected.1 };
            let found = strategy(replicas, &rolling(surge.clone(), unavailable.clone()));
            assert_eq!(found, Strategy::RollingUpdate(limits), "{replicas} {surge} {unavailable}");
        }
        assert_eq!(strategy(3, &json!({"type": "Recreate"})), Strategy::Recreate);
        assert_eq!(Strategy::RollingUpdate(Limits { surge: 0, unavailable: 5 }).max_unavailable(3), 3);
    }

    /// Desired, (surge, unavailable), (new, available), [(old, available)…] → new, [old…].
    type Case = (i32, (i32, i32), (i32, i32), &'static [(i32, i32)], i32, &'static [i32]);

    #[test]
    fn a_step_grows_the_new_set_or_shrinks_the_old_ones() {
        let cases: &[Case] = &[
            // Nothing to do.
            (3, (1, 0), (3, 3), &[], 3, &[]),
            (3, (1, 0), (3, 3), &[(0, 0)], 3, &[0]),
            // The new set grows into the surge, and never over the desired number.
            (10, (3, 2), (0, 0), &[(10, 10)], 3, &[10]),
            (10, (5, 0), (8, 8), &[(2, 2)], 10, &[2]),
            (10, (0, 2), (0, 0), &[(8, 8)], 2, &[8]),
            // It shrinks if it is larger than desired.
            (3, (1, 1), (5, 5), &[], 3, &[]),
            // Old ones shrink as far as enough pods are available.
            (10, (3, 2), (3, 0), &[(10, 10)], 3, &[8]),
            (10, (3, 2), (5, 0), &[(8, 8)], 5, &[8]),
            (10, (3, 2), (5, 5), &[(8, 8)], 5, &[3]),
            (10, (0, 2), (2, 0), &[(8, 8)], 2, &[8]),
            (3, (1, 0), (1, 1), &[(3, 3)], 1, &[2]),
            (3, (1, 0), (3, 3), &[(1, 1)], 3, &[0]),
            // Unhealthy old pods end first, even if new ones are not available yet.
            (10, (3, 2), (5, 0), &[(8, 6)], 5, &[8]),
            (10, (0, 2), (0, 0), &[(10, 8)], 0, &[8]),
            (10, (3, 2), (3, 0), &[(2, 0), (8, 8)], 3, &[0, 8]),
            // The oldest set shrinks first.
            (10, (3, 2), (3, 3), &[(4, 4), (6, 6)], 3, &[0, 5]),
            // A failed rollout is rolled back: its unhealthy pods end.
            (10, (3, 2), (8, 7), &[(5, 0)], 8, &[1]),
            // A third template while the second one fails: both old sets may shrink.
            (10, (3, 2), (0, 0), &[(8, 8), (5, 0)], 0, &[8, 0]),
            // Without surge, one at a time.
            (2, (0, 1), (0, 0), &[(2, 2)], 0, &[1]),
            (2, (0, 1), (0, 0), &[(1, 1)], 1, &[1]),
            (2, (0, 1), (1, 1), &[(1, 1)], 1, &[0]),
            (1, (0, 1), (0, 0), &[(1, 1)], 0, &[0]),
            // Nothing is desired.
            (0, (0, 1), (0, 0), &[(2, 2)], 0, &[0]),
        ];
        for (desired, (surge, unavailable), new, old, expected_new, expected_old) in cases {
            let size =
                |(replicas, available): &(i32, i32)| Size { replicas: *replicas, available: *available };
            let limits = Limits { surge: *surge, unavailable: *unavailable };
            let olds: Vec<Size> = old.iter().map(size).collect();
            let found = next_step(*desired, limits, size(new), &olds);
            let expected = Sizes { new: *expected_new, old: expected_old.to_vec() };
            assert_eq!(found, expected, "{desired} +{surge} -{unavailable} new {new:?} old {old:?}");
        }
    }

    /// Plays rollouts to their end: they end, and never break their limits.
    #[test]
    fn rollouts_end_and_keep_their_limits() {
        for (desired, surge, unavailable) in
            [(1, 1, 0), (1, 0, 1), (3, 1, 0), (3, 0, 1), (10, 3, 2), (10, 10, 0), (7, 2, 7), (100, 25, 25)]
        {
            let limits = Limits { surge, unavailable };
            let full = |replicas| Size { replicas, available: replicas };
            let (mut new, mut old, mut steps) = (0, vec![desired], 0);
            while (new, old[0]) != (desired, 0) {
                let next = next_step(desired, limits, full(new), &[full(old[0])]);
                (new, old) = (next.new, next.old);
                let total = new + old[0];
                assert!(
                    total <= desired + surge && total >= desired - unavailable,
                    "{limits:?}: {new} {old:?}"
                );
                steps += 1;
                assert!(steps <= 4 * desired, "{desired} {limits:?} does not end");
            }
        }
    }

    #[test]
    fn scaling_during_a_rollout_is_proportional() {
        let share = |(replicas, before): &(i32, i32)| Share {
            replicas: *replicas,
            max_replicas_before: Some(*before),
        };
        for (desired, surge, shares, expected) in [
            // Kubernetes: the examples of its documentation and tests.
            (15, 3, &[(8, 13), (5, 13)][..], &[11, 7][..]),
            (10, 0, &[(5, 5)], &[10]),
            (5, 0, &[(10, 10)], &[5]),
            (10, 0, &[(4, 6), (2, 6)], &[7, 3]),
            (10, 0, &[(10, 20), (10, 20)], &[5, 5]),
            (6, 0, &[(8, 12), (4, 12)], &[4, 2]),
            (0, 0, &[(8, 13), (5, 13)], &[0, 0]),
            (20, 0, &[(2, 6), (2, 6), (2, 6)], &[7, 7, 6]),
        ] {
            let shares: Vec<Share> = shares.iter().map(share).collect();
            assert_eq!(proportional(desired, surge, 0, &shares), expected, "{desired} {shares:?}");
        }
        let unknown = [Share { replicas: 5, max_replicas_before: None }];
        assert_eq!(proportional(10, 0, 5, &unknown), [10], "by the status, without the annotation");
        assert_eq!(proportional(10, 0, 0, &unknown), [10], "the largest one gets what is left");
    }
}
