//! What Prometheus learns of the clusters.

use crate::{plan::Plan, v1::MySQLCluster};
use kube::ResourceExt;
use operator::{Key, Timestamp, metrics::Metrics};

const READY: (&str, &str) = ("mysql_cluster_members_ready", "Members of a cluster that are ready.");
const WANTED: (&str, &str) = ("mysql_cluster_members_wanted", "Members that a cluster should have.");
const BACKUPS: (&str, &str) = ("mysql_cluster_backups", "Backups that can be restored.");
const FAILOVERS: (&str, &str) = ("mysql_cluster_failovers_total", "Primaries that were lost and replaced.");
const START: (&str, &str) = ("mysql_cluster_start_seconds", "Time until all members were ready first.");
const START_BOUNDS: &[f64] = &[5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0];

pub(crate) fn set_gauges(metrics: &Metrics, key: &Key, cluster: &MySQLCluster, plan: &Plan, backups: usize) {
    let labels = labels(key);
    metrics.gauge(READY.0, READY.1, &labels).set(f64::from(plan.ready));
    metrics.gauge(WANTED.0, WANTED.1, &labels).set(f64::from(cluster.spec.replicas));
    metrics.gauge(BACKUPS.0, BACKUPS.1, &labels).set(backups as f64);
    // Shown from the start: a rate needs a zero first.
    metrics.counter(FAILOVERS.0, FAILOVERS.1, &labels);
}

pub(crate) fn count_failover(metrics: &Metrics, key: &Key) {
    metrics.counter(FAILOVERS.0, FAILOVERS.1, &labels(key)).add(1);
}

pub(crate) fn observe_start(metrics: &Metrics, cluster: &MySQLCluster, now: Timestamp) {
    if let Some(created) = cluster.creation_timestamp() {
        let took = now.duration_since(created.0).unsigned_abs();
        metrics.histogram(START.0, START.1, &[], START_BOUNDS).observe(took);
    }
}

/// For a cluster that is gone.
pub(crate) fn remove(metrics: &Metrics, key: &Key) {
    for (name, _) in [READY, WANTED, BACKUPS, FAILOVERS] {
        metrics.remove(name, &labels(key));
    }
}

fn labels(key: &Key) -> [(&'static str, &str); 2] {
    [("namespace", key.namespace().unwrap_or_default()), ("cluster", key.name())]
}
