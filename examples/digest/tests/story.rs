//! The digest operator with a control plane in the test.

use example_digest::{DIGEST, controller, plan};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use operator::{Manager, Running};
use serde_json::json;
use std::time::Duration;
use testkit::{Cluster, Fault};

fn start(cluster: &Cluster) -> Running {
    cluster.run(Manager::new("digest", cluster.world(), cluster.client()).controller(controller()))
}

async fn apply(cluster: &Cluster, size: &str) {
    let manifest =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: web}}, data: {{size: {size}}}}}");
    cluster.apply(&manifest).await;
    cluster.settle().await;
}

async fn digest(cluster: &Cluster) -> Option<String> {
    cluster.get::<ConfigMap>("default", "web").await.annotations().get(DIGEST).cloned()
}

#[test]
fn the_digest_follows_the_data() {
    testkit::run(|cluster| async move {
        let _operator = start(&cluster);
        apply(&cluster, "small").await;
        let small = digest(&cluster).await.expect("a digest");
        apply(&cluster, "large").await;
        let large = digest(&cluster).await.expect("a digest");
        assert_ne!(small, large);
        apply(&cluster, "small").await;
        assert_eq!(digest(&cluster).await.as_ref(), Some(&small), "the same data has the same digest");
    });
}

#[test]
fn what_is_right_is_left_alone() {
    testkit::run(|cluster| async move {
        let _operator = start(&cluster);
        apply(&cluster, "small").await;
        let before = cluster.revision().await;
        cluster.advance(Duration::from_secs(24 * 3600)).await;
        assert_eq!(cluster.revision().await, before, "a day of resyncs writes nothing");
    });
}

#[test]
fn a_digest_that_somebody_broke_is_mended_also_after_a_time_away() {
    testkit::run(|cluster| async move {
        let operator = start(&cluster);
        apply(&cluster, "small").await;
        let right = digest(&cluster).await;
        drop(operator);
        let broken = json!({"metadata": {"annotations": {DIGEST: "broken"}}});
        cluster.patch::<ConfigMap>("default", "web", &broken).await;
        let _operator = start(&cluster);
        cluster.settle().await;
        assert_eq!(digest(&cluster).await, right);
    });
}

#[test]
fn errors_and_lost_answers_are_survived() {
    testkit::run(|cluster| async move {
        cluster.inject(Fault::on("patch", "configmaps").by("digest").nth(1).error(500, "InternalError"));
        cluster.inject(Fault::on("patch", "configmaps").by("digest").nth(2).lose_answer());
        let client = cluster.client_as("digest", &["system:masters"]);
        let _running = cluster.run(Manager::new("digest", cluster.world(), client).controller(controller()));
        apply(&cluster, "small").await;
        assert!(digest(&cluster).await.is_some());
    });
}

#[test]
fn a_plan_is_a_function_of_the_object() {
    let map = |annotation: Option<&str>| {
        let data = Some([("size".to_owned(), "small".to_owned())].into());
        let mut map = ConfigMap { data, ..ConfigMap::default() };
        map.metadata.annotations = annotation.map(|text| [(DIGEST.to_owned(), text.to_owned())].into());
        map
    };
    let wanted = plan(&map(None)).expect("it has none yet");
    assert_eq!(plan(&map(Some("other"))), Some(wanted.clone()));
    assert_eq!(plan(&map(Some(&wanted))), None);
}
