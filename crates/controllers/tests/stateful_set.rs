//! StatefulSets: ordered pods with claims, updates and revisions.

use crate::{pod_states, rig};
use k8s_openapi::api::{
    apps::v1::{ControllerRevision, StatefulSet},
    core::v1::{PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use serde_json::{Value, json};
use std::{collections::BTreeMap, time::Duration};
use testkit::Cluster;

const LOOP: &[&str] = &["statefulset-controller"];

const SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 3
  serviceName: web
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: 'nginx:1'}]}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

async fn patch(cluster: &Cluster, patch: &Value) {
    cluster.patch::<StatefulSet>("default", "web", patch).await;
}

/// The images of the pods by their names.
async fn images(cluster: &Cluster) -> BTreeMap<String, String> {
    let pods = cluster.list::<Pod>("default").await.into_iter();
    let image = |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
    pods.map(|pod| (pod.name_any(), image(&pod))).collect()
}

async fn status(cluster: &Cluster) -> Value {
    let set: StatefulSet = cluster.get("default", "web").await;
    serde_json::to_value(set.status.unwrap()).unwrap()
}

async fn claims(cluster: &Cluster) -> Vec<String> {
    cluster.list::<PersistentVolumeClaim>("default").await.iter().map(ResourceExt::name_any).collect()
}

/// The UIDs of the claim's owners.
async fn owners(cluster: &Cluster, claim: &str) -> Vec<String> {
    let claim: PersistentVolumeClaim = cluster.get("default", claim).await;
    claim.owner_references().iter().map(|owner| owner.uid.clone()).collect()
}

async fn uid_of_set(cluster: &Cluster) -> String {
    cluster.get::<StatefulSet>("default", "web").await.uid().unwrap()
}

#[test]
fn pods_come_one_after_the_other_with_their_claims() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(SET).await;
        cluster.settle().await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0"]);
        assert_eq!(claims(&cluster).await, ["data-web-0"]);
        pod_states::set_state(&cluster, "web-0", "Running", true).await;
        cluster.settle().await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0", "web-1"]);
        pod_states::run_all(&cluster).await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0", "web-1", "web-2"]);
        assert_eq!(claims(&cluster).await, ["data-web-0", "data-web-1", "data-web-2"]);

        let revisions: Vec<ControllerRevision> = cluster.list("default").await;
        let [revision] = revisions.as_slice() else { panic!("{revisions:?}") };
        let pod: Pod = cluster.get("default", "web-1").await;
        let labels = json!({"app": "web", "statefulset.kubernetes.io/pod-name": "web-1",
            "apps.kubernetes.io/pod-index": "1", "controller-revision-hash": revision.name_any()});
        assert_eq!(json!(pod.labels()), labels);
        assert_eq!(pod.metadata.generate_name.as_deref(), Some("web-"));
        let spec = pod.spec.unwrap();
        assert_eq!((spec.hostname.as_deref(), spec.subdomain.as_deref()), (Some("web-1"), Some("web")));
        let claim: PersistentVolumeClaim = cluster.get("default", "data-web-1").await;
        assert_eq!(json!(claim.labels()), json!({"app": "web"}));
        let expected = json!({"replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "currentReplicas": 3,
            "updatedReplicas": 3, "currentRevision": revision.name_any(), "updateRevision": revision.name_any(),
            "collisionCount": 0, "observedGeneration": 1});
        assert_eq!(status(&cluster).await, expected);
        let of_first: Vec<String> = pod_states::events(&cluster).await;
        let of_first: Vec<&str> =
            of_first.iter().map(String::as_str).filter(|it| it.contains("web-0")).collect();
        let expected = [
            "SuccessfulCreate: Create Claim data-web-0 Pod web-0 in StatefulSet web success",
            "SuccessfulCreate: Create Pod web-0 in StatefulSet web successful",
        ];
        assert_eq!(of_first, expected);
        // Nothing is left to do.
        let revision = cluster.revision().await;
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(cluster.revision().await, revision);
    });
}

#[test]
fn an_update_goes_from_the_last_pod_to_the_first_and_can_be_undone() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        let first = status(&cluster).await["currentRevision"].clone();
        patch(&cluster, &image("nginx:2")).await;
        cluster.settle().await;
        let expected = [("web-0", "nginx:1"), ("web-1", "nginx:1"), ("web-2", "nginx:2")];
        let owned = |(name, image): (&str, &str)| (name.to_owned(), image.to_owned());
        assert_eq!(images(&cluster).await, expected.map(owned).into());
        let now = status(&cluster).await;
        assert_eq!((&now["currentReplicas"], &now["updatedReplicas"]), (&json!(2), &json!(1)));
        assert_eq!(now["currentRevision"], first);
        assert_ne!(now["updateRevision"], first);
        pod_states::run_all(&cluster).await;
        assert!(images(&cluster).await.values().all(|image| image == "nginx:2"));
        let second = status(&cluster).await;
        assert_eq!(second["currentRevision"], second["updateRevision"]);
        // Undo: the earlier revision becomes the latest one, as `kubectl rollout history` shows it.
        patch(&cluster, &image("nginx:1")).await;
        pod_states::run_all(&cluster).await;
        assert_eq!(status(&cluster).await["currentRevision"], first);
        let revisions: Vec<ControllerRevision> = cluster.list("default").await;
        let number = |name: &Value| revisions.iter().find(|it| name == &it.name_any()).map(|it| it.revision);
        assert_eq!(revisions.len(), 2);
        assert_eq!((number(&first), number(&second["updateRevision"])), (Some(3), Some(2)));
    });
}

#[test]
fn a_partition_updates_a_canary_only() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        let mut canary = image("nginx:2");
        canary["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 2}});
        patch(&cluster, &canary).await;
        pod_states::run_all(&cluster).await;
        let count = |images: &BTreeMap<String, String>| images.values().filter(|it| *it == "nginx:2").count();
        assert_eq!(count(&images(&cluster).await), 1);
        // A pod below the partition comes back with the current revision, one above it with the new one.
        cluster.delete::<Pod>("default", "web-0").await;
        cluster.delete::<Pod>("default", "web-2").await;
        pod_states::run_all(&cluster).await;
        let after = images(&cluster).await;
        assert_eq!((after["web-0"].as_str(), after["web-2"].as_str()), ("nginx:1", "nginx:2"));
        let now = status(&cluster).await;
        assert_eq!((&now["currentReplicas"], &now["updatedReplicas"]), (&json!(2), &json!(1)));
        patch(&cluster, &json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})).await;
        pod_states::run_all(&cluster).await;
        assert_eq!(count(&images(&cluster).await), 3);
    });
}

#[test]
fn with_on_delete_pods_are_updated_when_they_are_deleted() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        let mut change = image("nginx:2");
        change["spec"]["updateStrategy"] = json!({"type": "OnDelete", "rollingUpdate": null});
        patch(&cluster, &change).await;
        pod_states::run_all(&cluster).await;
        assert!(images(&cluster).await.values().all(|image| image == "nginx:1"));
        cluster.delete::<Pod>("default", "web-0").await;
        pod_states::run_all(&cluster).await;
        let after = images(&cluster).await;
        assert_eq!((after["web-0"].as_str(), after["web-1"].as_str()), ("nginx:2", "nginx:1"));
    });
}

#[test]
fn parallel_pods_do_not_wait_for_each_other() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        let parallel = SET.replace(
            "serviceName: web",
            "serviceName: web\n  podManagementPolicy: Parallel\n  ordinals: {start: 7}",
        );
        cluster.apply(&parallel).await;
        cluster.settle().await;
        assert_eq!(pod_states::names(&cluster).await, ["web-7", "web-8", "web-9"]);
        patch(&cluster, &json!({"spec": {"replicas": 1}})).await;
        cluster.settle().await;
        assert_eq!(pod_states::names(&cluster).await, ["web-7"]);
    });
}

#[test]
fn finished_pods_are_created_again() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        let before: Pod = cluster.get("default", "web-1").await;
        pod_states::set_state(&cluster, "web-1", "Failed", false).await;
        pod_states::run_all(&cluster).await;
        let after: Pod = cluster.get("default", "web-1").await;
        assert_ne!(before.uid(), after.uid());
        assert_eq!(status(&cluster).await["readyReplicas"], 3);
    });
}

#[test]
fn a_pod_must_be_ready_for_long_enough_before_the_next_one_comes() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(&SET.replace("replicas: 3", "replicas: 3\n  minReadySeconds: 30")).await;
        cluster.settle().await;
        pod_states::set_state(&cluster, "web-0", "Running", true).await;
        cluster.advance(Duration::from_secs(20)).await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0"]);
        let now = status(&cluster).await;
        assert_eq!((&now["readyReplicas"], &now["availableReplicas"]), (&json!(1), &json!(0)));
        cluster.advance(Duration::from_secs(20)).await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0", "web-1"]);
        assert_eq!(status(&cluster).await["availableReplicas"], 1);
    });
}

#[test]
fn claims_stay_by_default_when_a_set_is_scaled_down_and_up() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        let before: PersistentVolumeClaim = cluster.get("default", "data-web-2").await;
        patch(&cluster, &json!({"spec": {"replicas": 1}})).await;
        pod_states::run_all(&cluster).await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0"]);
        assert_eq!(claims(&cluster).await.len(), 3);
        patch(&cluster, &json!({"spec": {"replicas": 3}})).await;
        pod_states::run_all(&cluster).await;
        let after: PersistentVolumeClaim = cluster.get("default", "data-web-2").await;
        assert_eq!((before.uid(), after.owner_references().len()), (after.uid(), 0));
    });
}

#[test]
fn the_retention_policy_decides_about_the_owners_of_claims() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(SET).await;
        pod_states::run_all(&cluster).await;
        let policy = |deleted: &str, scaled: &str| json!({"spec": {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled}}});
        patch(&cluster, &policy("Delete", "Delete")).await;
        pod_states::run_all(&cluster).await;
        let set = uid_of_set(&cluster).await;
        assert_eq!(owners(&cluster, "data-web-2").await, std::slice::from_ref(&set));
        // A pod that is scaled down takes its claim along: it owns it before it is deleted.
        let last: Pod = cluster.get("default", "web-2").await;
        patch(&cluster, &json!({"spec": {"replicas": 2}})).await;
        pod_states::run_all(&cluster).await;
        assert_eq!(owners(&cluster, "data-web-2").await, [last.uid().unwrap()]);
        // A new pod waits until the claim of the old one is gone; here, no garbage collector deletes it.
        patch(&cluster, &json!({"spec": {"replicas": 3}})).await;
        pod_states::run_all(&cluster).await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0", "web-1"]);
        // The server keeps claims that pods use until a controller says that none does.
        cluster
            .patch::<PersistentVolumeClaim>(
                "default",
                "data-web-2",
                &json!({"metadata": {"finalizers": null}}),
            )
            .await;
        cluster.delete::<PersistentVolumeClaim>("default", "data-web-2").await;
        pod_states::run_all(&cluster).await;
        assert_eq!(pod_states::names(&cluster).await, ["web-0", "web-1", "web-2"]);
        assert_eq!(owners(&cluster, "data-web-2").await, [set]);
        patch(&cluster, &policy("Retain", "Retain")).await;
        pod_states::run_all(&cluster).await;
        assert_eq!(owners(&cluster, "data-web-0").await, [""; 0]);
    });
}

#[test]
fn old_revisions_are_deleted_beyond_the_limit() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, LOOP);
        cluster.apply(&SET.replace("replicas: 3", "replicas: 1\n  revisionHistoryLimit: 1")).await;
        pod_states::run_all(&cluster).await;
        for number in 2..6 {
            patch(&cluster, &image(&format!("nginx:{number}"))).await;
            pod_states::run_all(&cluster).await;
        }
        let mut numbers: Vec<i64> =
            cluster.list::<ControllerRevision>("default").await.iter().map(|it| it.revision).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [4, 5]);
    });
}

#[test]
fn pods_and_revisions_without_an_owner_are_adopted() {
    testkit::run(|cluster| async move {
        cluster.apply(SET).await;
        {
            let _running = rig::start(&cluster, LOOP);
            pod_states::run_all(&cluster).await;
        }
        let orphan = json!({"metadata": {"ownerReferences": null}});
        let revision = cluster.list::<ControllerRevision>("default").await[0].name_any();
        cluster.patch::<Pod>("default", "web-1", &orphan).await;
        cluster.patch::<ControllerRevision>("default", &revision, &orphan).await;
        cluster
            .patch::<Pod>(
                "default",
                "web-2",
                &json!({"metadata": {"labels": {"statefulset.kubernetes.io/pod-name": null}}}),
            )
            .await;
        let _running = rig::start(&cluster, LOOP);
        pod_states::run_all(&cluster).await;
        let adopted: Pod = cluster.get("default", "web-1").await;
        assert_eq!(adopted.owner_references().len(), 1);
        let adopted: ControllerRevision = cluster.get("default", &revision).await;
        assert_eq!(adopted.owner_references().len(), 1);
        let repaired: Pod = cluster.get("default", "web-2").await;
        assert_eq!(repaired.labels()["statefulset.kubernetes.io/pod-name"], "web-2");
        let events = pod_states::events(&cluster).await;
        let expected = "SuccessfulUpdate: Update Pod web-2 in StatefulSet web successful";
        assert!(events.iter().any(|event| event == expected), "{events:?}");
    });
}

#[test]
fn a_rollout_survives_a_crash_at_every_write() {
    let user = "system:serviceaccount:kube-system:statefulset-controller";
    let start = async |cluster: &Cluster| rig::start(cluster, LOOP);
    let crashes = testkit::crash_everywhere(user, start, |cluster| async move {
        cluster.apply(&SET.replace("replicas: 3", "replicas: 2")).await;
        pod_states::run_all(&cluster).await;
        patch(&cluster, &image("nginx:2")).await;
        pod_states::run_all(&cluster).await;
        patch(&cluster, &json!({"spec": {"replicas": 1}})).await;
        pod_states::run_all(&cluster).await;
        let images = images(&cluster).await;
        assert_eq!(images, [("web-0".to_owned(), "nginx:2".to_owned())].into());
        assert_eq!(claims(&cluster).await, ["data-web-0", "data-web-1"]);
        let revisions: Vec<ControllerRevision> = cluster.list("default").await;
        assert_eq!(revisions.len(), 2);
        let now = status(&cluster).await;
        assert_eq!(
            (&now["replicas"], &now["updatedReplicas"], &now["readyReplicas"]),
            (&json!(1), &json!(1), &json!(1))
        );
        assert_eq!(now["currentRevision"], now["updateRevision"]);
    });
    assert!(crashes.writes > 10, "{crashes}");
}
