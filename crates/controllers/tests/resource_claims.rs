//! Claims of devices: made from templates, reserved, released, and deleted with their pods.

use crate::{pods::end, rig};
use k8s_openapi::api::{
    core::v1::{Event, Pod},
    resource::v1::{ResourceClaim, ResourceClaimTemplate},
};
use kube::ResourceExt;
use serde_json::{Value, json};
use testkit::Cluster;

const LOOP: &str = "resourceclaim-controller";
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";

pub(crate) fn device_request() -> Value {
    json!({"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}})
}

pub(crate) async fn add_template(cluster: &Cluster) {
    let template = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus"}, "spec": {"metadata": {"labels": {"app": "web"}}, "spec": device_request()}});
    cluster.apply_object(&template).await;
}

/// A pod whose entry `gpu` is as given.
pub(crate) async fn add_pod(cluster: &Cluster, name: &str, entry: &Value) {
    let mut claim = json!({"name": "gpu"});
    for (key, value) in entry.as_object().unwrap() {
        claim[key] = value.clone();
    }
    let container = json!({"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [container], "resourceClaims": [claim]}});
    cluster.apply_object(&pod).await;
}

async fn claims(cluster: &Cluster) -> Vec<ResourceClaim> {
    cluster.list::<ResourceClaim>("default").await
}

/// What a scheduler does with a claim: allocates it, reserves it for the pod, and binds the pod.
pub(crate) async fn allocate(cluster: &Cluster, claim: &str, consumers: &[&Pod], tolerations: &Value) {
    let protected = json!({"metadata": {"finalizers": [FINALIZER]}});
    cluster.patch::<ResourceClaim>("default", claim, &protected).await;
    let device =
        json!({"request": "gpu", "driver": "d.io", "pool": "p", "device": "a", "tolerations": tolerations});
    let reserved: Vec<_> = consumers
        .iter()
        .map(|pod| json!({"resource": "pods", "name": pod.name_any(), "uid": pod.uid()}))
        .collect();
    let status =
        json!({"status": {"allocation": {"devices": {"results": [device]}}, "reservedFor": reserved}});
    cluster.patch_status::<ResourceClaim>("default", claim, &status).await;
}

pub(crate) async fn bind(cluster: &Cluster, pod: &str) {
    use kube::{Api, api::PostParams};
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}});
    let pods = Api::<Pod>::default_namespaced(cluster.client());
    pods.create_subresource::<Value, Value>("binding", pod, &PostParams::default(), &binding).await.unwrap();
}

#[test]
fn a_pod_gets_a_claim_of_its_template_which_ends_with_it() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[LOOP]);
        add_pod(&cluster, "web", &json!({"resourceClaimTemplateName": "gpus"})).await;
        cluster.settle().await;
        assert_eq!(claims(&cluster).await, [], "there is no template yet");
        let message = "FailedResourceClaimCreation: PodResourceClaim gpu: resource claim template \"gpus\": \
            resourceclaimtemplate.resource.k8s.io \"gpus\" not found";
        assert_eq!(rig::events(&cluster, "Pod", "web").await, [message]);
        let events: Vec<Event> = cluster.list("default").await;
        assert_eq!(events[0].source.clone().unwrap().component.as_deref(), Some("resource_claim"));
        add_template(&cluster).await;
        cluster.settle().await;
        let [claim] = &claims(&cluster).await[..] else { panic!("one claim") };
        assert!(claim.name_any().starts_with("web-gpu-"), "{}", claim.name_any());
        assert_eq!(
            (claim.labels()["app"].as_str(), claim.owner_references()[0].name.as_str()),
            ("web", "web")
        );
        assert_eq!(claim.annotations()["resource.kubernetes.io/pod-claim-name"], "gpu");
        let pod: Pod = cluster.get("default", "web").await;
        let statuses = pod.status.clone().unwrap().resource_claim_statuses.unwrap();
        assert_eq!(statuses[0].resource_claim_name.as_deref(), Some(claim.name_any().as_str()));
        // A finished pod gives its devices back.
        allocate(&cluster, &claim.name_any(), &[&pod], &json!([])).await;
        bind(&cluster, "web").await;
        cluster.settle().await;
        assert_eq!(claims(&cluster).await.len(), 1);
        end(&cluster, "web", 0).await;
        cluster.settle().await;
        assert_eq!(claims(&cluster).await, []);
    });
}

#[test]
fn a_shared_claim_is_released_by_the_last_pod() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[LOOP]);
        let claim = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "shared"},
            "spec": device_request()});
        cluster.apply_object(&claim).await;
        for name in ["one", "two"] {
            add_pod(&cluster, name, &json!({"resourceClaimName": "shared"})).await;
        }
        let one: Pod = cluster.get("default", "one").await;
        allocate(&cluster, "shared", &[&one], &json!([])).await;
        bind(&cluster, "one").await;
        // It was bound without a reservation.
        bind(&cluster, "two").await;
        cluster.settle().await;
        let reserved = async || {
            let claim: ResourceClaim = cluster.get("default", "shared").await;
            let status = claim.status.clone().unwrap_or_default();
            let names =
                status.reserved_for.unwrap_or_default().into_iter().map(|it| it.name).collect::<Vec<_>>();
            (names.join(" "), status.allocation.is_some(), claim.finalizers().len())
        };
        assert_eq!(reserved().await, ("one two".to_owned(), true, 1));
        end(&cluster, "one", 0).await;
        cluster.settle().await;
        assert_eq!(reserved().await, ("two".to_owned(), true, 1));
        cluster.delete::<ResourceClaim>("default", "shared").await;
        cluster.settle().await;
        assert_eq!(reserved().await, ("two".to_owned(), true, 1), "a pod uses it");
        end(&cluster, "two", 1).await;
        cluster.settle().await;
        assert!(cluster.find::<ResourceClaim>("default", "shared").await.is_none());
    });
}

#[test]
fn a_deleted_claim_is_made_again_from_its_template() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[LOOP]);
        add_template(&cluster).await;
        add_pod(&cluster, "web", &json!({"resourceClaimTemplateName": "gpus"})).await;
        cluster.settle().await;
        let first = claims(&cluster).await[0].name_any();
        cluster.delete::<ResourceClaim>("default", &first).await;
        cluster.delete::<ResourceClaimTemplate>("default", "gpus").await;
        cluster.settle().await;
        add_template(&cluster).await;
        cluster.settle().await;
        let [second] = &claims(&cluster).await[..] else { panic!("one claim") };
        assert_ne!(second.name_any(), first);
        let pod: Pod = cluster.get("default", "web").await;
        let statuses = pod.status.unwrap().resource_claim_statuses.unwrap();
        assert_eq!(statuses[0].resource_claim_name.as_deref(), Some(second.name_any().as_str()));
    });
}

#[test]
fn no_claim_is_made_twice_or_left_wherever_the_loop_crashes() {
    let crashes = testkit::crash_everywhere(
        &rig::user("resource-claim-controller"),
        async |cluster: &Cluster| rig::start(cluster, &[LOOP]),
        |cluster| async move {
            add_template(&cluster).await;
            add_pod(&cluster, "web", &json!({"resourceClaimTemplateName": "gpus"})).await;
            cluster.settle().await;
            let [claim] = &claims(&cluster).await[..] else { panic!("one claim") };
            let pod: Pod = cluster.get("default", "web").await;
            assert_eq!(pod.status.clone().unwrap().resource_claim_statuses.unwrap().len(), 1);
            allocate(&cluster, &claim.name_any(), &[&pod], &json!([])).await;
            bind(&cluster, "web").await;
            end(&cluster, "web", 0).await;
            cluster.settle().await;
            assert_eq!(claims(&cluster).await, []);
        },
    );
    assert!(crashes.writes >= 5, "{crashes}");
}
