//! PodDisruptionBudgets: how many pods may be evicted.

use crate::rig;
use k8s_openapi::api::{
    core::v1::{Pod, ReplicationController},
    policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
};
use kube::{Api, ResourceExt, api::EvictParams};
use operator::Running;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;

const LOOPS: [&str; 4] = [
    "deployment-controller",
    "disruption-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
];

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: one}]}}
";

fn start(cluster: &Cluster) -> (Running, Running) {
    (rig::start(cluster, &LOOPS), rig::kubelet(cluster))
}

async fn apply_budget(cluster: &Cluster, name: &str, spec: &str) {
    let selector = "selector: {matchLabels: {app: web}}";
    let budget = format!(
        "{{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {{name: {name}}}, spec: {{{selector}, {spec}}}}}"
    );
    cluster.apply(&budget).await;
    cluster.settle().await;
}

async fn status(cluster: &Cluster, name: &str) -> PodDisruptionBudgetStatus {
    let budget: PodDisruptionBudget = cluster.get("default", name).await;
    budget.status.unwrap_or_default()
}

/// Expected, desired healthy, current healthy, allowed; and the reason of the condition.
async fn counts(cluster: &Cluster, name: &str) -> ([i32; 4], String) {
    let status = status(cluster, name).await;
    let counts = [
        status.expected_pods.unwrap(),
        status.desired_healthy.unwrap(),
        status.current_healthy.unwrap(),
        status.disruptions_allowed.unwrap(),
    ];
    let conditions = status.conditions.unwrap();
    let allowed = conditions.iter().find(|condition| condition.type_ == "DisruptionAllowed").unwrap();
    (counts, allowed.reason.clone())
}

fn pods(cluster: &Cluster) -> Api<Pod> {
    Api::namespaced(cluster.client(), "default")
}

#[test]
fn budgets_count_the_pods_that_may_be_evicted() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        cluster.apply(WEB).await;
        cluster.settle().await;
        for (name, spec, expected) in [
            ("min", "minAvailable: 3", [4, 3, 4, 1]),
            ("min-percent", "minAvailable: 60%", [4, 3, 4, 1]),
            ("max", "maxUnavailable: 2", [4, 2, 4, 2]),
            ("max-percent", "maxUnavailable: 50%", [4, 2, 4, 2]),
        ] {
            apply_budget(&cluster, name, spec).await;
            assert_eq!(counts(&cluster, name).await, (expected, "SufficientPods".to_owned()), "{name}");
            cluster.delete::<PodDisruptionBudget>("default", name).await;
        }
        apply_budget(&cluster, "all", "minAvailable: 100%").await;
        assert_eq!(counts(&cluster, "all").await, ([4, 4, 4, 0], "InsufficientPods".to_owned()));
        let revision = cluster.revision().await;
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(cluster.revision().await, revision, "a settled budget writes nothing");
    });
}

#[test]
fn an_evicted_pod_is_replaced_and_may_then_be_followed_by_another() {
    testkit::run(|cluster| async move {
        let (_loops, kubelet) = start(&cluster);
        cluster.apply(WEB).await;
        apply_budget(&cluster, "web", "maxUnavailable: 1").await;
        drop(kubelet);
        let all: Vec<Pod> = cluster.list("default").await;
        pods(&cluster).evict(&all[0].name_any(), &EvictParams::default()).await.unwrap();
        let second = pods(&cluster).evict(&all[1].name_any(), &EvictParams::default()).await;
        assert!(matches!(second, Err(kube::Error::Api(status)) if status.code == 429));
        cluster.settle().await;
        assert_eq!(counts(&cluster, "web").await.0, [4, 3, 3, 0]);
        let _kubelet = rig::kubelet(&cluster);
        cluster.settle().await;
        assert_eq!(counts(&cluster, "web").await.0, [4, 3, 4, 1]);
        assert_eq!(status(&cluster, "web").await.disrupted_pods, None, "the evicted pod is gone");
        pods(&cluster).evict(&all[1].name_any(), &EvictParams::default()).await.unwrap();
    });
}

#[test]
fn a_promise_to_evict_expires_after_two_minutes() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        cluster.apply(WEB).await;
        apply_budget(&cluster, "web", "maxUnavailable: 1").await;
        let all: Vec<Pod> = cluster.list("default").await;
        let name = all[0].name_any();
        let now = cluster.world().wall().to_string();
        let promised = json!({"status": {"disruptedPods": {name.clone(): now}}});
        cluster.patch_status::<PodDisruptionBudget>("default", "web", &promised).await;
        cluster.settle().await;
        assert_eq!(counts(&cluster, "web").await.0, [4, 3, 3, 0]);
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(counts(&cluster, "web").await.0, [4, 3, 3, 0]);
        cluster.advance(Duration::from_secs(61)).await;
        assert_eq!(counts(&cluster, "web").await.0, [4, 3, 4, 1]);
        assert_eq!(status(&cluster, "web").await.disrupted_pods, None);
        let events = rig::events(&cluster, "Pod", &name).await;
        assert_eq!(
            events,
            ["NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't"]
        );
    });
}

#[test]
fn the_target_of_a_disruption_that_did_not_happen_is_reset() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        cluster.apply(WEB).await;
        cluster.settle().await;
        let all: Vec<Pod> = cluster.list("default").await;
        let (name, mut conditions) = (all[0].name_any(), json!(all[0].status.as_ref().unwrap().conditions));
        let target = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
            "lastTransitionTime": cluster.world().wall().to_string()});
        conditions.as_array_mut().unwrap().push(target);
        cluster.patch_status::<Pod>("default", &name, &json!({"status": {"conditions": conditions}})).await;
        let target = async || -> String {
            let pod: Pod = cluster.get("default", &name).await;
            let conditions = pod.status.unwrap().conditions.unwrap();
            conditions.into_iter().find(|it| it.type_ == "DisruptionTarget").unwrap().status
        };
        cluster.advance(Duration::from_secs(100)).await;
        assert_eq!(target().await, "True");
        cluster.advance(Duration::from_secs(30)).await;
        assert_eq!(target().await, "False");
    });
}

#[test]
fn pods_of_several_controllers_are_counted_together() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        cluster.apply(WEB).await;
        cluster
            .apply(
                "{apiVersion: v1, kind: ReplicationController, metadata: {name: old}, spec: {replicas: 2, selector: \
                 {app: web, old: x}, template: {metadata: {labels: {app: web, old: x}}, spec: {containers: [{name: c, \
                 image: one}]}}}}",
            )
            .await;
        apply_budget(&cluster, "web", "minAvailable: 50%").await;
        assert_eq!(counts(&cluster, "web").await.0, [6, 3, 6, 3]);
        cluster.patch::<ReplicationController>("default", "old", &json!({"spec": {"replicas": 4}})).await;
        cluster.settle().await;
        assert_eq!(counts(&cluster, "web").await.0, [8, 4, 8, 4]);
    });
}

const LONE: &str = "{apiVersion: v1, kind: Pod, metadata: {name: lone, labels: {app: web}}, spec: {containers: [{name: c, image: one}]}}";

#[test]
fn pods_without_a_controller_are_told_about() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        apply_budget(&cluster, "web", "maxUnavailable: 1").await;
        let events = rig::events(&cluster, "PodDisruptionBudget", "web").await;
        assert_eq!(events, ["NoPods: No matching pods found"]);
        cluster.apply(LONE).await;
        cluster.settle().await;
        assert_eq!(counts(&cluster, "web").await.0, [0, 0, 1, 0]);
        let events = rig::events(&cluster, "PodDisruptionBudget", "web").await;
        let expected = "UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: \
            &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}) \
            were found to be unmanaged.";
        assert!(events.iter().any(|event| event.starts_with(expected)), "{events:?}");
        apply_budget(&cluster, "second", "minAvailable: 1").await;
        cluster.patch::<Pod>("default", "lone", &json!({"metadata": {"labels": {"changed": "yes"}}})).await;
        cluster.settle().await;
        let expected = "MultiplePodDisruptionBudgets: Pod \"default\"/\"lone\" matches multiple \
            PodDisruptionBudgets.  Chose \"second\" arbitrarily.";
        assert_eq!(rig::events(&cluster, "Pod", "lone").await, [expected]);
    });
}

/// The pod of an object of this kind.
fn owned_by(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!({"metadata": {"ownerReferences": [{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid,
        "controller": true}]}})
}

#[test]
fn custom_controllers_are_asked_for_their_scale() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        cluster
            .apply(
                "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shops.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: shops, singular: shop, kind: Shop}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
",
            )
            .await;
        cluster.settle().await;
        cluster
            .apply("{apiVersion: example.com/v1, kind: Shop, metadata: {name: s}, spec: {replicas: 5}}")
            .await;
        let shop = kube::core::ApiResource::from_gvk_with_plural(
            &kube::core::GroupVersionKind::gvk("example.com", "v1", "Shop"),
            "shops",
        );
        let shops: Api<kube::core::DynamicObject> = Api::namespaced_with(cluster.client(), "default", &shop);
        let uid = shops.get("s").await.unwrap().uid().unwrap();
        cluster.apply(LONE).await;
        cluster.patch::<Pod>("default", "lone", &owned_by("example.com/v1", "Shop", "s", &uid)).await;
        apply_budget(&cluster, "web", "maxUnavailable: 1").await;
        assert_eq!(counts(&cluster, "web").await.0, [5, 4, 1, 0]);
    });
}

#[test]
fn a_budget_whose_pods_cannot_be_counted_allows_nothing() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}").await;
        cluster.apply(LONE).await;
        cluster.patch::<Pod>("default", "lone", &owned_by("v1", "ConfigMap", "owner", "u-1")).await;
        apply_budget(&cluster, "web", "maxUnavailable: 1").await;
        let status = status(&cluster, "web").await;
        assert_eq!(status.disruptions_allowed, Some(0));
        let condition = &status.conditions.unwrap()[0];
        assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "SyncFailed"));
        assert_eq!(condition.message, "configmaps does not implement the scale subresource");
        let events = rig::events(&cluster, "PodDisruptionBudget", "web").await;
        let expected = "CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: \
            configmaps does not implement the scale subresource";
        assert_eq!(events, [expected]);
    });
}
