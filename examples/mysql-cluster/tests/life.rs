//! Clusters on simulated nodes: installed, resized, saved, restored, deleted.

use crate::{demo, steps::*};
use example_mysql_cluster::{FINALIZER, NAME, v1::MySQLCluster};
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::{CronJob, Job},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use operator::condition;
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};
use testkit::Cluster;

/// The writes of the operator from this moment on.
fn writes_since(cluster: &Cluster, begin: Duration) -> Vec<String> {
    let trace = cluster.trace();
    let own = trace.writes().into_iter().filter(|entry| entry.caller == NAME && entry.at > begin);
    own.map(ToString::to_string).collect()
}

#[test]
fn a_cluster_is_installed_and_then_left_alone() {
    testkit::simulate(1, |cluster| async move {
        let (_control_plane, operator) = install(&cluster).await;
        let status = status(&cluster).await;
        assert_eq!(status.ready.as_deref(), Some("3/3"));
        assert_eq!((status.version.as_deref(), status.storage_provisioned), (Some("8.4.6"), true));
        assert!(condition::is_true_now(&status.conditions, "Ready", &shop(&cluster).await));
        primary(&cluster).await;
        let nodes: BTreeSet<_> =
            cluster.list::<Pod>("default").await.into_iter().filter_map(|pod| pod.spec?.node_name).collect();
        assert!(nodes.len() > 1, "one node has all members");
        let page = operator.metrics().render();
        let ready = "mysql_cluster_members_ready{cluster=\"shop\",namespace=\"default\"} 3\n";
        assert!(page.contains(ready) && page.contains("mysql_cluster_start_seconds_count 1\n"), "{page}");

        patch(&cluster, json!({"backup": null})).await;
        cluster.settle().await;
        assert!(cluster.find::<CronJob>("default", "shop-backup").await.is_none(), "pruned");
        let begin = cluster.trace().entries.last().unwrap().at;
        drop(operator);
        let _operator = start(&cluster).await;
        cluster.advance(15 * MINUTE).await;
        let writes = writes_since(&cluster, begin);
        assert!(writes.is_empty(), "a settled cluster is not written again: {writes:#?}");
    });
}

#[test]
fn members_and_their_volumes_follow_the_spec() {
    testkit::simulate(1, |cluster| async move {
        let _running = install(&cluster).await;
        patch(&cluster, json!({"replicas": 4, "storage": {"size": "20Gi"}})).await;
        cluster.advance(MINUTE).await;
        let claims = cluster.list::<PersistentVolumeClaim>("default").await;
        let sizes = claims
            .iter()
            .filter(|claim| claim.name_any().starts_with("data-"))
            .map(|claim| claim.status.as_ref().unwrap().capacity.as_ref().unwrap()["storage"].0.clone());
        assert_eq!(sizes.collect::<Vec<_>>(), ["20Gi"; 4]);
        assert_eq!(status(&cluster).await.ready.as_deref(), Some("4/4"));

        // The primary is among those that go.
        for name in ["shop-0", "shop-1"] {
            cluster.delete::<Pod>("default", name).await;
            cluster.settle().await;
        }
        let last = primary(&cluster).await;
        assert!(["shop-2", "shop-3"].contains(&last.as_str()), "{last}");
        cluster.advance(MINUTE).await;
        patch(&cluster, json!({"replicas": 2})).await;
        cluster.advance(MINUTE).await;
        assert_eq!(primary(&cluster).await, "shop-0");
        assert_eq!(members(&cluster).await.len(), 2);
    });
}

#[test]
fn backups_are_made_kept_and_restored() {
    testkit::simulate(1, |cluster| async move {
        let _running = install(&cluster).await;
        cluster.advance(55 * MINUTE).await;
        let kept = backups(&cluster).await;
        assert_eq!(kept.len(), 3, "of at least five: {kept:?}");
        assert_eq!(status(&cluster).await.backups, kept);
        cluster.get::<PersistentVolumeClaim>("default", "shop-backups").await;

        patch(&cluster, json!({"restoreFrom": "yesterday"})).await;
        cluster.settle().await;
        let conditions = status(&cluster).await.conditions;
        assert_eq!(condition::find(&conditions, "Restored").unwrap().reason, "BackupNotFound");
        patch(&cluster, json!({"restoreFrom": kept[1]})).await;
        until(&cluster, |status| status.restored.as_ref() == Some(&kept[1])).await;
        cluster.advance(SECOND).await;
        let shop = shop(&cluster).await;
        let conditions = shop.status.clone().unwrap().conditions;
        assert!(condition::is_true_now(&conditions, "Restored", &shop));
        let jobs = cluster.list::<Job>("default").await;
        assert!(jobs.iter().all(|job| !job.name_any().contains("restore")), "it is done and gone");
        let reasons = reasons(&cluster).await;
        assert!(
            ["BackedUp", "BackupNotFound", "Restored"].iter().all(|it| reasons.contains(*it)),
            "{reasons:?}"
        );
    });
}

#[test]
fn a_cluster_is_saved_before_it_goes_and_can_come_back() {
    testkit::simulate(1, |cluster| async move {
        let (_control_plane, operator) = install(&cluster).await;
        assert_eq!(shop(&cluster).await.finalizers(), [FINALIZER]);
        cluster.delete::<MySQLCluster>("default", SHOP).await;
        cluster.advance(MINUTE).await;
        assert!(cluster.find::<MySQLCluster>("default", SHOP).await.is_none());
        assert!(cluster.list::<StatefulSet>("default").await.is_empty());
        let claims = cluster.list::<PersistentVolumeClaim>("default").await;
        assert_eq!(claims.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["shop-backups"]);
        let jobs: Vec<_> = cluster.list::<Job>("default").await.iter().map(ResourceExt::name_any).collect();
        assert!(jobs.len() == 1 && jobs[0].starts_with("shop-last-"), "{jobs:?}");
        assert!(!operator.metrics().render().contains("cluster=\"shop\""));

        cluster.apply(SAMPLE).await;
        patch(&cluster, json!({"restoreFrom": jobs[0], "deletionPolicy": "Delete"})).await;
        until(&cluster, |status| status.restored.as_ref() == Some(&jobs[0])).await;
        cluster.delete::<MySQLCluster>("default", SHOP).await;
        cluster.settle().await;
        assert!(cluster.find::<MySQLCluster>("default", SHOP).await.is_none());
    });
}

#[test]
fn the_example_shows_the_whole_life() {
    let run = testkit::simulate(1, |cluster| async move {
        let mut lines = Vec::new();
        demo::play(cluster, |line| lines.push(line.to_owned())).await;
        lines.join("\n")
    });
    let mut rest = run.output.as_str();
    for text in [
        "Running    ready 3/3   primary shop-",
        "Upgrading  ready 2/3",
        "cannot go from 8.4.7",
        "fails: node-",
        "Degraded   ready 2/3   primary shop-",
        "comes back",
        "Running",
        "backups: shop-backup-",
        "restoreFrom",
        "restored: shop-backup-",
        "mysql_cluster_failovers_total{cluster=\"shop\",namespace=\"default\"} 1",
        "what stays: job shop-last-",
    ] {
        let at = rest.find(text).unwrap_or_else(|| panic!("not in its place: {text}\n{}", run.output));
        rest = &rest[at..];
    }
}
