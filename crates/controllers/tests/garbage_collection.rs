//! Owners and dependents: what is deleted, what is orphaned, and what stays.

mod graphs;

use crate::rig;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet},
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{ConfigMap, Event, Pod, Secret},
        rbac::v1::ClusterRole,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, ResourceExt,
    api::DeleteParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Cluster, Fault};

const COLLECTOR: &str = "garbage-collector-controller";
const ACCOUNT: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

const CARTS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.shop.io}
spec:
  group: shop.io
  names: {kind: Cart, plural: carts}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
";

/// Applies an object with these owners, and returns a reference to it that blocks its deletion.
async fn make(cluster: &Cluster, mut object: Value, owners: &[&OwnerReference]) -> OwnerReference {
    object["metadata"]["ownerReferences"] = json!(owners);
    let made = cluster.apply_object(&object).await;
    serde_json::from_value(json!({
        "apiVersion": made["apiVersion"], "kind": made["kind"], "name": made["metadata"]["name"],
        "uid": made["metadata"]["uid"], "blockOwnerDeletion": true,
    }))
    .unwrap()
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}})
}

async fn map(cluster: &Cluster, name: &str, owners: &[&OwnerReference]) -> OwnerReference {
    make(cluster, object("v1", "ConfigMap", name), owners).await
}

/// The names of all ConfigMaps in the namespace `default` but the CA's.
async fn maps(cluster: &Cluster) -> Vec<String> {
    let maps: Vec<ConfigMap> = cluster.list("default").await;
    maps.iter().map(ResourceExt::name_any).filter(|name| name != "kube-root-ca.crt").collect()
}

fn api(cluster: &Cluster, owner: &OwnerReference) -> Api<DynamicObject> {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &owner.kind));
    Api::namespaced_with(cluster.client(), "default", &resource)
}

async fn delete(cluster: &Cluster, object: &OwnerReference, options: &DeleteParams) {
    api(cluster, object).delete(&object.name, options).await.unwrap();
}

async fn owners_of(cluster: &Cluster, name: &str) -> Vec<String> {
    let map: ConfigMap = cluster.get("default", name).await;
    map.owner_references().iter().map(|owner| owner.name.clone()).collect()
}

/// A Deployment whose ReplicaSet keeps three pods.
async fn deploy(cluster: &Cluster) -> OwnerReference {
    let selector = json!({"matchLabels": {"app": "web"}});
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    let mut deployment = object("apps/v1", "Deployment", "web");
    deployment["spec"] = json!({"selector": selector, "template": template});
    let deployment = make(cluster, deployment, &[]).await;
    let mut set = object("apps/v1", "ReplicaSet", "web-1");
    set["spec"] = json!({"replicas": 3, "selector": selector, "template": template});
    make(cluster, set, &[&deployment]).await;
    cluster.settle().await;
    assert_eq!(cluster.list::<Pod>("default").await.len(), 3);
    deployment
}

#[test]
fn a_deployment_takes_its_replica_sets_and_pods_with_it_unless_they_are_orphaned() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR, "replicaset-controller"]);
        for (options, expected) in [
            (DeleteParams::background(), (0, 0)),
            (DeleteParams::foreground(), (0, 0)),
            (DeleteParams::orphan(), (1, 3)),
        ] {
            let deployment = deploy(&cluster).await;
            delete(&cluster, &deployment, &options).await;
            cluster.settle().await;
            assert_eq!(cluster.list::<Deployment>("default").await.len(), 0, "{options:?}");
            let sets: Vec<ReplicaSet> = cluster.list("default").await;
            let pods = cluster.list::<Pod>("default").await;
            assert_eq!((sets.len(), pods.len()), expected, "{options:?}");
            assert!(sets.iter().all(|set| set.owner_references().is_empty()), "{options:?}");
            assert!(pods.iter().all(|pod| pod.owner_references()[0].name == "web-1"), "{options:?}");
        }
    });
}

#[test]
fn foreground_deletion_waits_for_dependents_that_block_it() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let root = map(&cluster, "root", &[]).await;
        let middle = map(&cluster, "middle", &[&root]).await;
        let mut held = object("v1", "ConfigMap", "held");
        held["metadata"]["finalizers"] = json!(["shop.io/wait"]);
        make(&cluster, held, &[&middle]).await;
        let free = OwnerReference { block_owner_deletion: None, ..root.clone() };
        map(&cluster, "free", &[&free]).await;
        cluster.settle().await;
        delete(&cluster, &root, &DeleteParams::foreground()).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, ["held", "middle", "root"]);
        cluster.patch::<ConfigMap>("default", "held", &json!({"metadata": {"finalizers": null}})).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
    });
}

#[test]
fn objects_that_own_each_other_are_deleted_in_the_foreground() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let first = map(&cluster, "a", &[]).await;
        let second = map(&cluster, "b", &[&first]).await;
        let third = map(&cluster, "c", &[&second]).await;
        map(&cluster, "a", &[&third]).await;
        cluster.settle().await;
        delete(&cluster, &first, &DeleteParams::foreground()).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
    });
}

#[test]
fn an_object_with_two_owners_lives_as_long_as_one_of_them() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let owners =
            [map(&cluster, "a", &[]).await, map(&cluster, "b", &[]).await, map(&cluster, "c", &[]).await];
        map(&cluster, "child", &owners.each_ref()).await;
        cluster.settle().await;
        delete(&cluster, &owners[0], &DeleteParams::orphan()).await;
        cluster.settle().await;
        assert_eq!(owners_of(&cluster, "child").await, ["b", "c"]);
        // The reference to an owner that is gone is removed.
        delete(&cluster, &owners[1], &DeleteParams::background()).await;
        cluster.settle().await;
        assert_eq!(owners_of(&cluster, "child").await, ["c"]);
        delete(&cluster, &owners[2], &DeleteParams::background()).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
    });
}

#[test]
fn a_waiting_owner_lets_a_dependent_go_that_has_another_owner() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let (leaving, staying) = (map(&cluster, "leaving", &[]).await, map(&cluster, "staying", &[]).await);
        map(&cluster, "child", &[&leaving, &staying]).await;
        cluster.settle().await;
        delete(&cluster, &leaving, &DeleteParams::foreground()).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, ["child", "staying"]);
        assert_eq!(owners_of(&cluster, "child").await, ["staying"]);
    });
}

#[test]
fn dependents_of_an_owner_that_is_gone_are_deleted_however_late_they_appear() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        cluster.settle().await;
        let owner = make(&cluster, object("v1", "Secret", "owner"), &[]).await;
        // The collector hears of the dependent after the owner's deletion.
        let held = cluster.hold_watches("configmaps");
        map(&cluster, "late", &[&owner]).await;
        delete(&cluster, &owner, &DeleteParams::background()).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, ["late"]);
        drop(held);
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
        // It was created after the owner's deletion.
        map(&cluster, "later", &[&owner]).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
        // Another object has the name of the owner now.
        make(&cluster, object("v1", "Secret", "owner"), &[]).await;
        map(&cluster, "latest", &[&owner]).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
        assert_eq!(cluster.list::<Secret>("default").await.len(), 1);
    });
}

#[test]
fn owners_without_a_namespace_own_objects_in_namespaces() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let owner = make(&cluster, object("rbac.authorization.k8s.io/v1", "ClusterRole", "owner"), &[]).await;
        map(&cluster, "child", &[&owner]).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, ["child"]);
        cluster.delete::<ClusterRole>(None, "owner").await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
    });
}

#[test]
fn an_owner_in_another_namespace_counts_as_absent_and_is_reported() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: other}}").await;
        let mut owner = object("v1", "ConfigMap", "owner");
        owner["metadata"]["namespace"] = json!("other");
        let owner = make(&cluster, owner, &[]).await;
        cluster.settle().await;
        map(&cluster, "child", &[&owner]).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
        let events: Vec<Event> = cluster.list("default").await;
        let event =
            events.iter().find(|event| event.reason.as_deref() == Some("OwnerRefInvalidNamespace")).unwrap();
        let text = format!(
            "ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {}] does not exist in namespace \"default\"",
            owner.uid
        );
        assert_eq!(event.message.as_deref(), Some(text.as_str()));
        assert_eq!(
            (event.type_.as_deref(), event.involved_object.name.as_deref()),
            (Some("Warning"), Some("child"))
        );
        assert_eq!(event.source.as_ref().unwrap().component.as_deref(), Some(COLLECTOR));
        assert!(cluster.find::<ConfigMap>("other", "owner").await.is_some());
    });
}

#[test]
fn a_reference_in_another_version_of_the_api_group_is_as_good() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let mut scaler = object("autoscaling/v2", "HorizontalPodAutoscaler", "scaler");
        scaler["spec"] = json!({"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}});
        let owner = make(&cluster, scaler, &[]).await;
        let older = OwnerReference { api_version: "autoscaling/v1".to_owned(), ..owner.clone() };
        map(&cluster, "child", &[&older]).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, ["child"]);
        cluster.delete::<HorizontalPodAutoscaler>("default", "scaler").await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());
    });
}

#[test]
fn kinds_that_are_defined_later_own_and_are_owned_and_may_go_again() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        cluster.settle().await;
        // No watch has reported yet whether this owner exists.
        let unknown = OwnerReference {
            api_version: "shop.io/v1".to_owned(),
            kind: "Cart".to_owned(),
            name: "none".to_owned(),
            uid: "none".to_owned(),
            ..OwnerReference::default()
        };
        map(&cluster, "patient", &[&unknown]).await;
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(maps(&cluster).await, ["patient"]);
        cluster.apply(CARTS).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, Vec::<String>::new());

        for options in [DeleteParams::background(), DeleteParams::foreground(), DeleteParams::orphan()] {
            let is_orphaned = options == DeleteParams::orphan();
            let root = map(&cluster, "root", &[]).await;
            let cart = make(&cluster, object("shop.io/v1", "Cart", "cart"), &[&root]).await;
            map(&cluster, "leaf", &[&cart]).await;
            cluster.settle().await;
            delete(&cluster, &root, &options).await;
            cluster.settle().await;
            let expected: &[&str] = if is_orphaned { &["leaf"] } else { &[] };
            assert_eq!(maps(&cluster).await, expected, "{options:?}");
            if is_orphaned {
                let left = api(&cluster, &cart).get("cart").await.unwrap();
                assert_eq!(left.owner_references(), []);
                delete(&cluster, &cart, &DeleteParams::background()).await;
                cluster.settle().await;
                assert_eq!(maps(&cluster).await, Vec::<String>::new());
            }
        }

        use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
        cluster.delete::<CustomResourceDefinition>(None, "carts.shop.io").await;
        cluster.settle().await;
        let asked = |cluster: &Cluster| {
            let entries = cluster.trace().entries;
            entries.iter().filter(|entry| entry.resource == "carts").count()
        };
        let before = asked(&cluster);
        cluster.advance(Duration::from_secs(7200)).await;
        assert_eq!(asked(&cluster), before, "a kind that is gone is not watched any more");
    });
}

#[test]
fn a_kind_that_cannot_be_listed_does_not_stop_the_others() {
    testkit::run(|cluster| async move {
        let broken = Fault::on("*", "secrets").by("system:kube-controller-manager").always();
        cluster.inject(broken.error(500, "InternalError"));
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let root = map(&cluster, "root", &[]).await;
        map(&cluster, "child", &[&root]).await;
        let secret = make(&cluster, object("v1", "Secret", "secret"), &[]).await;
        map(&cluster, "of-secret", &[&secret]).await;
        cluster.advance(Duration::from_secs(60)).await;
        delete(&cluster, &root, &DeleteParams::foreground()).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, ["of-secret"]);
    });
}

#[test]
fn a_settled_collector_writes_nothing_and_asks_nothing() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[COLLECTOR]);
        let root = map(&cluster, "root", &[]).await;
        map(&cluster, "child", &[&root]).await;
        cluster.settle().await;
        let requests = |cluster: &Cluster| {
            let entries = cluster.trace().entries;
            entries.iter().filter(|entry| entry.caller == ACCOUNT).count()
        };
        let before = requests(&cluster);
        cluster.patch::<ConfigMap>("default", "root", &json!({"data": {"a": "b"}})).await;
        cluster.advance(Duration::from_secs(1200)).await;
        assert_eq!(requests(&cluster), before);
    });
}

#[test]
fn a_collector_that_crashes_anywhere_finishes_after_its_restart() {
    let start = async |cluster: &Cluster| rig::start(cluster, &[COLLECTOR]);
    let crashes = testkit::crash_everywhere(ACCOUNT, start, |cluster| async move {
        let root = map(&cluster, "root", &[]).await;
        let other = map(&cluster, "other", &[]).await;
        let parent = map(&cluster, "parent", &[]).await;
        let middle = map(&cluster, "middle", &[&root]).await;
        map(&cluster, "leaf", &[&middle]).await;
        map(&cluster, "shared", &[&root, &other]).await;
        map(&cluster, "orphan-1", &[&parent]).await;
        map(&cluster, "orphan-2", &[&parent, &other]).await;
        cluster.settle().await;
        delete(&cluster, &root, &DeleteParams::foreground()).await;
        delete(&cluster, &parent, &DeleteParams::orphan()).await;
        cluster.settle().await;
        assert_eq!(maps(&cluster).await, ["orphan-1", "orphan-2", "other", "shared"]);
        assert_eq!(owners_of(&cluster, "shared").await, ["other"]);
        assert_eq!(owners_of(&cluster, "orphan-1").await, Vec::<String>::new());
        assert_eq!(owners_of(&cluster, "orphan-2").await, ["other"]);
    });
    assert!(crashes.writes >= 6, "{crashes}");
}
