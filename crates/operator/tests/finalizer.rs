//! Finalizers on a server: in place before anything is made, gone when all is undone, never in the way.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use operator::{
    Failure, Next,
    finalizer::{self, Lifecycle},
};
use serde_json::json;
use std::{cell::RefCell, time::Duration};
use testkit::{Cluster, Fault};

const MINE: &str = "example.com/bucket";
const THEIRS: &str = "other.example.com/disk";

async fn made(cluster: &Cluster, finalizers: &[&str]) -> ConfigMap {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "web", "namespace": "default", "finalizers": finalizers },
    });
    cluster.create(&serde_json::from_value(object).unwrap()).await
}

/// Guards the object as it was read; says what the work saw, and what came of it.
async fn guard(cluster: &Cluster, object: &ConfigMap, next: Next) -> (String, Result<Next, Failure>) {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
    let seen = RefCell::new("nothing".to_owned());
    let answer = finalizer::guard(&api, object.clone(), MINE, |life| {
        let (life, object) = match life {
            Lifecycle::Live(object) => ("live", object),
            Lifecycle::Deleting(object) => ("leaving", object),
        };
        *seen.borrow_mut() = format!("{life} {}", object.metadata.finalizers.unwrap_or_default().join(","));
        async move { Ok(next) }
    })
    .await;
    (seen.into_inner(), answer)
}

async fn finalizers(cluster: &Cluster) -> String {
    match cluster.find::<ConfigMap>("default", "web").await {
        Some(object) => object.metadata.finalizers.unwrap_or_default().join(","),
        None => "gone".into(),
    }
}

#[test]
fn the_finalizer_is_set_first_and_removed_after_the_clean_up() {
    testkit::run(|cluster| async move {
        let object = made(&cluster, &[]).await;
        let (seen, answer) = guard(&cluster, &object, Next::Settled).await;
        assert_eq!((seen.as_str(), answer.unwrap()), ("live example.com/bucket", Next::Settled));

        let later = Next::CheckAfter(Duration::from_secs(5));
        let object = cluster.get::<ConfigMap>("default", "web").await;
        let (_, answer) = guard(&cluster, &object, later).await;
        assert_eq!(answer.unwrap(), later);

        cluster.delete::<ConfigMap>("default", "web").await;
        let object = cluster.get::<ConfigMap>("default", "web").await;
        let (seen, answer) = guard(&cluster, &object, later).await;
        assert_eq!((seen.as_str(), answer.unwrap()), ("leaving example.com/bucket", later));
        assert_eq!(finalizers(&cluster).await, MINE, "the clean-up was not done");

        let (seen, answer) = guard(&cluster, &object, Next::Settled).await;
        assert_eq!((seen.as_str(), answer.unwrap()), ("leaving example.com/bucket", Next::Settled));
        assert_eq!(finalizers(&cluster).await, "gone");

        // Once more, on what a stale cache still shows.
        let (_, answer) = guard(&cluster, &object, Next::Settled).await;
        assert_eq!(answer.unwrap(), Next::Settled);
    });
}

#[test]
fn other_finalizers_stay_even_if_the_cache_does_not_have_them() {
    testkit::run(|cluster| async move {
        let stale = made(&cluster, &[]).await;
        let theirs = json!({ "metadata": { "finalizers": [THEIRS] } });
        cluster.patch::<ConfigMap>("default", "web", &theirs).await;
        assert_eq!(guard(&cluster, &stale, Next::Settled).await.1.unwrap(), Next::Settled);
        assert_eq!(finalizers(&cluster).await, format!("{THEIRS},{MINE}"));

        // Another changes the order and adds a third while this one's clean-up runs.
        cluster.delete::<ConfigMap>("default", "web").await;
        let stale = cluster.get::<ConfigMap>("default", "web").await;
        let turned = json!({ "metadata": { "finalizers": [MINE, THEIRS] } });
        cluster.patch::<ConfigMap>("default", "web", &turned).await;
        assert_eq!(guard(&cluster, &stale, Next::Settled).await.1.unwrap(), Next::Settled);
        assert_eq!(finalizers(&cluster).await, THEIRS);
    });
}

#[test]
fn an_object_that_is_being_deleted_gets_no_finalizer() {
    testkit::run(|cluster| async move {
        let stale = made(&cluster, &[THEIRS]).await;
        cluster.delete::<ConfigMap>("default", "web").await;
        let (seen, answer) = guard(&cluster, &stale, Next::Settled).await;
        assert_eq!((seen.as_str(), answer.unwrap()), ("nothing", Next::Settled));
        assert_eq!(finalizers(&cluster).await, THEIRS);
    });
}

#[test]
fn another_object_of_the_same_name_is_not_changed() {
    testkit::run(|cluster| async move {
        let stale = made(&cluster, &[]).await;
        cluster.delete::<ConfigMap>("default", "web").await;
        made(&cluster, &[]).await;
        let (seen, answer) = guard(&cluster, &stale, Next::Settled).await;
        assert_eq!((seen.as_str(), answer.unwrap()), ("nothing", Next::Settled));
        assert_eq!(finalizers(&cluster).await, "");
    });
}

#[test]
fn a_lost_response_does_not_add_the_finalizer_twice() {
    testkit::run(|cluster| async move {
        let stale = made(&cluster, &[]).await;
        cluster.inject(Fault::on("patch", "configmaps").nth(1).lose_answer());
        assert!(guard(&cluster, &stale, Next::Settled).await.1.is_err());
        assert_eq!(guard(&cluster, &stale, Next::Settled).await.1.unwrap(), Next::Settled);
        assert_eq!(finalizers(&cluster).await, MINE);
    });
}

#[test]
fn a_name_without_a_domain_is_refused() {
    testkit::simulate(1, |cluster| async move {
        let object = made(&cluster, &[]).await;
        let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
        let answer = finalizer::guard(&api, object, "mine", |_| async { Ok(Next::Settled) }).await;
        assert!(matches!(answer, Err(Failure::Terminal { reason: "BadFinalizer", .. })), "{answer:?}");
    });
}
