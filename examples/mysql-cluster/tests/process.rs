//! The operator as a process: its rights and webhooks, its manifests, and a crash at every write.

use crate::steps::*;
use example_mysql_cluster::{NAME, configure, definition, manifests, v1::MySQLCluster};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::ResourceExt;
use operator::{Manager, definition as definitions};
use serde_json::json;
use std::time::Duration;
use testkit::Cluster;

/// The declared RBAC rules suffice, and the webhooks are reached through their Service.
#[test]
fn the_manifests_are_enough_to_run_the_operator() {
    testkit::simulate(1, |cluster| async move {
        cluster.apply(include_str!("../manifests/definition.yaml")).await;
        cluster.apply(include_str!("../manifests/operator.yaml")).await;
        let account = format!("system:serviceaccount:default:{NAME}");
        let client = cluster.client_as(&account, &["system:serviceaccounts", "system:authenticated"]);
        let _operator = cluster.run(configure(Manager::new(NAME, cluster.world(), client)));
        let _control_plane = cluster.control_plane().nodes(3).start();
        cluster.advance(Duration::from_secs(10)).await;
        cluster.apply(&SAMPLE.replace("schedule: \"*/10 * * * *\", ", "")).await;
        until(&cluster, |status| status.phase.as_deref() == Some("Running")).await;
        let spec = shop(&cluster).await.spec;
        assert_eq!(spec.root_secret.as_deref(), Some("shop-root"));
        assert_eq!(spec.backup.unwrap().schedule.as_deref(), Some("22 2 * * *"));

        patch(&cluster, json!({"deletionPolicy": "Refuse"})).await;
        let refused = cluster.try_delete::<MySQLCluster>("default", SHOP).await.unwrap_err();
        assert!(refused.to_string().contains("the deletionPolicy is Refuse"), "{refused}");
        for (spec, expected) in [
            (json!({"version": "8.0.40"}), "the version cannot go from 8.4.6 back to 8.0.40"),
            (json!({"storage": {"size": "5Gi"}}), "storage cannot shrink from 10Gi to 5Gi"),
            (json!({"replicas": 10}), "should be less than or equal to 9"),
        ] {
            let patch = json!({"spec": spec});
            let refused = cluster.try_patch::<MySQLCluster>("default", SHOP, &patch).await.unwrap_err();
            assert!(refused.to_string().contains(expected), "{refused}");
        }
        patch(&cluster, json!({"deletionPolicy": "Backup", "storage": {"size": "11Gi"}})).await;
        cluster.delete::<MySQLCluster>("default", SHOP).await;
        cluster.advance(MINUTE).await;
        assert!(cluster.find::<MySQLCluster>("default", SHOP).await.is_none());
        let trace = cluster.trace();
        let refused = trace.entries.iter().filter(|entry| entry.caller == account);
        let refused: Vec<String> =
            refused.map(ToString::to_string).filter(|it| it.contains(" 403")).collect();
        assert!(refused.is_empty(), "{refused:#?}");
    });
}

#[tokio::test]
async fn the_manifests_are_those_of_the_code() {
    assert_eq!(definitions::review(&definition()), []);
    // `cargo run --example mysql-cluster -- --definition`, and `--operator`.
    let definition = definitions::yaml(&definition());
    assert_eq!(definition, include_str!("../manifests/definition.yaml"));
    assert_eq!(manifests(Manager::disconnected(NAME)), include_str!("../manifests/operator.yaml"));
}

/// As the controllers of StatefulSets and Jobs, and the nodes, would.
async fn play_members(cluster: &Cluster, version: &str, ready: &[bool]) {
    for (ordinal, is_ready) in ready.iter().enumerate() {
        let name = format!("{SHOP}-{ordinal}");
        cluster
            .apply_object(&json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"mysql.example.com/cluster": SHOP,
                "mysql.example.com/role": "member", "mysql.example.com/version": version}},
            "spec": {"containers": [{"name": "mysql", "image": "mysql"}]}}))
            .await;
        let is_ready = if *is_ready { "True" } else { "False" };
        let status = json!({"status": {"conditions": [{"type": "Ready", "status": is_ready}]}});
        cluster.patch_status::<Pod>("default", &name, &status).await;
    }
    cluster.settle().await;
}

/// Without control loops: each crash is a run of its own, and they take their time.
#[test]
fn a_crash_at_any_write_loses_nothing() {
    let crashes = testkit::crash_everywhere(NAME, start, |cluster| async move {
        cluster.apply(&SAMPLE.replace("replicas: 3", "replicas: 2")).await;
        cluster.settle().await;
        play_members(&cluster, OLD, &[true, true]).await;
        let first = primary(&cluster).await;
        play_members(&cluster, OLD, &[first != "shop-0", first != "shop-1"]).await;
        assert_ne!(primary(&cluster).await, first, "it is not ready");
        patch(&cluster, json!({"version": NEW})).await;
        play_members(&cluster, NEW, &[true, true]).await;
        assert_eq!(status(&cluster).await.version.as_deref(), Some(NEW));

        cluster.delete::<MySQLCluster>("default", SHOP).await;
        cluster.settle().await;
        assert!(cluster.find::<MySQLCluster>("default", SHOP).await.is_some(), "there is no backup yet");
        complete(&cluster, &cluster.list::<Job>("default").await[0].name_any()).await;
        assert!(cluster.find::<MySQLCluster>("default", SHOP).await.is_none());
    });
    assert!(crashes.writes >= 15, "{crashes}");
}

/// As the controller of Jobs would.
async fn complete(cluster: &Cluster, job: &str) {
    let now = cluster.world().wall().to_string();
    let conditions =
        json!([{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]);
    let status = json!({"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions});
    cluster.patch_status::<Job>("default", job, &json!({"status": status})).await;
    cluster.settle().await;
}
