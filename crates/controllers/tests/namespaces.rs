//! The deletion of namespaces: everything in them goes, pods first, and the conditions tell what is left.

use crate::rig;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
    discovery::ApiCapabilities,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use testkit::{Cluster, Fault};

const CONTROLLER: &str = "namespace-controller";
const ACCOUNT: &str = "system:serviceaccount:kube-system:namespace-controller";

const CARTS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: carts.shop.io}
spec:
  group: shop.io
  names: {kind: Cart, plural: carts}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";

/// One object of every namespaced built-in kind that can be created and deleted.
const CONTENT: &str = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: x}}
---
{apiVersion: v1, kind: Event, metadata: {name: x}, involvedObject: {namespace: doomed}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: x}, spec: {limits: []}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, image: nginx}]}}
---
{apiVersion: v1, kind: PodTemplate, metadata: {name: x}, template: {spec: {containers: [{name: c, image: nginx}]}}}
---
{apiVersion: v1, kind: ReplicationController, metadata: {name: x}, spec: {selector: {app: x}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: nginx}]}}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: x}, spec: {hard: {pods: 10}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: x}}
---
{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}
---
{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: x}, data: {}, revision: 1}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: x}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: nginx}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: nginx}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: x}, spec: {selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: nginx}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: x, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: nginx}]}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: x}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: x}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: nginx}]}}}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: nginx}]}}}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: x}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: x}, addressType: IPv4, endpoints: []}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: x}, spec: {defaultBackend: {service: {name: x, port: {number: 80}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: x}, spec: {podSelector: {}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: x}, spec: {minAvailable: 1}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: x}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: x}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: x}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: x}, spec: {}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: x}, spec: {spec: {}}}
---
{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: x}, storageClassName: x}
";

/// Applies every document in the namespace `doomed`.
async fn fill(cluster: &Cluster, yaml: &str) {
    let indented = yaml.replace("metadata: {name: x", "metadata: {namespace: doomed, name: x");
    cluster.apply(&indented).await;
}

async fn create_namespace(cluster: &Cluster) {
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: doomed}}").await;
}

/// The kinds whose objects are in namespaces, and can be listed and deleted; with `verb` only.
async fn kinds(cluster: &Cluster, verb: &str) -> Vec<ApiResource> {
    let discovery = kube::Discovery::new(cluster.client()).run_aggregated().await.unwrap();
    let resources = discovery.groups().flat_map(|group| group.recommended_resources());
    let is_content = |capabilities: &ApiCapabilities| {
        capabilities.scope == kube::discovery::Scope::Namespaced
            && ["list", "delete", verb].iter().all(|verb| capabilities.supports_operation(verb))
    };
    resources.filter(|(_, capabilities)| is_content(capabilities)).map(|(resource, _)| resource).collect()
}

/// The kinds of the objects that are in the namespace.
async fn content(cluster: &Cluster) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for resource in kinds(cluster, "list").await {
        let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "doomed", &resource);
        if !api.list(&ListParams::default()).await.unwrap().items.is_empty() {
            found.insert(resource.kind);
        }
    }
    found
}

/// All conditions whose status is `True`, as `type reason: message`.
fn problems(namespace: &Namespace) -> Vec<String> {
    let conditions = namespace.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let problems = conditions.into_iter().filter(|condition| condition.status == "True");
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    problems.map(|it| format!("{} {}: {}", it.type_, text(&it.reason), text(&it.message))).collect()
}

#[test]
fn a_namespace_goes_with_all_its_content() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[CONTROLLER]);
        create_namespace(&cluster).await;
        fill(&cluster, CONTENT).await;
        let creatable = kinds(&cluster, "create").await.into_iter().map(|resource| resource.kind).collect();
        assert_eq!(content(&cluster).await, creatable, "there is an object of every kind");
        cluster.delete::<Namespace>(None, "doomed").await;
        cluster.settle().await;
        let namespace: Namespace = cluster.get(None, "doomed").await;
        assert_eq!(namespace.status.unwrap().phase.as_deref(), Some("Terminating"));
        cluster.advance(Duration::from_secs(6)).await;
        // Its finalizer is removed by a loop that does not run here.
        assert_eq!(content(&cluster).await, BTreeSet::from(["PersistentVolumeClaim".to_owned()]));
        let free = json!({"metadata": {"finalizers": null}});
        cluster.patch::<PersistentVolumeClaim>("doomed", "x", &free).await;
        cluster.settle().await;
        assert_eq!(content(&cluster).await, BTreeSet::new());
        assert!(cluster.find::<Namespace>(None, "doomed").await.is_none());
    });
}

#[test]
fn finalizers_of_content_are_reported_and_awaited() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[CONTROLLER]);
        create_namespace(&cluster).await;
        cluster.apply(CARTS).await;
        let finalizers = json!({"finalizers": ["shop.io/wait"]});
        for name in ["one", "two"] {
            let mut cart = json!({"apiVersion": "shop.io/v1", "kind": "Cart", "metadata": finalizers});
            cart["metadata"]["name"] = json!(name);
            cart["metadata"]["namespace"] = json!("doomed");
            cluster.apply_object(&cart).await;
        }
        fill(&cluster, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}").await;
        cluster.delete::<Namespace>(None, "doomed").await;
        cluster.advance(Duration::from_secs(6)).await;
        let namespace: Namespace = cluster.get(None, "doomed").await;
        assert_eq!(
            problems(&namespace),
            [
                "NamespaceContentRemaining SomeResourcesRemain: Some resources are remaining: carts.shop.io has 2 resource instances",
                "NamespaceFinalizersRemaining SomeFinalizersRemain: Some content in the namespace has finalizers remaining: shop.io/wait in 2 resource instances",
            ]
        );
        assert_eq!(namespace.status.unwrap().conditions.unwrap().len(), 5);
        assert!(cluster.find::<ConfigMap>("doomed", "x").await.is_none());
        // A pass that finds the same writes nothing.
        let version = namespace.metadata.resource_version;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(cluster.get::<Namespace>(None, "doomed").await.metadata.resource_version, version);
        // As soon as the finalizers are gone, so is the namespace: no timer is waited for.
        let gvk = GroupVersionKind::gvk("shop.io", "v1", "Cart");
        let carts: Api<DynamicObject> =
            Api::namespaced_with(cluster.client(), "doomed", &ApiResource::from_gvk(&gvk));
        for name in ["one", "two"] {
            let patch: Value = json!({"metadata": {"finalizers": null}});
            carts.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        }
        cluster.settle().await;
        assert!(cluster.find::<Namespace>(None, "doomed").await.is_none());
    });
}

#[test]
fn pods_go_first_and_have_their_grace_period() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[CONTROLLER]);
        create_namespace(&cluster).await;
        cluster.apply("{apiVersion: v1, kind: Node, metadata: {name: node-1}}").await;
        fill(&cluster, "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {nodeName: node-1, containers: [{name: c, image: nginx}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}").await;
        cluster.delete::<Namespace>(None, "doomed").await;
        cluster.advance(Duration::from_secs(6)).await;
        let pod: Pod = cluster.get("doomed", "x").await;
        assert!(pod.metadata.deletion_timestamp.is_some());
        assert!(cluster.find::<ConfigMap>("doomed", "x").await.is_some(), "the pod may still need it");
        let pods: Api<Pod> = Api::namespaced(cluster.client(), "doomed");
        pods.delete(&pod.name_any(), &DeleteParams::default().grace_period(0)).await.unwrap();
        cluster.settle().await;
        assert!(cluster.find::<Namespace>(None, "doomed").await.is_none());
    });
}

#[test]
fn a_kind_that_cannot_be_deleted_is_reported_and_tried_again() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[CONTROLLER]);
        create_namespace(&cluster).await;
        fill(
            &cluster,
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
---
{apiVersion: v1, kind: Secret, metadata: {name: x}}",
        )
        .await;
        let broken = Fault::on("deletecollection", "configmaps").by(ACCOUNT).times(4);
        cluster.inject(broken.error(500, "InternalError"));
        cluster.delete::<Namespace>(None, "doomed").await;
        cluster.world().sleep(Duration::from_millis(201)).await;
        let namespace: Namespace = cluster.get(None, "doomed").await;
        assert!(problems(&namespace).iter().any(|it| it.contains("ContentDeletionFailed")), "{namespace:?}");
        cluster.settle().await;
        assert!(cluster.find::<Namespace>(None, "doomed").await.is_none());
    });
}

#[test]
fn a_namespace_with_a_finalizer_of_another_party_stays_empty_until_it_is_removed() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[CONTROLLER]);
        create_namespace(&cluster).await;
        fill(&cluster, "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}").await;
        let finalizers = json!({"metadata": {"finalizers": ["shop.io/wait"]}});
        cluster.patch::<Namespace>(None, "doomed", &finalizers).await;
        cluster.delete::<Namespace>(None, "doomed").await;
        cluster.advance(Duration::from_secs(6)).await;
        let namespace: Namespace = cluster.get(None, "doomed").await;
        assert_eq!(problems(&namespace), Vec::<String>::new());
        assert_eq!(namespace.spec.unwrap().finalizers.unwrap_or_default(), Vec::<String>::new());
        assert!(cluster.find::<ConfigMap>("doomed", "x").await.is_none());
        cluster.patch::<Namespace>(None, "doomed", &json!({"metadata": {"finalizers": null}})).await;
        cluster.settle().await;
        assert!(cluster.find::<Namespace>(None, "doomed").await.is_none());
    });
}

#[test]
fn a_controller_that_crashes_anywhere_leaves_nothing_behind() {
    let start = async |cluster: &Cluster| rig::start(cluster, &[CONTROLLER]);
    let crashes = testkit::crash_everywhere(ACCOUNT, start, |cluster| async move {
        create_namespace(&cluster).await;
        fill(
            &cluster,
            "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
---
{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, image: nginx}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]}}",
        )
        .await;
        cluster.delete::<Namespace>(None, "doomed").await;
        cluster.advance(Duration::from_secs(20)).await;
        assert!(cluster.find::<Namespace>(None, "doomed").await.is_none());
        assert_eq!(content(&cluster).await, BTreeSet::new());
    });
    assert!(crashes.writes > 30, "{crashes}");
}
