//! Tells how far a cluster is: status, events, metrics.

use crate::{
    children, metrics,
    observe::{Observed, member_name, ordinal},
    plan::{Plan, Restore, Stage},
    v1::{MySQLCluster, MySQLClusterStatus},
};
use kube::ResourceExt;
use operator::{
    Context, Failure, Key, Next, Timestamp,
    condition::{self, Report},
    status,
};

const READY: &str = "Ready";
const AVAILABLE: &str = "Available";
const RESTORED: &str = "Restored";

/// An event to record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NewEvent {
    is_warning: bool,
    reason: &'static str,
    action: &'static str,
    note: String,
}

pub(crate) async fn write(
    context: &Context<()>,
    key: &Key,
    cluster: &MySQLCluster,
    observed: &Observed,
    plan: &Plan,
) -> Result<Next, Failure> {
    let before = cluster.status.clone().unwrap_or_default();
    let after = status_after(cluster, observed, plan, context.wall());
    status::set(&context.namespaced::<MySQLCluster>(key), cluster, &after).await?;
    for NewEvent { is_warning, reason, action, note } in new_events(cluster, observed, &before, &after) {
        match is_warning {
            true => context.events().warning(cluster, reason, action, note),
            false => context.events().normal(cluster, reason, action, note),
        }
        if reason == FAILED_OVER {
            metrics::count_failover(context.metrics(), key);
        }
    }
    metrics::set_gauges(context.metrics(), key, cluster, plan, after.backups.len());
    if before.version.is_none() && after.version.is_some() {
        metrics::observe_start(context.metrics(), cluster, context.wall());
    }
    Ok(match plan.stage {
        Stage::Running => Next::Settled,
        Stage::Restoring => Next::WaitFor("the restore"),
        _ => Next::WaitFor("members"),
    })
}

fn status_after(
    cluster: &MySQLCluster,
    observed: &Observed,
    plan: &Plan,
    now: Timestamp,
) -> MySQLClusterStatus {
    let mut status = cluster.status.clone().unwrap_or_default();
    let wanted = cluster.spec.replicas;
    status.observed_generation = cluster.metadata.generation;
    status.phase = Some(format!("{:?}", plan.stage));
    status.ready = Some(format!("{}/{wanted}", plan.ready));
    status.replicas = observed.members.len() as i32;
    status.selector = Some(children::selector(cluster));
    status.primary = plan.primary.map(|ordinal| member_name(cluster, ordinal));
    status.storage_provisioned =
        observed.claims.iter().filter(|claim| claim.is_bound).count() >= wanted as usize;
    status.backups = observed.backups(&cluster.name_any());
    if matches!(plan.stage, Stage::Running | Stage::Restoring) {
        status.version = Some(cluster.spec.version.clone());
    }
    if plan.restore == Restore::Done {
        status.restored.clone_from(&cluster.spec.restore_from);
    }
    let primary = plan.primary.and_then(|ordinal| observed.members.get(&ordinal));
    let has_primary = primary.is_some_and(|member| member.is_ready);
    let ready = format!("{} of {wanted} members are ready", plan.ready);
    let available = match (&status.primary, has_primary) {
        (Some(pod), true) => Report::new(AVAILABLE, true, "PrimaryReady", format!("{pod} takes writes")),
        _ => Report::new(AVAILABLE, false, "NoPrimary", "no member is ready to take writes"),
    };
    let reports = [
        Some(Report::new(READY, plan.stage == Stage::Running, format!("{:?}", plan.stage), ready)),
        Some(available),
        restored(cluster, &plan.restore),
    ];
    for report in reports.into_iter().flatten() {
        condition::set(&mut status.conditions, report.of(cluster), now);
    }
    if plan.restore == Restore::NotWanted {
        condition::remove(&mut status.conditions, RESTORED);
    }
    status
}

fn restored(cluster: &MySQLCluster, restore: &Restore) -> Option<Report> {
    let backup = cluster.spec.restore_from.as_deref()?;
    let (reason, message) = match restore {
        Restore::NotWanted => return None,
        Restore::Done => ("Restored", format!("{backup} is loaded")),
        Restore::NotFound => ("BackupNotFound", format!("no backup {backup} is complete")),
        Restore::Later => ("WaitsForMembers", "all members must be ready first".to_owned()),
        Restore::Running { .. } => ("Restoring", format!("{backup} is being loaded")),
        Restore::Failed { .. } => ("RestoreFailed", format!("{backup} could not be loaded")),
    };
    Some(Report::new(RESTORED, *restore == Restore::Done, reason, message))
}

const FAILED_OVER: &str = "FailedOver";

fn new_events(
    cluster: &MySQLCluster,
    observed: &Observed,
    before: &MySQLClusterStatus,
    after: &MySQLClusterStatus,
) -> Vec<NewEvent> {
    let mut events = Vec::new();
    let mut add = |is_warning, reason, action, note: String| {
        events.push(NewEvent { is_warning, reason, action, note });
    };
    if let (Some(old), Some(new)) = (&before.primary, &after.primary)
        && old != new
    {
        let old_member = ordinal(old).and_then(|ordinal| observed.members.get(&ordinal));
        match old_member.is_some_and(|member| member.is_ready) {
            true => add(false, "SwitchedOver", "Switch", format!("{new} takes over from {old}, which goes")),
            false => {
                add(true, FAILED_OVER, "FailOver", format!("{new} takes over from {old}, which is lost"))
            }
        }
    }
    let phase = after.phase.as_deref().filter(|phase| before.phase.as_deref() != Some(*phase));
    let (ready, version) = (after.ready.as_deref().unwrap_or_default(), &cluster.spec.version);
    match phase {
        Some("Upgrading") => add(false, "Upgrading", "Upgrade", format!("one member at a time to {version}")),
        Some("Degraded") => add(true, "Degraded", "Observe", format!("{ready} members are ready")),
        Some("Running") => add(false, "Running", "Observe", format!("{ready} members run {version}")),
        _ => {}
    }
    for backup in after.backups.iter().filter(|backup| !before.backups.contains(backup)) {
        add(false, "BackedUp", "BackUp", format!("saved as {backup}"));
    }
    let reason = |status: &MySQLClusterStatus| {
        condition::find(&status.conditions, RESTORED).map(|it| (it.reason.clone(), it.message.clone()))
    };
    match reason(after).filter(|it| reason(before).as_ref() != Some(it)) {
        Some((reason, message)) if reason == "Restored" => add(false, "Restored", "Restore", message),
        Some((reason, message)) if reason == "BackupNotFound" => {
            add(true, "BackupNotFound", "Restore", message);
        }
        Some((reason, message)) if reason == "RestoreFailed" => {
            add(true, "RestoreFailed", "Restore", message);
        }
        _ => {}
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        observe::{Member, MemberSet},
        plan::{plan, tests::cluster},
    };

    #[test]
    fn the_status_says_who_leads_and_events_say_what_has_changed() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let member = |is_ready| Member { version: "1".to_owned(), is_ready };
        let seen = |ready: [bool; 2]| Observed {
            set: Some(MemberSet { version: "1".to_owned(), partition: 0, storage: None }),
            members: [(0, member(ready[0])), (1, member(ready[1]))].into(),
            ..Observed::default()
        };
        let mut shop = cluster("1", 2, None, None);
        for (ready, phase, primary, expected) in [
            ([false, false], "Creating", None, vec![]),
            ([true, true], "Running", Some("shop-0"), vec!["Running"]),
            ([true, true], "Running", Some("shop-0"), vec![]),
            ([false, true], "Degraded", Some("shop-1"), vec!["FailedOver", "Degraded"]),
            ([false, false], "Degraded", Some("shop-1"), vec![]),
            ([true, true], "Running", Some("shop-1"), vec!["Running"]),
        ] {
            let observed = seen(ready);
            let plan = plan(&shop, &observed);
            let (before, after) = (shop.status.clone().unwrap(), status_after(&shop, &observed, &plan, now));
            assert_eq!((after.phase.as_deref(), after.primary.as_deref()), (Some(phase), primary));
            assert_eq!(condition::is_true(&after.conditions, AVAILABLE), ready[0] || ready[1]);
            let reasons: Vec<_> =
                new_events(&shop, &observed, &before, &after).into_iter().map(|it| it.reason).collect();
            assert_eq!(reasons, expected, "{ready:?}");
            shop.status = Some(after);
        }
    }
}
