//! What a Deployment does next about its ReplicaSets: create, scale, delete, roll back.

use super::{
    progress::{self, Situation, available, running, wanted},
    revision,
    sizes::{self, Share, Size, Strategy, desired},
    template::{self, HASH_LABEL},
};
use jiff::Timestamp;
use k8s_openapi::{
    api::apps::v1::{
        Deployment, DeploymentCondition, DeploymentSpec, DeploymentStatus, ReplicaSet, ReplicaSetSpec,
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::ResourceExt;
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

/// Kubernetes: the longest name of a ReplicaSet.
const MAX_NAME: usize = 253;

/// What is known about a Deployment.
#[derive(Clone, Debug)]
pub(super) struct ObservedSets<'a> {
    pub(super) deployment: &'a Deployment,
    pub(super) spec: &'a DeploymentSpec,
    /// The reference to the Deployment.
    pub(super) owner: OwnerReference,
    /// The ReplicaSets that it controls.
    pub(super) sets: Vec<ReplicaSet>,
    /// The UIDs of the ReplicaSets that have pods which have not ended.
    pub(super) with_pods: BTreeSet<String>,
    pub(super) now: Timestamp,
}

/// What is to be written, in this order.
#[derive(Clone, Debug)]
pub(super) struct RolloutPlan {
    /// The ReplicaSet of a new template.
    pub(super) create: Option<Box<ReplicaSet>>,
    pub(super) updates: Vec<SetUpdate>,
    /// The ReplicaSets beyond the limit of the history.
    pub(super) delete: Vec<String>,
    /// The revision of the Deployment, if it has a ReplicaSet with its template.
    pub(super) revision: Option<String>,
    /// The status when all that is done.
    pub(super) status: DeploymentStatus,
    /// When the rollout may have timed out.
    pub(super) check_after: Option<Duration>,
}

/// A ReplicaSet as it shall be.
#[derive(Clone, Debug)]
pub(super) struct SetUpdate {
    pub(super) set: ReplicaSet,
    pub(super) replicas_before: i32,
}

/// The ReplicaSets of a Deployment as they change in a plan.
struct Draft<'a> {
    observed: &'a ObservedSets<'a>,
    strategy: Strategy,
    desired: i32,
    /// In the order of their creation.
    old: Vec<ReplicaSet>,
    new: Option<ReplicaSet>,
    /// The new ReplicaSet does not exist yet.
    is_created: bool,
    conditions: Vec<DeploymentCondition>,
}

/// Which status is reported.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Report {
    Counts,
    Rollout,
}

pub(super) fn plan(observed: &ObservedSets<'_>) -> RolloutPlan {
    let mut draft = Draft::new(observed);
    let (deployment, spec) = (observed.deployment, observed.spec);
    if deployment.metadata.deletion_timestamp.is_some() {
        return draft.finish(Report::Counts, Vec::new());
    }
    progress::note_pause(&mut draft.conditions, spec, observed.now);
    draft.annotate_new();
    let is_paused = spec.paused.unwrap_or_default();
    if is_paused || draft.is_scaling() {
        draft.scale();
        let is_rolling_back = revision::rollback_to(deployment).is_some();
        let delete = if is_paused && !is_rolling_back { draft.beyond_history() } else { Vec::new() };
        return draft.finish(Report::Counts, delete);
    }
    let before: Vec<i32> = draft.all().map(wanted).collect();
    match draft.strategy {
        Strategy::Recreate => draft.recreate(),
        Strategy::RollingUpdate(limits) => draft.roll(limits),
    }
    let is_resized = !before.into_iter().eq(draft.all().map(wanted));
    let status = deployment.status.clone().unwrap_or_default();
    let is_cleaned = !is_resized && progress::is_complete(deployment, spec, &status);
    let delete = if is_cleaned { draft.beyond_history() } else { Vec::new() };
    draft.finish(Report::Rollout, delete)
}

/// The ReplicaSet with the template of the Deployment, if there is one, and the others; in the order of their
/// creation.
///
/// Of several with the same template it is the oldest one.
pub(super) fn split(
    spec: &DeploymentSpec,
    mut sets: Vec<ReplicaSet>,
) -> (Option<ReplicaSet>, Vec<ReplicaSet>) {
    sets.sort_by_key(created);
    let is_new = |set: &ReplicaSet| {
        let own = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
        own.is_some_and(|own| template::is_same(own, &spec.template))
    };
    let new = sets.iter().position(is_new).map(|place| sets.remove(place));
    (new, sets)
}

/// The name of the ReplicaSet with this hash.
pub(super) fn set_name(deployment: &str, hash: &str) -> String {
    // Names are ASCII.
    let kept = deployment.get(..MAX_NAME - 1 - hash.len()).unwrap_or(deployment);
    format!("{kept}-{hash}")
}

fn created(set: &ReplicaSet) -> (Option<Timestamp>, String) {
    (set.metadata.creation_timestamp.as_ref().map(|time| time.0), set.name_any())
}

impl<'a> Draft<'a> {
    fn new(observed: &'a ObservedSets<'a>) -> Draft<'a> {
        let (new, old) = split(observed.spec, observed.sets.clone());
        let status = observed.deployment.status.as_ref();
        Draft {
            observed,
            strategy: Strategy::of(observed.spec),
            desired: desired(observed.spec),
            old,
            new,
            is_created: false,
            conditions: status.and_then(|status| status.conditions.clone()).unwrap_or_default(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &ReplicaSet> {
        self.old.iter().chain(&self.new)
    }

    /// Brings the annotations of the new ReplicaSet up to date.
    fn annotate_new(&mut self) {
        let Some(new) = &mut self.new else { return };
        let ObservedSets { deployment, spec, now, .. } = *self.observed;
        revision::annotate(new, deployment, revision::latest(&self.old) + 1);
        if let Some(own) = &mut new.spec
            && own.min_ready_seconds.unwrap_or_default() != spec.min_ready_seconds.unwrap_or_default()
        {
            own.min_ready_seconds = spec.min_ready_seconds;
        }
        let found = format!("Found new replica set {:?}", new.name_any());
        progress::note_new_set(&mut self.conditions, spec, (progress::NEW_SET_FOUND, &found), now);
    }

    /// Whether the Deployment was scaled since its ReplicaSets were.
    fn is_scaling(&self) -> bool {
        let differs = |set: &ReplicaSet| {
            wanted(set) > 0 && revision::desired_replicas(set).is_some_and(|known| known != self.desired)
        };
        // Several sets are scaled in proportion only during a rolling update.
        let may_scale = self.strategy != Strategy::Recreate || self.single().is_some();
        may_scale && self.all().any(differs)
    }

    /// The only active ReplicaSet; if none is active, the newest one.
    fn single(&self) -> Option<String> {
        let mut active = self.all().filter(|set| wanted(set) > 0);
        match (active.next(), active.next()) {
            (Some(only), None) => Some(only.name_any()),
            (None, _) => self.new.as_ref().or(self.old.last()).map(ResourceExt::name_any),
            _ => None,
        }
    }

    /// Scales outside of the steps of a rollout: the only active ReplicaSet, or all of them in proportion.
    fn scale(&mut self) {
        let (desired, strategy) = (self.desired, self.strategy);
        if let Some(name) = self.single() {
            if let Some(set) = self.old.iter_mut().chain(&mut self.new).find(|set| set.name_any() == name) {
                resize(set, desired, desired, strategy);
                revision::record_size(set, desired, strategy);
            }
        } else if self.new.as_ref().is_some_and(|new| is_saturated(new, desired)) {
            self.old.iter_mut().for_each(|set| resize(set, 0, desired, strategy));
        } else if strategy != Strategy::Recreate {
            self.scale_in_proportion();
        }
    }

    fn scale_in_proportion(&mut self) {
        let (desired, strategy) = (self.desired, self.strategy);
        let surge = strategy.max_surge();
        let allowed = if desired > 0 { desired + surge } else { 0 };
        let is_growing = allowed > self.all().map(wanted).sum::<i32>();
        let status = self.observed.deployment.status.as_ref();
        let reported = status.and_then(|status| status.replicas).unwrap_or_default();
        let mut active: Vec<&mut ReplicaSet> =
            self.old.iter_mut().chain(&mut self.new).filter(|set| wanted(set) > 0).collect();
        // The largest first. Among equals the newest grows first, and the oldest shrinks first.
        active.sort_by_key(|set| created(set));
        if is_growing {
            active.reverse();
        }
        active.sort_by_key(|set| Reverse(wanted(set)));
        let share = |set: &&mut ReplicaSet| Share {
            replicas: wanted(set),
            max_replicas_before: revision::max_replicas(set),
        };
        let shares: Vec<Share> = active.iter().map(share).collect();
        for (set, size) in active.into_iter().zip(sizes::proportional(desired, surge, reported, &shares)) {
            resize(set, size, desired, strategy);
            revision::record_size(set, desired, strategy);
        }
    }

    /// Ends the old pods, waits for their end, and then starts new ones.
    fn recreate(&mut self) {
        let (desired, strategy) = (self.desired, self.strategy);
        let is_active = self.old.iter().any(|set| wanted(set) > 0);
        let has_pods = |set: &ReplicaSet| {
            running(set) > 0
                || self.observed.with_pods.contains(set.metadata.uid.as_deref().unwrap_or_default())
        };
        if is_active {
            self.old.iter_mut().for_each(|set| resize(set, 0, desired, strategy));
        } else if !self.old.iter().any(has_pods) {
            match &mut self.new {
                Some(new) => resize(new, desired, desired, strategy),
                None => self.create_new(),
            }
        }
    }

    /// One step of a rolling update.
    fn roll(&mut self, limits: sizes::Limits) {
        if self.new.is_none() {
            self.create_new();
        }
        let Some(new) = &mut self.new else { return };
        let size = |set: &ReplicaSet| Size { replicas: wanted(set), available: available(set) };
        let old: Vec<Size> = self.old.iter().map(size).collect();
        let next = sizes::next_step(self.desired, limits, size(new), &old);
        resize(new, next.new, self.desired, self.strategy);
        for (set, size) in self.old.iter_mut().zip(next.old) {
            resize(set, size, self.desired, self.strategy);
        }
    }

    /// A new ReplicaSet for the template of the Deployment.
    fn create_new(&mut self) {
        let ObservedSets { deployment, spec, ref owner, now, .. } = *self.observed;
        let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
        let hash = template::hash(&spec.template, collisions);
        let labelled = |labels: Option<&BTreeMap<String, String>>| {
            let mut labels = labels.cloned().unwrap_or_default();
            labels.insert(HASH_LABEL.to_owned(), hash.clone());
            Some(labels)
        };
        let mut pods = spec.template.clone();
        let metadata = pods.metadata.get_or_insert_default();
        metadata.labels = labelled(metadata.labels.as_ref());
        let mut selector = spec.selector.clone();
        selector.match_labels = labelled(selector.match_labels.as_ref());
        let others = self.old.iter().map(wanted).sum();
        let mut set = ReplicaSet {
            metadata: ObjectMeta {
                name: Some(set_name(&deployment.name_any(), &hash)),
                namespace: deployment.namespace(),
                labels: metadata.labels.clone(),
                owner_references: Some(vec![owner.clone()]),
                ..ObjectMeta::default()
            },
            spec: Some(ReplicaSetSpec {
                replicas: Some(self.strategy.new_replicas(self.desired, 0, others)),
                min_ready_seconds: spec.min_ready_seconds,
                selector,
                template: Some(pods),
            }),
            status: None,
        };
        revision::annotate(&mut set, deployment, revision::latest(&self.old) + 1);
        revision::record_size(&mut set, self.desired, self.strategy);
        let created = format!("Created new replica set {:?}", set.name_any());
        progress::note_new_set(&mut self.conditions, spec, (progress::NEW_SET_CREATED, &created), now);
        (self.new, self.is_created) = (Some(set), true);
    }

    /// The oldest revisions beyond the limit of the history, unless they still have pods.
    fn beyond_history(&self) -> Vec<String> {
        let Some(limit) = self.observed.spec.revision_history_limit.filter(|limit| *limit != i32::MAX) else {
            return Vec::new();
        };
        let mut old: Vec<&ReplicaSet> =
            self.old.iter().filter(|set| set.metadata.deletion_timestamp.is_none()).collect();
        old.sort_by_key(|set| revision::of(set));
        let excess = old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        let is_empty = |set: &&&ReplicaSet| {
            let observed = set.status.as_ref().and_then(|status| status.observed_generation);
            running(set) == 0 && wanted(set) == 0 && set.metadata.generation <= observed.or(Some(0))
        };
        old.iter().take(excess).filter(is_empty).map(|set| set.name_any()).collect()
    }

    fn finish(self, report: Report, delete: Vec<String>) -> RolloutPlan {
        let ObservedSets { deployment, spec, now, ref sets, .. } = *self.observed;
        let all: Vec<ReplicaSet> = self.all().cloned().collect();
        let situation = Situation {
            deployment,
            spec,
            strategy: self.strategy,
            sets: &all,
            new_set: self.new.as_ref(),
            now,
        };
        let status = match report {
            Report::Counts => progress::counted(&situation, self.conditions),
            Report::Rollout => progress::of_rollout(&situation, self.conditions),
        };
        let is_rollout = report == Report::Rollout;
        let check_after = is_rollout.then(|| progress::check_after(&situation, &status)).flatten();
        let revision = self.new.as_ref().and_then(|new| new.annotations().get(revision::REVISION).cloned());
        let (create, existing) = match self.new {
            Some(new) if self.is_created => (Some(Box::new(new)), None),
            new => (None, new),
        };
        let changed = existing.into_iter().chain(self.old).filter_map(|set| {
            let before = sets.iter().find(|before| before.metadata.uid == set.metadata.uid)?;
            (*before != set).then(|| SetUpdate { replicas_before: wanted(before), set })
        });
        let updates = changed.collect();
        RolloutPlan { create, updates, delete, revision, status, check_after }
    }
}

/// Whether both sides agree that the new ReplicaSet has all pods.
fn is_saturated(new: &ReplicaSet, desired: i32) -> bool {
    let known = revision::desired_replicas(new);
    wanted(new) == desired && known == Some(desired) && available(new) == desired
}

/// Scales a ReplicaSet, and records for which size of the Deployment.
fn resize(set: &mut ReplicaSet, size: i32, desired: i32, strategy: Strategy) {
    if wanted(set) != size {
        if let Some(spec) = &mut set.spec {
            spec.replicas = Some(size);
        }
        revision::record_size(set, desired, strategy);
    }
}

#[cfg(test)]
mod tests;
