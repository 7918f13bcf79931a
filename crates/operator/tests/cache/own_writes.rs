//! What an operator writes is in its cache before the watch brings it.

use super::{assert_equal, config, key, open, record_deltas, take, value};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Namespace, Pod},
};
use kube::{
    Api,
    api::{DeleteParams, EvictParams, Patch, PatchParams, PostParams},
};
use operator::{
    Key,
    cache::{Caches, Scope},
};
use serde_json::json;
use std::time::Duration;
use testkit::Fault;

#[test]
fn own_writes_are_in_the_cache_while_the_watch_is_held_back() {
    testkit::run(|cluster| async move {
        cluster.create(&config("old", "1")).await;
        let (caches, view) = open(&cluster).await;
        let deltas = record_deltas(&view);
        take(&deltas);
        let configs: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        let held = cluster.hold_watches("configmaps");

        configs.create(&PostParams::default(), &config("a", "1")).await.expect("it is new");
        assert_eq!(value(&view, "a").as_deref(), Some("1"));
        let patch = Patch::Merge(json!({"data": {"value": "2"}}));
        configs.patch("a", &PatchParams::default(), &patch).await.expect("it is there");
        assert_eq!(value(&view, "a").as_deref(), Some("2"));
        configs.delete("old", &DeleteParams::default()).await.expect("it is there");
        assert_eq!(value(&view, "old"), None);
        assert_eq!(take(&deltas), ["+a own", "~a own", "-old own"]);

        // A name that is used again is another object.
        configs.delete("a", &DeleteParams::default()).await.expect("it is there");
        configs.create(&PostParams::default(), &config("a", "3")).await.expect("the name is free");
        assert_eq!(value(&view, "a").as_deref(), Some("3"));
        assert_eq!(take(&deltas), ["-a own", "+a own"]);

        drop(held);
        cluster.settle().await;
        assert_eq!(value(&view, "a").as_deref(), Some("3"));
        assert_eq!(take(&deltas), [""; 0], "the watch has nothing new to tell");
        assert_equal(&cluster, &view).await;
    });
}

#[test]
fn a_deleted_namespace_stays_in_the_cache_while_its_spec_has_finalizers() {
    testkit::run(|cluster| async move {
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: doomed}}").await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let view = caches.kind::<Namespace>(Scope::default());
        view.synced().await;
        let namespaces: Api<Namespace> = Api::all(caches.client());
        namespaces.delete("doomed", &DeleteParams::default()).await.expect("it is there");
        let mut doomed = namespaces.get("doomed").await.expect("it has a finalizer");
        doomed.metadata.labels = None;
        namespaces.replace_status("doomed", &PostParams::default(), &doomed).await.expect("it is unchanged");
        assert!(view.contains(&Key::parse("doomed")));
        let mut doomed = namespaces.get("doomed").await.expect("it has a finalizer");
        doomed.spec.as_mut().expect("the server sets it").finalizers = None;
        let parameters = PostParams::default();
        let finalized = namespaces.replace_subresource("finalize", "doomed", &parameters, &doomed).await;
        finalized.expect("it is unchanged");
        cluster.settle().await;
        assert!(!view.contains(&Key::parse("doomed")));
    });
}

#[test]
fn a_dry_run_does_not_change_the_cache() {
    testkit::run(|cluster| async move {
        let (caches, view) = open(&cluster).await;
        let configs: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        configs.create(&dry, &config("a", "1")).await.expect("it could be made");
        assert_eq!(value(&view, "a"), None);
    });
}

#[test]
fn an_object_leaves_the_cache_with_its_last_finalizer() {
    testkit::run(|cluster| async move {
        let (caches, view) = open(&cluster).await;
        let configs: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        let mut held = config("a", "1");
        held.metadata.finalizers = Some(vec!["example.com/cleanup".to_owned()]);
        configs.create(&PostParams::default(), &held).await.expect("it is new");
        let watch = cluster.hold_watches("configmaps");
        configs.delete("a", &DeleteParams::default()).await.expect("it is there");
        let item = view.item(&key("a")).expect("its finalizer holds it");
        assert!(item.is_deleting());
        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        configs.patch("a", &PatchParams::default(), &release).await.expect("it is there");
        assert!(!view.contains(&key("a")), "nothing holds it any more");
        drop(watch);
        cluster.settle().await;
        assert!(!view.contains(&key("a")));
    });
}

#[test]
fn a_write_whose_response_has_no_object_waits_for_the_watch() {
    testkit::run(|cluster| async move {
        cluster
            .apply(
                "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1,
                  selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}},
                  spec: {containers: [{name: main, image: nginx}]}}}}",
            )
            .await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let view = caches.kind::<Deployment>(Scope::default());
        view.synced().await;
        cluster.inject(Fault::on("watch", "deployments").always().lag(Duration::from_secs(1)));
        cluster.drop_watches("deployments");
        cluster.advance(Duration::from_secs(5)).await;
        let deployments: Api<Deployment> = Api::namespaced(caches.client(), "default");
        let scale = Patch::Merge(json!({"spec": {"replicas": 3}}));
        deployments.patch_scale("web", &PatchParams::default(), &scale).await.expect("it is there");
        let web = view.get(&key("web")).expect("it fits").expect("it is there");
        assert_eq!(web.spec.as_ref().and_then(|spec| spec.replicas), Some(3));
    });
}

#[test]
fn an_evicted_pod_leaves_the_cache() {
    testkit::run(|cluster| async move {
        let pod = |name: &str| {
            format!(
                "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, finalizers: [example.com/a]}},
                   spec: {{containers: [{{name: main, image: nginx}}]}}}}"
            )
        };
        cluster.apply(&pod("a")).await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let view = caches.kind::<Pod>(Scope::default());
        view.synced().await;
        let _held = cluster.hold_watches("pods");
        let pods: Api<Pod> = Api::namespaced(caches.client(), "default");
        pods.evict("a", &EvictParams::default()).await.expect("it may go");
        assert!(view.item(&key("a")).expect("its finalizer holds it").is_deleting());
    });
}

#[test]
fn the_watch_brings_a_write_whose_response_was_lost() {
    testkit::run(|cluster| async move {
        let (caches, view) = open(&cluster).await;
        let configs: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        cluster.inject(Fault::on("create", "configmaps").lose_answer());
        configs.create(&PostParams::default(), &config("a", "1")).await.expect_err("the answer is lost");
        cluster.settle().await;
        assert_eq!(value(&view, "a").as_deref(), Some("1"));
    });
}
