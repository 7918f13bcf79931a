//! What to do about a cluster: a pure function of what is asked for and what there is.

use crate::{
    children,
    observe::{JobState, MemberSet, Observed, ordinal},
    v1::MySQLCluster,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The member that takes writes; `None` before the first one is ready.
    pub(crate) primary: Option<i32>,
    /// Members from this number on have the version of the spec.
    pub(crate) partition: i32,
    /// The size in the template of claims.
    pub(crate) template_storage: String,
    /// The claims of members that are too small.
    pub(crate) grow: Vec<String>,
    /// Whether the claim of the backups is missing or too small.
    pub(crate) applies_backup_claim: bool,
    pub(crate) restore: Restore,
    pub(crate) stage: Stage,
    pub(crate) ready: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Creating,
    Upgrading,
    Degraded,
    Restoring,
    Running,
}

/// How far the backup is that `restoreFrom` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Restore {
    NotWanted,
    /// There is no such backup.
    NotFound,
    /// Members are missing, or are being upgraded.
    Later,
    /// A Job loads it, of this cluster.
    Running {
        of: String,
    },
    Failed {
        of: String,
    },
    Done,
}

/// The members that should be there.
struct Members<'a> {
    observed: &'a Observed,
    count: i32,
    version: &'a str,
}

pub(crate) fn plan(cluster: &MySQLCluster, observed: &Observed) -> Plan {
    let (count, version) = (cluster.spec.replicas, cluster.spec.version.as_str());
    let members = Members { observed, count, version };
    let primary_now = cluster.status.as_ref().and_then(|status| ordinal(status.primary.as_deref()?));
    let is_complete = members.unready().is_empty() && members.next_upgrade().is_none();
    let restore = restore(cluster, observed, is_complete);
    let partition = members.partition(matches!(restore, Restore::Running { .. }));
    // A member below the partition is not replaced yet.
    let next = members.next_upgrade().filter(|next| *next >= partition);
    let stage = match cluster.complete_version() {
        None if !is_complete => Stage::Creating,
        Some(before) if before != version && !is_complete => Stage::Upgrading,
        _ if !is_complete => Stage::Degraded,
        _ if matches!(restore, Restore::Running { .. }) => Stage::Restoring,
        _ => Stage::Running,
    };
    let storage = &cluster.spec.storage;
    let template_storage = observed.set.as_ref().and_then(|set| set.storage.clone());
    let size = storage.quantity();
    let growing = observed.claims.iter().filter(|claim| claim.can_grow_to(&size));
    Plan {
        primary: members.primary(primary_now, next),
        partition,
        template_storage: template_storage.unwrap_or_else(|| storage.size.clone()),
        grow: growing.map(|claim| claim.name.clone()).collect(),
        applies_backup_claim: cluster.spec.backup.is_some()
            && observed.backup_claim.as_ref().is_none_or(|claim| claim.can_grow_to(&size)),
        restore,
        stage,
        ready: count - members.unready().len() as i32,
    }
}

impl Members<'_> {
    fn is_ready(&self, ordinal: i32) -> bool {
        ordinal < self.count && self.observed.members.get(&ordinal).is_some_and(|member| member.is_ready)
    }

    fn has_version(&self, ordinal: i32) -> bool {
        self.observed.members.get(&ordinal).is_some_and(|member| member.version == self.version)
    }

    fn unready(&self) -> Vec<i32> {
        (0..self.count).filter(|ordinal| !self.is_ready(*ordinal)).collect()
    }

    /// StatefulSets replace from the last member down. One that is missing gets its version when it is created.
    fn next_upgrade(&self) -> Option<i32> {
        let present = self.observed.members.keys().rev().copied();
        present.filter(|ordinal| *ordinal < self.count).find(|ordinal| !self.has_version(*ordinal))
    }

    /// Goes down by one only while all other members are ready: never is more than one away for an upgrade. A restore
    /// is not interrupted.
    fn partition(&self, is_restoring: bool) -> i32 {
        let (Some(next), Some(set)) = (self.next_upgrade(), &self.observed.set) else { return 0 };
        let others_are_ready = self.unready().iter().all(|ordinal| *ordinal == next);
        match set {
            _ if others_are_ready && !is_restoring => next,
            MemberSet { version, partition, .. } if version == self.version => *partition,
            _ => self.count,
        }
    }

    /// Stays with the member that it is, unless that is not ready, or the next one to be replaced: then a member takes
    /// over that has been upgraded already, if there is one.
    fn primary(&self, now: Option<i32>, next: Option<i32>) -> Option<i32> {
        let can_lead = |ordinal: &i32| self.is_ready(*ordinal) && Some(*ordinal) != next;
        if let Some(now) = now.filter(can_lead) {
            return Some(now);
        }
        let best =
            (0..self.count).filter(can_lead).min_by_key(|ordinal| (!self.has_version(*ordinal), *ordinal));
        best.or(now)
    }
}

fn restore(cluster: &MySQLCluster, observed: &Observed, is_complete: bool) -> Restore {
    let Some(wanted) = &cluster.spec.restore_from else { return Restore::NotWanted };
    if cluster.status.as_ref().is_some_and(|status| status.restored.as_ref() == Some(wanted)) {
        return Restore::Done;
    }
    let Some(backup) = observed.backup(wanted) else { return Restore::NotFound };
    let of = backup.cluster.clone();
    let name = children::restore_name(cluster, wanted);
    match observed.jobs.iter().find(|job| job.name == name).map(|job| job.state) {
        Some(JobState::Complete(_)) => Restore::Done,
        Some(JobState::Failed) => Restore::Failed { of },
        Some(JobState::Unfinished) => Restore::Running { of },
        None if is_complete => Restore::Running { of },
        None => Restore::Later,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{
        observe::{BackupJob, Claim, Member},
        v1::{MySQLClusterSpec, MySQLClusterStatus},
    };
    use serde_json::json;

    pub(crate) fn cluster(
        version: &str,
        replicas: i32,
        complete: Option<&str>,
        primary: Option<&str>,
    ) -> MySQLCluster {
        let spec = json!({"version": version, "replicas": replicas, "storage": {"size": "1Gi"}});
        let mut cluster =
            MySQLCluster::new("shop", serde_json::from_value::<MySQLClusterSpec>(spec).unwrap());
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (version, primary) = (owned(complete), owned(primary));
        cluster.status = Some(MySQLClusterStatus { version, primary, ..MySQLClusterStatus::default() });
        cluster
    }

    /// Members as `2+`: of version 2, ready; `1-`: of version 1, not ready; `.`: none.
    fn observed(members: &str, set: (&str, i32)) -> Observed {
        let member = |(ordinal, text): (usize, &str)| {
            let version = text.strip_suffix(['+', '-'])?.to_owned();
            Some((ordinal as i32, Member { version, is_ready: text.ends_with('+') }))
        };
        let (version, partition) = (set.0.to_owned(), set.1);
        Observed {
            set: Some(MemberSet { version, partition, storage: Some("1Gi".to_owned()) }),
            members: members.split(' ').enumerate().filter_map(member).collect(),
            ..Observed::default()
        }
    }

    #[test]
    fn members_are_upgraded_one_at_a_time_and_the_primary_is_never_the_next() {
        use Stage::*;
        for (members, set, primary, partition, next_primary, stage) in [
            // All of version 1: the last one may go.
            ("1+ 1+ 1+", ("1", 0), "shop-0", 2, 0, Upgrading),
            ("1+ 1+ 1+", ("2", 2), "shop-0", 2, 0, Upgrading),
            ("1+ 1+ .", ("2", 2), "shop-0", 2, 0, Upgrading),
            ("1+ 1+ 2-", ("2", 2), "shop-0", 2, 0, Upgrading),
            ("1+ 1+ 2+", ("2", 2), "shop-0", 1, 0, Upgrading),
            // The turn of the primary: an upgraded one takes over.
            ("1+ 2+ 2+", ("2", 1), "shop-0", 0, 1, Upgrading),
            ("1+ 1+ 1+", ("1", 0), "shop-2", 2, 0, Upgrading),
            ("2+ 2+ 2+", ("2", 0), "shop-1", 0, 1, Running),
            // Someone else is away: the upgrade waits, even before its first step.
            ("1- 1+ 1+", ("1", 0), "shop-0", 3, 1, Upgrading),
            ("1+ 1- 2+", ("2", 2), "shop-0", 1, 0, Upgrading),
            ("1- 1+ 2+", ("2", 2), "shop-0", 2, 2, Upgrading),
            ("1- 1- 1-", ("1", 0), "shop-0", 3, 0, Upgrading),
        ] {
            let plan = plan(&cluster("2", 3, Some("1"), Some(primary)), &observed(members, set));
            let seen = (plan.partition, plan.primary, plan.stage);
            assert_eq!(seen, (partition, Some(next_primary), stage), "{members}");
        }
    }

    #[test]
    fn an_upgrade_that_does_not_start_can_be_taken_back() {
        let plan = plan(&cluster("1", 3, Some("1"), Some("shop-0")), &observed("1+ 1+ 2-", ("2", 2)));
        assert_eq!((plan.partition, plan.primary, plan.stage), (2, Some(0), Stage::Degraded));
    }

    #[test]
    fn the_primary_is_a_member_that_is_ready() {
        for (members, replicas, before, expected) in [
            (". . .", 3, None, None),
            ("1- 1+ .", 3, None, Some(1)),
            ("1+ 1+ 1+", 3, Some("shop-2"), Some(2)),
            ("1+ 1+ 1-", 3, Some("shop-2"), Some(0)),
            ("1- 1- 1-", 3, Some("shop-2"), Some(2)),
            // It is about to be removed.
            ("1+ 1+ 1+", 2, Some("shop-2"), Some(0)),
        ] {
            let plan = plan(&cluster("1", replicas, Some("1"), before), &observed(members, ("1", 0)));
            assert_eq!(plan.primary, expected, "{members}");
        }
    }

    #[test]
    fn a_backup_is_restored_once_when_all_members_are_there() {
        let job = |name: &str, role: &str, state| {
            let (name, role) = (name.to_owned(), role.to_owned());
            BackupJob { name, cluster: "other".to_owned(), role, state }
        };
        let complete = JobState::Complete("2026-01-01T00:00:00Z".parse().unwrap());
        let saved = || job("night", children::BACKUP, complete);
        let shop = cluster("1", 1, Some("1"), Some("shop-0"));
        let load = |state| job(&children::restore_name(&shop, "night"), children::RESTORE, state);
        let of = "other".to_owned();
        for (jobs, members, restored, expected) in [
            (vec![], "1+", None, Restore::NotFound),
            (vec![job("night", children::BACKUP, JobState::Unfinished)], "1+", None, Restore::NotFound),
            (vec![job("night", children::RESTORE, complete)], "1+", None, Restore::NotFound),
            (vec![saved()], "1-", None, Restore::Later),
            (vec![saved()], "1+", None, Restore::Running { of: of.clone() }),
            (vec![saved(), load(JobState::Unfinished)], "1-", None, Restore::Running { of: of.clone() }),
            (vec![saved(), load(JobState::Failed)], "1+", None, Restore::Failed { of: of.clone() }),
            (vec![saved(), load(complete)], "1+", None, Restore::Done),
            (vec![], "1+", Some("night"), Restore::Done),
            (vec![], "1+", Some("evening"), Restore::NotFound),
        ] {
            let mut cluster = shop.clone();
            cluster.spec.restore_from = Some("night".to_owned());
            cluster.status.as_mut().unwrap().restored = restored.map(str::to_owned);
            let observed = Observed { jobs, ..observed(members, ("1", 0)) };
            assert_eq!(restore(&cluster, &observed, members == "1+"), expected);
        }
    }

    #[test]
    fn claims_grow_and_their_template_stays() {
        let mut cluster = cluster("1", 1, Some("1"), None);
        cluster.spec.storage.size = "2Gi".to_owned();
        let claim = |name: &str, size: &str, is_bound| Claim {
            name: name.to_owned(),
            size: size.parse().ok(),
            is_bound,
        };
        let claims = vec![
            claim("small", "1Gi", true),
            claim("equal", "2048Mi", true),
            claim("large", "3Gi", true),
            claim("unbound", "1Gi", false),
        ];
        let plan = plan(&cluster, &Observed { claims, ..observed("1+", ("1", 0)) });
        assert_eq!((plan.grow, plan.template_storage), (vec!["small".to_owned()], "1Gi".to_owned()));
    }
}
