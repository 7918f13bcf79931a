//! Failures of each index of its own: the limit, the back-off, and the annotations that carry the count.

use super::IndexSets;
use crate::workload::job::{
    back_off,
    desired::{Desired, annotation},
    failure_policy::{PolicyVerdict, judge},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

/// Kubernetes: how often the index had failed before this pod, and how often that was ignored.
pub(in super::super) const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(in super::super) const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// How often an index has failed, as the annotations of its pods say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct FailureCounts {
    pub(in super::super) counted: usize,
    pub(in super::super) ignored: usize,
}

impl FailureCounts {
    fn before(pod: &Pod) -> FailureCounts {
        // Anything but a number of 32 bits was not written by this controller.
        let number = |name| annotation(pod, name).and_then(|text| text.parse::<i32>().ok());
        let count = |name| number(name).and_then(|number| usize::try_from(number).ok()).unwrap_or_default();
        FailureCounts { counted: count(FAILURES), ignored: count(IGNORED_FAILURES) }
    }

    fn total(self) -> usize {
        self.counted + self.ignored
    }
}

/// Whether a pod has failed, and its index must not be tried again.
pub(super) fn is_last_failure(desired: &Desired<'_>, pod: &Pod, limit: usize) -> bool {
    desired.is_failed(pod)
        && match judge(desired.failure_policy(), pod) {
            PolicyVerdict::FailIndex => true,
            PolicyVerdict::Ignore => false,
            PolicyVerdict::Count | PolicyVerdict::FailJob(_) => FailureCounts::before(pod).counted >= limit,
        }
}

/// The counts for the pod that comes after `replaced`.
pub(super) fn counts_after(desired: &Desired<'_>, replaced: Option<&Pod>) -> FailureCounts {
    let Some(pod) = replaced else { return FailureCounts::default() };
    let FailureCounts { counted, ignored } = FailureCounts::before(pod);
    match judge(desired.failure_policy(), pod) {
        PolicyVerdict::Ignore => FailureCounts { counted, ignored: ignored + 1 },
        _ => FailureCounts { counted: counted + 1, ignored },
    }
}

/// How long the index of a failed pod waits for its next pod.
pub(super) fn remaining(failed: &Pod, now: Timestamp) -> Duration {
    let failures = FailureCounts::before(failed).total() + 1;
    back_off::remaining(failures, Some(back_off::finished_at(failed)), now)
}

/// The last failed pod of each index that has neither ended nor an active pod.
pub(super) fn awaiting<'a>(
    desired: &Desired<'_>,
    tracked: impl Iterator<Item = &'a Arc<Pod>>,
    active: &[Arc<Pod>],
    sets: &IndexSets,
) -> BTreeMap<usize, Arc<Pod>> {
    let is_active: BTreeSet<usize> = active.iter().filter_map(|pod| desired.index_of(pod)).collect();
    let has_ended = |index: usize| {
        let has_failed = sets.failed.as_ref().is_some_and(|failed| failed.contains(index));
        sets.succeeded.contains(index) || has_failed
    };
    let mut last: BTreeMap<usize, Arc<Pod>> = BTreeMap::new();
    for pod in tracked.filter(|pod| desired.is_failed(pod)) {
        let Some(index) = desired.index_of(pod) else { continue };
        if has_ended(index) || is_active.contains(&index) {
            continue;
        }
        let order = |pod: &Pod| (FailureCounts::before(pod).total(), back_off::finished_at(pod));
        let is_later = last.get(&index).is_none_or(|known| {
            let (known, new) = (order(known), order(pod));
            known.0 <= new.0 && known.1 <= new.1
        });
        if is_later {
            last.insert(index, Arc::clone(pod));
        }
    }
    last
}
