//! What there is of one cluster, read from the caches.

use crate::{
    children::{BACKUP, CLUSTER, LAST_BACKUP, MEMBER, ROLE, VERSION, backup_claim_name},
    v1::MySQLCluster,
};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::{
    ResourceExt,
    core::{Expression, Selector},
};
use operator::{Context, Failure, Key, Quantity, Timestamp};
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) set: Option<MemberSet>,
    /// By their number.
    pub(crate) members: BTreeMap<i32, Member>,
    pub(crate) claims: Vec<Claim>,
    pub(crate) backup_claim: Option<Claim>,
    /// Of all clusters in the namespace: a backup of another one may be restored.
    pub(crate) jobs: Vec<BackupJob>,
}

/// The StatefulSet, as it was applied last.
#[derive(Clone, Debug)]
pub(crate) struct MemberSet {
    pub(crate) version: String,
    pub(crate) partition: i32,
    /// Kubernetes: the template of claims never changes.
    pub(crate) storage: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) version: String,
    pub(crate) is_ready: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) size: Option<Quantity>,
    pub(crate) is_bound: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct BackupJob {
    pub(crate) name: String,
    pub(crate) cluster: String,
    pub(crate) role: String,
    pub(crate) state: JobState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    Unfinished,
    Failed,
    Complete(Timestamp),
}

impl Observed {
    pub(crate) fn of(context: &Context<()>, key: &Key) -> Result<Observed, Failure> {
        let namespace = key.namespace().unwrap_or("default");
        let labels = [(CLUSTER, key.name()), (ROLE, MEMBER)];
        let members: Selector =
            labels.into_iter().map(|(label, value)| Expression::Equal(label.into(), value.into())).collect();
        let pods = context.view::<Pod>()?.labelled_in(namespace, &members)?;
        let claims = context.view::<PersistentVolumeClaim>()?.labelled_in(namespace, &members)?;
        let backups = Key::new(key.namespace(), &backup_claim_name(key.name()));
        let backups = context.get::<PersistentVolumeClaim>(&backups)?;
        let jobs = context.view::<Job>()?.in_namespace(namespace)?;
        Ok(Observed {
            set: context.get::<StatefulSet>(key)?.map(|set| MemberSet::of(&set)),
            members: pods
                .iter()
                .filter_map(|pod| Some((ordinal(&pod.name_any())?, Member::of(pod))))
                .collect(),
            claims: claims.iter().map(|claim| Claim::of(claim)).collect(),
            backup_claim: backups.map(|claim| Claim::of(&claim)),
            jobs: jobs.iter().map(|job| BackupJob::of(job)).collect(),
        })
    }

    /// The backup of this name, if it is complete.
    pub(crate) fn backup(&self, name: &str) -> Option<&BackupJob> {
        self.jobs.iter().find(|job| job.name == name && job.is_backup())
    }

    /// The complete backups of this cluster, the newest last.
    pub(crate) fn backups(&self, cluster: &str) -> Vec<String> {
        let mut jobs: Vec<_> =
            self.jobs.iter().filter(|job| job.cluster == cluster && job.is_backup()).collect();
        jobs.sort_by_key(|job| (job.state.at(), &job.name));
        jobs.into_iter().map(|job| job.name.clone()).collect()
    }
}

impl MemberSet {
    fn of(set: &StatefulSet) -> MemberSet {
        let set = set.spec.clone().unwrap_or_default();
        let labels = set.template.metadata.and_then(|metadata| metadata.labels).unwrap_or_default();
        let update = set.update_strategy.and_then(|strategy| strategy.rolling_update);
        let claim = set.volume_claim_templates.and_then(|claims| claims.into_iter().next());
        MemberSet {
            version: labels.get(VERSION).cloned().unwrap_or_default(),
            partition: update.and_then(|update| update.partition).unwrap_or_default(),
            storage: claim.and_then(|claim| size(&claim)),
        }
    }
}

impl Member {
    fn of(pod: &Pod) -> Member {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
        let is_ready =
            |it: &k8s_openapi::api::core::v1::PodCondition| it.type_ == "Ready" && it.status == "True";
        Member {
            version: pod.labels().get(VERSION).cloned().unwrap_or_default(),
            is_ready: conditions.unwrap_or_default().iter().any(is_ready)
                && pod.metadata.deletion_timestamp.is_none(),
        }
    }
}

impl Claim {
    /// Kubernetes: a claim cannot change before it has its volume.
    pub(crate) fn can_grow_to(&self, size: &Option<Quantity>) -> bool {
        self.is_bound && self.size.is_some() && self.size < *size
    }

    fn of(claim: &PersistentVolumeClaim) -> Claim {
        let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
        let size = size(claim).and_then(|size| size.parse().ok());
        Claim { name: claim.name_any(), size, is_bound: phase == Some("Bound") }
    }
}

impl BackupJob {
    fn of(job: &Job) -> BackupJob {
        let label = |label| job.labels().get(label).cloned().unwrap_or_default();
        BackupJob {
            name: job.name_any(),
            cluster: label(CLUSTER),
            role: label(ROLE),
            state: JobState::of(job),
        }
    }

    fn is_backup(&self) -> bool {
        [BACKUP, LAST_BACKUP].contains(&self.role.as_str()) && matches!(self.state, JobState::Complete(_))
    }
}

impl JobState {
    fn of(job: &Job) -> JobState {
        let Some(status) = &job.status else { return JobState::Unfinished };
        let conditions = status.conditions.as_deref().unwrap_or_default();
        let has = |kind: &str| conditions.iter().any(|it| it.type_ == kind && it.status == "True");
        match &status.completion_time {
            Some(time) if has("Complete") => JobState::Complete(time.0),
            _ if has("Failed") => JobState::Failed,
            _ => JobState::Unfinished,
        }
    }

    fn at(self) -> Option<Timestamp> {
        if let JobState::Complete(time) = self { Some(time) } else { None }
    }
}

fn size(claim: &PersistentVolumeClaim) -> Option<String> {
    let requests = claim.spec.as_ref()?.resources.as_ref()?.requests.as_ref()?;
    requests.get("storage").map(|size| size.0.clone())
}

/// The number at the end of a pod's name.
pub(crate) fn ordinal(pod: &str) -> Option<i32> {
    pod.rsplit_once('-')?.1.parse().ok()
}

/// The cluster that an object with our labels belongs to.
pub(crate) fn owner<K: ResourceExt>(object: &K) -> Vec<Key> {
    let cluster = object.labels().get(CLUSTER);
    cluster.map(|name| Key::new(object.namespace().as_deref(), name)).into_iter().collect()
}

/// The name of a member.
pub(crate) fn member_name(cluster: &MySQLCluster, ordinal: i32) -> String {
    format!("{}-{ordinal}", cluster.name_any())
}
