//! What a view finds, and how: by key, namespace, label, owner, index and UID.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{
    ResourceExt,
    core::{ApiResource, Selector},
};
use operator::{
    Key,
    cache::{Caches, Scope, Undecodable},
};
use std::sync::Arc;
use testkit::Cluster;

async fn fill(cluster: &Cluster) {
    cluster
        .apply(
            "{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web}}, data: {size: small}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {app: db}}, data: {size: large}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other, labels: {app: web}}, data: {size: large}}",
        )
        .await;
    let owner: ConfigMap = cluster.get("default", "a").await;
    let uid = owner.uid().expect("the server gives UIDs");
    cluster
        .apply(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: child, ownerReferences: [
                {{apiVersion: v1, kind: ConfigMap, name: a, uid: {uid}, controller: true}}]}}}}"
        ))
        .await;
}

fn names(found: Result<Vec<Arc<ConfigMap>>, Undecodable>) -> String {
    let found = found.expect("all of them are config maps");
    found.iter().map(|config| config.name_any()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_view_finds_its_objects() {
    testkit::run(|cluster| async move {
        fill(&cluster).await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let configs = caches.kind::<ConfigMap>(Scope::default());
        configs.index("size", |config| {
            config.data.iter().filter_map(|data| data.get("size").cloned()).collect()
        });
        configs.synced().await;
        let owner = configs.get(&Key::new(Some("default"), "a")).expect("it fits").expect("it is there");
        let uid = owner.uid().expect("it has one");
        let web = Selector::from_iter([("app", "web")]);
        for (found, expected) in [
            (configs.list(), "a b child c"),
            (configs.in_namespace("other"), "c"),
            (configs.in_namespace("othe"), ""),
            (configs.labelled(&web), "a c"),
            (configs.indexed("size", "large"), "b c"),
            (configs.indexed("size", "larg"), ""),
            (configs.indexed("colour", "red"), ""),
            (configs.owned_by(&uid), "child"),
        ] {
            assert_eq!(names(found), expected);
        }
        assert_eq!(configs.key_of_uid(&uid), Some(Key::parse("default/a")));
        assert!(configs.contains(&Key::parse("other/c")) && !configs.contains(&Key::parse("other/a")));
        let again = configs.get(&Key::parse("default/a")).expect("it fits").expect("it is there");
        assert!(Arc::ptr_eq(&owner, &again), "what was read lately is not decoded again");
    });
}

#[test]
fn a_scope_of_namespaces_is_one_view() {
    testkit::run(|cluster| async move {
        fill(&cluster).await;
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: third}}").await;
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: d, namespace: third}}").await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let scope = Scope::default().in_namespace("default").in_namespace("other");
        let configs = caches.kind::<ConfigMap>(scope);
        configs.synced().await;
        assert_eq!(names(configs.list()), "a b child c");
        cluster.delete::<ConfigMap>("other", "c").await;
        cluster.settle().await;
        assert_eq!(names(configs.list()), "a b child");
    });
}

#[test]
fn dynamic_objects_keep_their_type() {
    testkit::run(|cluster| async move {
        fill(&cluster).await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let configs =
            caches.dynamic(&ApiResource::erase::<ConfigMap>(&()), Scope::default().without(&["data"]));
        configs.synced().await;
        let a = configs.get(&Key::parse("default/a")).expect("everything fits").expect("it is there");
        let types = a.types.as_ref().expect("the cache adds what lists leave out");
        assert_eq!((types.api_version.as_str(), types.kind.as_str()), ("v1", "ConfigMap"));
        assert!(a.data.get("data").is_none() && a.metadata.managed_fields.is_none());
    });
}

#[test]
fn a_closed_view_is_not_filled_any_more_and_a_new_one_starts_anew() {
    testkit::run(|cluster| async move {
        fill(&cluster).await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let resource = ApiResource::erase::<ConfigMap>(&());
        let open = || caches.dynamic_metadata(&resource, Scope::default().in_namespace("other"));
        let closed = open();
        closed.synced().await;
        let c = closed.get(&Key::parse("other/c")).expect("everything fits").expect("it is there");
        assert_eq!(c.metadata.labels.as_ref().map(std::collections::BTreeMap::len), Some(1));
        assert!(!closed.item(&Key::parse("other/c")).expect("it is there").json().contains("large"));
        caches.close(&closed);
        cluster.delete::<ConfigMap>("other", "c").await;
        cluster.settle().await;
        assert!(closed.contains(&Key::parse("other/c")));
        let watches = cluster.trace().of("watch", "configmaps").len();
        let anew = open();
        anew.synced().await;
        assert!(!anew.contains(&Key::parse("other/c")));
        assert!(cluster.trace().of("watch", "configmaps").len() > watches);
    });
}

#[test]
fn an_object_that_does_not_fit_its_type_is_an_error() {
    /// Says that it is a config map, and wants a number where those have texts.
    #[derive(Debug, serde::Deserialize)]
    struct Strict {
        #[expect(dead_code, reason = "only whether it can be read counts")]
        data: std::collections::BTreeMap<String, u32>,
    }
    testkit::run(|cluster| async move {
        fill(&cluster).await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let configs = caches.kind::<ConfigMap>(Scope::default());
        configs.synced().await;
        let item = configs.item(&Key::parse("default/a")).expect("it is there");
        let problem = item.decode::<Strict>().expect_err("its data are texts").to_string();
        assert!(problem.starts_with("default/a does not fit "), "{problem}");
        assert!(item.decode::<Secret>().is_err(), "k8s-openapi looks at the kind");
    });
}
