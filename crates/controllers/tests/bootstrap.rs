//! Bootstrap tokens: they sign `cluster-info`, and are deleted when they expire.

use crate::rig;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use serde_json::json;
use std::{collections::BTreeMap, time::Duration};
use testkit::Cluster;

async fn add_token(cluster: &Cluster, id: &str, lasts: Option<Duration>) {
    let mut data =
        json!({"token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-signing": "true"});
    if let Some(lasts) = lasts {
        let end = cluster.world().wall() + lasts;
        data["expiration"] = json!(end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": format!("bootstrap-token-{id}"), "namespace": "kube-system"}, "stringData": data});
    cluster.apply_object(&secret).await;
}

async fn signatures(cluster: &Cluster) -> BTreeMap<String, String> {
    let map: ConfigMap = cluster.get("kube-public", "cluster-info").await;
    map.data.unwrap().into_iter().filter(|(key, _)| key != "kubeconfig").collect()
}

async fn add_cluster_info(cluster: &Cluster) {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"kubeconfig": "where the server is"},
        "metadata": {"name": "cluster-info", "namespace": "kube-public"}});
    cluster.apply_object(&map).await;
}

#[test]
fn cluster_info_has_a_signature_of_every_token() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["bootstrap-signer-controller"]);
        add_token(&cluster, "abcdef", None).await;
        add_token(&cluster, "ghijkl", Some(Duration::from_secs(600))).await;
        add_cluster_info(&cluster).await;
        cluster.settle().await;
        let before = signatures(&cluster).await;
        let keys: Vec<&str> = before.keys().map(String::as_str).collect();
        assert_eq!(keys, ["jws-kubeconfig-abcdef", "jws-kubeconfig-ghijkl"]);
        // Another text has other signatures; a forged one is removed.
        let change = json!({"data": {"kubeconfig": "elsewhere", "jws-kubeconfig-zzzzzz": "forged"}});
        cluster.patch::<ConfigMap>("kube-public", "cluster-info", &change).await;
        cluster.settle().await;
        let after = signatures(&cluster).await;
        assert!(after.keys().eq(before.keys()) && after != before);
        // A token that has expired signs nothing, and neither does a deleted one.
        cluster.advance(Duration::from_secs(610)).await;
        assert_eq!(signatures(&cluster).await.len(), 1);
        cluster.delete::<Secret>("kube-system", "bootstrap-token-abcdef").await;
        cluster.settle().await;
        assert_eq!(signatures(&cluster).await.len(), 0);
    });
}

#[test]
fn expired_tokens_are_deleted() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["token-cleaner-controller"]);
        add_token(&cluster, "abcdef", None).await;
        add_token(&cluster, "ghijkl", Some(Duration::from_secs(600))).await;
        let is_there = async |id: &str| {
            let name = format!("bootstrap-token-{id}");
            cluster.find::<Secret>("kube-system", &name).await.is_some()
        };
        cluster.advance(Duration::from_secs(590)).await;
        assert!(is_there("ghijkl").await);
        // A longer life counts.
        add_token(&cluster, "ghijkl", Some(Duration::from_secs(600))).await;
        cluster.advance(Duration::from_secs(590)).await;
        assert!(is_there("ghijkl").await);
        cluster.advance(Duration::from_secs(20)).await;
        assert!(!is_there("ghijkl").await && is_there("abcdef").await);
    });
}
