//! Which pods a Job that goes on creates or removes.

use super::{Action, JobPlan, NewPod, by_deletion_order, per_index};
use crate::{
    pod,
    workload::job::desired::{Desired, completion_index},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Kubernetes: so many pods are created or deleted in one reconcile.
const BURST: usize = 500;

/// The action, and how long the next pods have to wait for their back-off.
pub(super) fn manage(
    desired: &Desired<'_>,
    pods: &[Arc<Pod>],
    active: &[Arc<Pod>],
    plan: &JobPlan,
    now: Timestamp,
) -> (Action, Option<Duration>) {
    if desired.is_suspended() {
        let all = active.to_vec();
        return (if all.is_empty() { Action::Nothing } else { Action::Remove(all) }, None);
    }
    let wanted = wanted(desired, active.len(), plan.succeeded);
    let mut excess = to_remove(desired, active, active.len().saturating_sub(wanted));
    if !excess.is_empty() {
        excess.truncate(BURST);
        return (Action::Remove(excess), None);
    }
    let terminating = if desired.replaces_only_failed() { plan.counts.terminating } else { 0 };
    let missing = wanted.saturating_sub(terminating + active.len()).min(BURST);
    if missing == 0 {
        return (Action::Nothing, None);
    }
    // With a limit for each index, each has a back-off of its own.
    if desired.limit_per_index().is_none() {
        let wait = plan.back_off.remaining(now);
        if !wait.is_zero() {
            return (Action::Nothing, Some(wait));
        }
    }
    let (new, wait) = new_pods(desired, pods, active, plan, missing, now);
    (if new.is_empty() { Action::Nothing } else { Action::Create(new) }, wait)
}

/// How many pods should be active.
fn wanted(desired: &Desired<'_>, active: usize, succeeded: usize) -> usize {
    match desired.completions() {
        Some(completions) => desired.parallelism().min(completions.saturating_sub(succeeded)),
        // After the first success no pod is added, and those that run may end.
        None if succeeded > 0 => active,
        None => desired.parallelism(),
    }
}

/// At least `at_least` pods, and those with an index that another pod has or that does not exist.
fn to_remove(desired: &Desired<'_>, active: &[Arc<Pod>], at_least: usize) -> Vec<Arc<Pod>> {
    let (mut removed, mut left) = (Vec::new(), active.to_vec());
    if desired.indexes().is_some() {
        let mut by_index: BTreeMap<Option<usize>, Vec<Arc<Pod>>> = BTreeMap::new();
        for pod in left.drain(..) {
            by_index.entry(desired.index_of(&pod)).or_default().push(pod);
        }
        removed = by_index.remove(&None).unwrap_or_default();
        for (_, mut same) in by_index {
            by_deletion_order(&mut same);
            left.extend(same.pop());
            removed.extend(same);
        }
    }
    if removed.len() < at_least {
        by_deletion_order(&mut left);
        left.truncate(at_least - removed.len());
        removed.extend(left);
    }
    removed
}

fn new_pods(
    desired: &Desired<'_>,
    pods: &[Arc<Pod>],
    active: &[Arc<Pod>],
    plan: &JobPlan,
    missing: usize,
    now: Timestamp,
) -> (Vec<NewPod>, Option<Duration>) {
    let (Some(sets), Some(completions)) = (&plan.indexes, desired.indexes()) else {
        return (vec![NewPod::default(); missing], None);
    };
    let mut taken = sets.succeeded.with(&indexes_of(active.iter()));
    if desired.replaces_only_failed() {
        taken = taken.with(&indexes_of(pods.iter().filter(|pod| pod::is_terminating(pod))));
    }
    let Some(failed) = &sets.failed else {
        let new = |index| NewPod { index: Some(index), failures: None };
        return (taken.missing(missing, completions).into_iter().map(new).collect(), None);
    };
    let (mut new, mut wait) = (Vec::new(), None);
    for index in taken.union(failed).missing(missing, completions) {
        let replaced = sets.awaiting.get(&index).map(|pod| &**pod);
        let left = replaced.map_or(Duration::ZERO, |pod| per_index::remaining(pod, now));
        if left.is_zero() {
            new.push(NewPod {
                index: Some(index),
                failures: Some(per_index::counts_after(desired, replaced)),
            });
        } else {
            wait = wait.into_iter().chain([left]).min();
        }
    }
    (new, wait)
}

fn indexes_of<'a>(pods: impl Iterator<Item = &'a Arc<Pod>>) -> BTreeSet<usize> {
    pods.filter_map(|pod| completion_index(pod)).collect()
}
