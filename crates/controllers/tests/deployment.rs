//! Deployments: rollouts, rollbacks, scaling, pauses, deadlines.

mod failing_requests;

use crate::rig::{self, BROKEN_IMAGE};
use k8s_openapi::api::{
    apps::v1::{Deployment, DeploymentCondition, ReplicaSet},
    core::v1::Pod,
};
use kube::ResourceExt;
use operator::Running;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::{Cluster, Fault};

const REVISION: &str = "deployment.kubernetes.io/revision";
const LOOPS: [&str; 2] = ["deployment-controller", "replicaset-controller"];

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {kubernetes.io/change-cause: first}}
spec:
  replicas: 3
  progressDeadlineSeconds: 60
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}}
    spec: {terminationGracePeriodSeconds: 5, containers: [{name: c, image: one}]}
";

/// Control loops and a kubelet, and the Deployment `web`.
async fn start(cluster: &Cluster) -> (Running, Running) {
    let running = (rig::start(cluster, &LOOPS), rig::kubelet(cluster));
    cluster.apply(WEB).await;
    cluster.settle().await;
    running
}

async fn patch(cluster: &Cluster, patch: Value) {
    cluster.patch::<Deployment>("default", "web", &patch).await;
    cluster.settle().await;
}

async fn set_image(cluster: &Cluster, image: &str) {
    let containers = json!([{"name": "c", "image": image}]);
    patch(cluster, json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
}

async fn web(cluster: &Cluster) -> Deployment {
    cluster.get("default", "web").await
}

/// The ReplicaSets as `revision image wanted/available`, by revision.
async fn sets(cluster: &Cluster) -> Vec<String> {
    let sets: Vec<ReplicaSet> = cluster.list("default").await;
    let mut shown: Vec<String> = sets.iter().map(shown).collect();
    shown.sort();
    shown
}

fn shown(set: &ReplicaSet) -> String {
    let (spec, status) = (set.spec.clone().unwrap(), set.status.clone().unwrap_or_default());
    let image = spec.template.unwrap().spec.unwrap().containers[0].image.clone().unwrap();
    let (wanted, available) = (spec.replicas.unwrap(), status.available_replicas.unwrap_or_default());
    format!("{} {image} {wanted}/{available}", set.annotations()[REVISION])
}

fn condition(deployment: &Deployment, type_: &str) -> Option<DeploymentCondition> {
    let conditions = deployment.status.as_ref()?.conditions.as_deref()?;
    conditions.iter().find(|condition| condition.type_ == type_).cloned()
}

fn reason(deployment: &Deployment, type_: &str) -> String {
    condition(deployment, type_).and_then(|condition| condition.reason).unwrap_or_default()
}

async fn set_of(cluster: &Cluster, image: &str) -> ReplicaSet {
    let sets: Vec<ReplicaSet> = cluster.list("default").await;
    sets.into_iter().find(|set| shown(set).contains(&format!(" {image} "))).unwrap()
}

#[test]
fn a_new_template_replaces_all_pods_and_becomes_a_revision() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        assert_eq!(sets(&cluster).await, ["1 one 3/3"]);
        let deployment = web(&cluster).await;
        assert_eq!(deployment.annotations()[REVISION], "1");
        let one = set_of(&cluster, "one").await.name_any();
        let progressing = condition(&deployment, "Progressing").unwrap();
        assert_eq!(progressing.reason.as_deref(), Some("NewReplicaSetAvailable"));
        assert_eq!(progressing.message, Some(format!("ReplicaSet {one:?} has successfully progressed.")));
        assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");
        let mut status = serde_json::to_value(deployment.status.unwrap()).unwrap();
        status["conditions"] = json!(null);
        let expected = json!({"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3,
            "availableReplicas": 3, "terminatingReplicas": 0, "conditions": null});
        assert_eq!(status, expected);

        set_image(&cluster, "two").await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 two 3/3"]);
        let pods: Vec<Pod> = cluster.list("default").await;
        let two = set_of(&cluster, "two").await.name_any();
        assert!(pods.len() == 3 && pods.iter().all(|pod| pod.owner_references()[0].name == two));
        let deployment = web(&cluster).await;
        assert_eq!(deployment.annotations()[REVISION], "2");
        assert_eq!(deployment.status.unwrap().observed_generation, Some(2));
        let expected = [
            format!("ScalingReplicaSet: Scaled down replica set {one} from 1 to 0"),
            format!("ScalingReplicaSet: Scaled down replica set {one} from 2 to 1"),
            format!("ScalingReplicaSet: Scaled down replica set {one} from 3 to 2"),
            format!("ScalingReplicaSet: Scaled up replica set {one} from 0 to 3"),
            format!("ScalingReplicaSet: Scaled up replica set {two} from 0 to 1"),
            format!("ScalingReplicaSet: Scaled up replica set {two} from 1 to 2"),
            format!("ScalingReplicaSet: Scaled up replica set {two} from 2 to 3"),
        ];
        let mut expected = expected.to_vec();
        expected.sort();
        assert_eq!(rig::events(&cluster, "Deployment", "web").await, expected);

        let revision = cluster.revision().await;
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(cluster.revision().await, revision, "a settled Deployment writes nothing");
    });
}

/// What `kubectl rollout undo` does: it patches the template of an old ReplicaSet into the Deployment.
#[test]
fn an_old_template_comes_back_with_its_set_as_a_new_revision() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        patch(&cluster, json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "second"}}})).await;
        set_image(&cluster, "two").await;
        set_image(&cluster, "one").await;
        assert_eq!(sets(&cluster).await, ["2 two 0/0", "3 one 3/3"]);
        let one = set_of(&cluster, "one").await;
        assert_eq!(one.annotations()["deployment.kubernetes.io/revision-history"], "1");
        assert_eq!(one.annotations()["kubernetes.io/change-cause"], "second");
        assert_eq!(web(&cluster).await.annotations()[REVISION], "3");
    });
}

#[test]
fn the_rollback_annotation_restores_template_and_annotations() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        let second = json!({"annotations": {"kubernetes.io/change-cause": "second"}});
        let containers = json!([{"name": "c", "image": "two"}]);
        patch(
            &cluster,
            json!({"metadata": second, "spec": {"template": {"spec": {"containers": containers}}}}),
        )
        .await;
        let rollback = json!({"annotations": {"deprecated.deployment.rollback.to": "1"}});
        patch(&cluster, json!({"metadata": rollback})).await;
        assert_eq!(sets(&cluster).await, ["2 two 0/0", "3 one 3/3"]);
        let deployment = web(&cluster).await;
        assert_eq!(deployment.annotations()["kubernetes.io/change-cause"], "first");
        assert!(!deployment.annotations().contains_key("deprecated.deployment.rollback.to"));
        let events = rig::events(&cluster, "Deployment", "web").await;
        let expected = r#"DeploymentRollback: Rolled back deployment "web" to revision 1"#.to_owned();
        assert!(events.contains(&expected), "{events:?}");
    });
}

#[test]
fn a_rollout_that_hangs_times_out_and_can_be_undone() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        set_image(&cluster, BROKEN_IMAGE).await;
        assert_eq!(sets(&cluster).await, ["1 one 3/3", "2 broken 1/0"]);
        assert_eq!(reason(&web(&cluster).await, "Progressing"), "ReplicaSetUpdated");
        cluster.advance(Duration::from_secs(55)).await;
        assert_eq!(reason(&web(&cluster).await, "Progressing"), "ReplicaSetUpdated");
        cluster.advance(Duration::from_secs(10)).await;
        let deployment = web(&cluster).await;
        let progressing = condition(&deployment, "Progressing").unwrap();
        let name = set_of(&cluster, BROKEN_IMAGE).await.name_any();
        assert_eq!(progressing.status, "False");
        assert_eq!(progressing.reason.as_deref(), Some("ProgressDeadlineExceeded"));
        assert_eq!(progressing.message, Some(format!("ReplicaSet {name:?} has timed out progressing.")));
        assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");
        set_image(&cluster, "one").await;
        assert_eq!(sets(&cluster).await, ["2 broken 0/0", "3 one 3/3"]);
        assert_eq!(reason(&web(&cluster).await, "Progressing"), "NewReplicaSetAvailable");
    });
}

#[test]
fn scaling_during_a_rollout_is_shared_by_the_sets() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        patch(
            &cluster,
            json!({"spec": {"replicas": 10, "strategy":
            {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}}}),
        )
        .await;
        set_image(&cluster, BROKEN_IMAGE).await;
        assert_eq!(sets(&cluster).await, ["1 one 8/8", "2 broken 5/0"]);
        patch(&cluster, json!({"spec": {"replicas": 15}})).await;
        // Kubernetes: the example of its documentation.
        assert_eq!(sets(&cluster).await, ["1 one 11/11", "2 broken 7/0"]);
        set_image(&cluster, "two").await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 broken 0/0", "3 two 15/15"]);
        patch(&cluster, json!({"spec": {"replicas": 0}})).await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 broken 0/0", "3 two 0/0"]);
    });
}

#[test]
fn a_paused_deployment_scales_and_rolls_out_when_it_is_resumed() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        patch(&cluster, json!({"spec": {"paused": true}})).await;
        assert_eq!(reason(&web(&cluster).await, "Progressing"), "DeploymentPaused");
        set_image(&cluster, "two").await;
        patch(&cluster, json!({"spec": {"replicas": 5}})).await;
        assert_eq!(sets(&cluster).await, ["1 one 5/5"]);
        let deployment = web(&cluster).await;
        assert_eq!(deployment.status.as_ref().unwrap().observed_generation, deployment.metadata.generation);
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(
            reason(&web(&cluster).await, "Progressing"),
            "DeploymentPaused",
            "no deadline while paused"
        );
        patch(&cluster, json!({"spec": {"paused": null}})).await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 two 5/5"]);
        assert_eq!(reason(&web(&cluster).await, "Progressing"), "NewReplicaSetAvailable");
    });
}

#[test]
fn recreate_starts_new_pods_when_the_old_ones_have_ended() {
    testkit::run(|cluster| async move {
        let loops = rig::start(&cluster, &LOOPS);
        let kubelet = rig::kubelet(&cluster);
        cluster.apply(WEB).await;
        patch(&cluster, json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}})).await;
        drop(kubelet);
        set_image(&cluster, "two").await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0"], "the old pods have not ended");
        let status = web(&cluster).await.status.unwrap();
        assert_eq!((status.replicas, status.terminating_replicas), (None, Some(3)));
        let pods: Vec<Pod> = cluster.list("default").await;
        assert_eq!(pods.len(), 3);
        let _kubelet = rig::kubelet(&cluster);
        cluster.settle().await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 two 3/3"]);
        drop(loops);
    });
}

#[test]
fn old_revisions_beyond_the_limit_are_deleted() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        patch(&cluster, json!({"spec": {"revisionHistoryLimit": 1}})).await;
        for image in ["two", "three", "four"] {
            set_image(&cluster, image).await;
        }
        assert_eq!(sets(&cluster).await, ["3 three 0/0", "4 four 3/3"]);
        patch(&cluster, json!({"spec": {"revisionHistoryLimit": 0}})).await;
        assert_eq!(sets(&cluster).await, ["4 four 3/3"]);
    });
}

#[test]
fn pods_count_only_after_min_ready_seconds() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        patch(
            &cluster,
            json!({"spec": {"minReadySeconds": 10, "strategy":
            {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}}}),
        )
        .await;
        cluster.advance(Duration::from_secs(12)).await;
        set_image(&cluster, "two").await;
        assert_eq!(sets(&cluster).await, ["1 one 3/3", "2 two 3/0"]);
        cluster.advance(Duration::from_secs(12)).await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 two 3/3"]);
        patch(&cluster, json!({"spec": {"minReadySeconds": 20}})).await;
        assert_eq!(set_of(&cluster, "two").await.spec.unwrap().min_ready_seconds, Some(20));
    });
}

#[test]
fn sets_that_match_are_adopted_by_their_template() {
    testkit::run(|cluster| async move {
        let running = start(&cluster).await;
        let before = set_of(&cluster, "one").await;
        drop(running);
        let orphan = json!({"metadata": {"ownerReferences": null, "annotations": {"hint": "x"}}});
        cluster.patch::<ReplicaSet>("default", &before.name_any(), &orphan).await;
        let _running = (rig::start(&cluster, &LOOPS), rig::kubelet(&cluster));
        cluster.settle().await;
        let after = set_of(&cluster, "one").await;
        assert_eq!(after.owner_references()[0].kind, "Deployment");
        assert_eq!(sets(&cluster).await, ["1 one 3/3"], "no other set was made");
        // A set that no longer matches is released, and replaced.
        let labels = json!({"metadata": {"labels": {"app": "other"}}});
        cluster.patch::<ReplicaSet>("default", &before.name_any(), &labels).await;
        cluster.settle().await;
        let released: ReplicaSet = cluster.get("default", &before.name_any()).await;
        assert_eq!(released.owner_references(), []);
    });
}

#[test]
fn a_set_of_something_else_with_the_same_name_is_a_collision() {
    testkit::run(|cluster| async move {
        let running = start(&cluster).await;
        let name = set_of(&cluster, "one").await.name_any();
        cluster.delete::<Deployment>("default", "web").await;
        cluster.delete::<ReplicaSet>("default", &name).await;
        cluster.settle().await;
        let stranger = WEB.replace("app: web", "app: other").replace("kind: Deployment", "kind: ReplicaSet");
        let stranger = stranger.replace("name: web", &format!("name: {name}"));
        let is_of_deployment = |line: &&str| !line.contains("strategy") && !line.contains("progressDeadline");
        let stranger: Vec<&str> = stranger.lines().filter(is_of_deployment).collect();
        cluster.apply(&stranger.join("\n")).await;
        cluster.apply(WEB).await;
        cluster.settle().await;
        let deployment = web(&cluster).await;
        let status = deployment.status.as_ref().unwrap();
        assert_eq!((status.collision_count, status.available_replicas), (Some(1), Some(3)));
        assert_eq!(reason(&deployment, "Progressing"), "NewReplicaSetAvailable");
        drop(running);
    });
}

#[test]
fn a_set_that_cannot_be_created_is_reported() {
    testkit::run(|cluster| async move {
        let running = (rig::start(&cluster, &LOOPS), rig::kubelet(&cluster));
        let refusal = cluster.inject(Fault::on("create", "replicasets").always().error(403, "Forbidden"));
        cluster.apply(WEB).await;
        cluster.world().sleep(Duration::from_secs(1)).await;
        let deployment = web(&cluster).await;
        let progressing = condition(&deployment, "Progressing").unwrap();
        assert_eq!(
            (progressing.status.as_str(), progressing.reason.as_deref()),
            ("False", Some("ReplicaSetCreateError"))
        );
        let message = progressing.message.unwrap();
        assert!(message.starts_with("Failed to create new replica set \"web-"), "{message}");
        refusal.lift();
        cluster.settle().await;
        assert_eq!(reason(&web(&cluster).await, "Progressing"), "NewReplicaSetAvailable");
        drop(running);
    });
}

#[test]
fn a_failure_to_create_pods_is_shown_on_the_deployment() {
    testkit::run(|cluster| async move {
        let running = (rig::start(&cluster, &LOOPS), rig::kubelet(&cluster));
        let refusal = cluster.inject(Fault::on("create", "pods").always().error(403, "Forbidden"));
        cluster.apply(WEB).await;
        cluster.world().sleep(Duration::from_secs(1)).await;
        let deployment = web(&cluster).await;
        assert_eq!(reason(&deployment, "ReplicaFailure"), "FailedCreate");
        assert_eq!(reason(&deployment, "Available"), "MinimumReplicasUnavailable");
        refusal.lift();
        cluster.settle().await;
        let deployment = web(&cluster).await;
        assert_eq!(condition(&deployment, "ReplicaFailure"), None);
        assert_eq!(reason(&deployment, "Progressing"), "NewReplicaSetAvailable");
        drop(running);
    });
}
