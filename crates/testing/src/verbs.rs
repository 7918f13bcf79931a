//! What the testing API does, a file for each kind; and what follows from creating and deleting its objects.

pub(crate) mod advance;
pub(crate) mod fault;
pub(crate) mod fork;
pub(crate) mod rest;
pub(crate) mod restore;
pub(crate) mod settle;
pub(crate) mod trace;

use crate::{Cluster, definitions::TestingKind, plane::Plane, problem::Problem};
use api::time::parse_duration;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use store::ReadStore;

/// Each keeps the values of its revision in memory.
const MAX_SNAPSHOTS: usize = 100;
/// Each has a socket.
const MAX_FORKS: usize = 10_000;
/// Every request is compared with each.
const MAX_FAULTS: usize = 1_000;
/// Objects that record a restore, reset, settle, advance or trace: older ones are removed.
const MAX_RECORDS: usize = 100;

/// Refuses another object of a kind that has too many.
pub(crate) fn check_room(cluster: &Cluster, kind: TestingKind) -> Result<(), Problem> {
    let kept = cluster.kept();
    let (count, limit) = match kind {
        TestingKind::Snapshot => (kept.snapshots.len(), MAX_SNAPSHOTS),
        TestingKind::Fork => (kept.forks.len(), MAX_FORKS),
        TestingKind::Fault => (kept.faults.len(), MAX_FAULTS),
        _ => return Ok(()),
    };
    if count < limit { Ok(()) } else { Err(Problem::too_many(&kind.resource(), limit)) }
}

/// Does what a new or changed object asks for, and returns the object with its status. An object whose work failed is
/// removed.
pub(crate) async fn carry_out(
    cluster: &Arc<Cluster>,
    plane: &Plane,
    kind: TestingKind,
    object: Value,
) -> Result<Value, Problem> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let is_new = object["status"].is_null();
    if !is_new && kind != TestingKind::Clock {
        // A change of labels or the like.
        return Ok(object);
    }
    let spec = &object["spec"];
    let mut unfinished =
        Unfinished { cluster, plane, kind, name: &name, is_over: kind == TestingKind::Clock };
    let done = match kind {
        TestingKind::Snapshot => snapshot(cluster, &name).await,
        TestingKind::Restore => {
            restore::restore(cluster, spec["snapshot"].as_str().unwrap_or_default()).await
        }
        TestingKind::Reset => restore::reset(cluster).await,
        TestingKind::Fork => fork::fork(cluster, &name, spec["snapshot"].as_str()).await,
        TestingKind::Settle => settle::settle(cluster, spec).await,
        TestingKind::Clock => Ok(set_clock(cluster, spec)),
        TestingKind::Advance => advance::advance(cluster, spec).await,
        TestingKind::Fault => fault::inject(cluster, &name, spec),
        TestingKind::Trace => Ok(trace::trace(cluster, spec)),
    };
    unfinished.is_over = true;
    drop(unfinished);
    let status = match done {
        Ok(status) => status,
        Err(problem) => {
            if kind != TestingKind::Clock {
                plane.delete(kind, &name).await?;
            }
            return Err(problem);
        }
    };
    let object = plane.set_status(kind, &name, status).await?;
    if kind.is_record() {
        remove_old_records(cluster, plane, kind, name).await;
    }
    Ok(object)
}

/// An object whose work is not over. If its client leaves before that, the object is removed.
struct Unfinished<'a> {
    cluster: &'a Cluster,
    plane: &'a Plane,
    kind: TestingKind,
    name: &'a str,
    is_over: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let (plane, kind, name) = (self.plane.clone(), self.kind, self.name.to_owned());
            // It may have been deleted by its user.
            let remove = async move { drop(plane.delete(kind, &name).await) };
            self.cluster.real.spawn("object of a client that has left", remove).detach();
        }
    }
}

async fn remove_old_records(cluster: &Cluster, plane: &Plane, kind: TestingKind, name: String) {
    let oldest = {
        let mut kept = cluster.kept();
        kept.records.push_back((kind, name));
        if kept.records.len() > MAX_RECORDS { kept.records.pop_front() } else { None }
    };
    if let Some((kind, name)) = oldest {
        // It may have been deleted by its user.
        drop(plane.delete(kind, &name).await);
    }
}

/// Brings the status of objects up to date before they are read.
pub(crate) async fn refresh(cluster: &Cluster, plane: &Plane, kind: TestingKind) -> Result<(), Problem> {
    match kind {
        TestingKind::Clock => {
            let now = json!({"now": cluster.clock.wall().to_string()});
            plane.set_status(kind, "cluster", now).await?;
        }
        TestingKind::Fault => {
            let hits: Vec<(String, u64)> =
                cluster.kept().faults.iter().map(|(name, fault)| (name.clone(), fault.hits())).collect();
            for (name, hits) in hits {
                // A write that changes nothing has no effect on watches.
                plane.set_status(kind, &name, json!({"hits": hits})).await?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Ends what belonged to deleted objects.
pub(crate) async fn forget_deleted(
    cluster: &Cluster,
    plane: &Plane,
    kind: TestingKind,
) -> Result<(), Problem> {
    if !matches!(kind, TestingKind::Snapshot | TestingKind::Fork | TestingKind::Fault) {
        return Ok(());
    }
    let objects = plane.list(kind).await?;
    let names: BTreeSet<&str> = objects.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
    let mut kept = cluster.kept();
    kept.snapshots.retain(|name, _| kind != TestingKind::Snapshot || names.contains(name.as_str()));
    kept.forks.retain(|name, _| kind != TestingKind::Fork || names.contains(name.as_str()));
    kept.faults.retain(|name, fault| {
        let stays = kind != TestingKind::Fault || names.contains(name.as_str());
        if !stays {
            fault.lift();
        }
        stays
    });
    Ok(())
}

async fn snapshot(cluster: &Cluster, name: &str) -> Result<Value, Problem> {
    let state = cluster.state().await?;
    let revision = state.revision().await.map_err(Problem::of_store)?;
    let objects = state.count(store::Range::all()).await.map_err(Problem::of_store)?;
    cluster.kept().snapshots.insert(name.to_owned(), state);
    Ok(json!({"revision": revision.0, "objects": objects}))
}

fn set_clock(cluster: &Cluster, spec: &Value) -> Value {
    cluster.clock.freeze(spec["frozen"].as_bool().unwrap_or_default());
    json!({"now": cluster.clock.wall().to_string()})
}

/// The snapshot of a name.
fn find_snapshot(cluster: &Cluster, name: &str) -> Result<Arc<store::Memory>, Problem> {
    let found = cluster.kept().snapshots.get(name).cloned();
    found.ok_or_else(|| {
        Problem::new(404, "NotFound", format!("snapshots.testing.setpoint.dev {name:?} not found"))
    })
}

/// A duration in a spec, like 30s.
fn duration(spec: &Value, field: &str) -> Result<Option<Duration>, Problem> {
    let Some(text) = spec[field].as_str() else { return Ok(None) };
    let parsed = parse_duration(text).ok().and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    let bad = || {
        Problem::invalid(format!("spec.{field}: {text:?} is no duration; write it like 500ms, 30s or 24h"))
    };
    parsed.map(Duration::from_nanos).map(Some).ok_or_else(bad)
}
