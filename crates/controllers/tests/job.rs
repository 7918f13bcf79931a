//! Jobs, with pods that the test ends as a kubelet would.

mod counting;
mod failing;

use crate::{pods::end, rig};
use k8s_openapi::api::{
    batch::v1::{Job, JobStatus},
    core::v1::{Event, Pod},
};
use kube::{Api, ResourceExt, api::DeleteParams};
use operator::Running;
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";

fn start(cluster: &Cluster) -> Running {
    rig::start(cluster, &["job-controller"])
}

/// Applies a Job named `job` with these fields of the spec, and waits until the cluster is idle.
async fn apply(cluster: &Cluster, spec: &Value) {
    let template =
        json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}});
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"},
        "spec": {"template": template}});
    for (name, value) in spec.as_object().unwrap() {
        job["spec"][name] = value.clone();
    }
    cluster.apply_object(&job).await;
    cluster.settle().await;
}

async fn job_status(cluster: &Cluster) -> JobStatus {
    cluster.get::<Job>("default", "job").await.status.unwrap_or_default()
}

/// The pods that neither have ended nor are being deleted, in the order of their names.
async fn active(cluster: &Cluster) -> Vec<Pod> {
    let has_ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        pod.metadata.deletion_timestamp.is_some() || matches!(phase, Some("Succeeded" | "Failed"))
    };
    let mut pods: Vec<Pod> = cluster.list("default").await;
    pods.retain(|pod| !has_ended(pod));
    pods
}

/// Ends all active pods with this exit code, and waits until the cluster is idle.
async fn end_active(cluster: &Cluster, code: i32) {
    for pod in active(cluster).await {
        end(cluster, &pod.name_any(), code).await;
    }
    cluster.settle().await;
}

/// The conditions as `type=status reason: message`.
async fn conditions(cluster: &Cluster) -> Vec<String> {
    let conditions = job_status(cluster).await.conditions.unwrap_or_default().into_iter();
    let text = |text: Option<String>| text.unwrap_or_default();
    conditions
        .map(|it| format!("{}={} {}: {}", it.type_, it.status, text(it.reason), text(it.message)))
        .collect()
}

/// The events as `type reason: message` without repetitions, those of pods without the names of the pods.
async fn events(cluster: &Cluster) -> Vec<String> {
    // Events are written in the background.
    cluster.advance(Duration::from_secs(1)).await;
    let mut events: Vec<Event> = cluster.list("default").await;
    events.sort_by_key(|event| event.metadata.resource_version.as_ref().map(|it| it.parse::<u64>().unwrap()));
    let text = |event: Event| {
        let message = event.message.unwrap_or_default();
        let message = message.split_inclusive("pod: ").next().unwrap_or_default().to_owned();
        format!("{} {}: {message}", event.type_.unwrap_or_default(), event.reason.unwrap_or_default())
    };
    let mut texts: Vec<String> = events.into_iter().map(text).collect();
    texts.dedup();
    texts
}

fn is_tracked(pod: &Pod) -> bool {
    pod.finalizers().iter().any(|finalizer| finalizer == FINALIZER)
}

#[test]
fn a_job_runs_as_many_pods_at_once_as_it_may_until_enough_have_succeeded() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        apply(&cluster, &json!({"parallelism": 2, "completions": 3})).await;
        let pods = active(&cluster).await;
        assert_eq!(pods.len(), 2);
        assert!(pods.iter().all(is_tracked) && pods[0].name_any().starts_with("job-"));
        let status = serde_json::to_value(job_status(&cluster).await).unwrap();
        let start = status["startTime"].clone();
        let expected = json!({"active": 2, "ready": 0, "terminating": 0, "startTime": start,
            "uncountedTerminatedPods": {}});
        assert_eq!(status, expected);
        end_active(&cluster, 0).await;
        assert_eq!((active(&cluster).await.len(), job_status(&cluster).await.succeeded), (1, Some(2)));
        end_active(&cluster, 0).await;
        let status = serde_json::to_value(job_status(&cluster).await).unwrap();
        assert_eq!(
            (&status["succeeded"], &status["active"], &status["ready"]),
            (&json!(3), &json!(null), &json!(0))
        );
        assert!(status["completionTime"].is_string());
        let expected = [
            "SuccessCriteriaMet=True CompletionsReached: Reached expected number of succeeded pods",
            "Complete=True CompletionsReached: Reached expected number of succeeded pods",
        ];
        assert_eq!(conditions(&cluster).await, expected);
        let pods: Vec<Pod> = cluster.list("default").await;
        assert!(pods.len() == 3 && !pods.iter().any(is_tracked));
        let expected = ["Normal SuccessfulCreate: Created pod: ", "Normal Completed: Job completed"];
        assert_eq!(events(&cluster).await, expected);
    });
}

#[test]
fn a_job_without_completions_is_complete_after_one_success() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        apply(&cluster, &json!({"parallelism": 3, "completions": null})).await;
        let pods = active(&cluster).await;
        end(&cluster, &pods[0].name_any(), 0).await;
        cluster.settle().await;
        assert_eq!(active(&cluster).await.len(), 2, "those that run may end");
        end_active(&cluster, 0).await;
        assert_eq!(job_status(&cluster).await.succeeded, Some(3));
        assert_eq!(conditions(&cluster).await.len(), 2);
    });
}

#[test]
fn an_indexed_job_gives_each_pod_its_index() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        apply(&cluster, &json!({"parallelism": 2, "completions": 4, "completionMode": "Indexed"})).await;
        let pods = active(&cluster).await;
        for (index, pod) in pods.iter().enumerate() {
            assert!(pod.name_any().starts_with(&format!("job-{index}-")), "{}", pod.name_any());
            let spec = pod.spec.as_ref().unwrap();
            assert_eq!(spec.hostname.as_deref(), Some(&*format!("job-{index}")));
            let variable = &spec.containers[0].env.as_ref().unwrap()[0];
            let field = variable.value_from.as_ref().unwrap().field_ref.as_ref().unwrap();
            let path = "metadata.labels['batch.kubernetes.io/job-completion-index']";
            assert_eq!((&*variable.name, &*field.field_path), ("JOB_COMPLETION_INDEX", path));
            for values in [pod.labels(), pod.annotations()] {
                assert_eq!(values["batch.kubernetes.io/job-completion-index"], index.to_string());
            }
        }
        end(&cluster, &pods[1].name_any(), 0).await;
        cluster.settle().await;
        let next = active(&cluster).await;
        assert!(next[1].name_any().starts_with("job-2-"), "index 1 is done");
        end_active(&cluster, 0).await;
        assert_eq!(job_status(&cluster).await.completed_indexes.as_deref(), Some("0-2"));
        end_active(&cluster, 0).await;
        let status = job_status(&cluster).await;
        assert_eq!((status.completed_indexes.as_deref(), status.succeeded), (Some("0-3"), Some(4)));
        assert_eq!(conditions(&cluster).await.len(), 2);
    });
}

#[test]
fn an_indexed_job_can_be_scaled() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        let spec = |size: i32| json!({"parallelism": size, "completions": size, "completionMode": "Indexed"});
        apply(&cluster, &spec(2)).await;
        cluster.patch::<Job>("default", "job", &json!({"spec": {"parallelism": 4, "completions": 4}})).await;
        cluster.settle().await;
        assert_eq!(active(&cluster).await.len(), 4);
        for pod in &active(&cluster).await[2..] {
            end(&cluster, &pod.name_any(), 0).await;
        }
        cluster.settle().await;
        assert_eq!(job_status(&cluster).await.completed_indexes.as_deref(), Some("2,3"));
        cluster.patch::<Job>("default", "job", &json!({"spec": {"parallelism": 3, "completions": 3}})).await;
        cluster.settle().await;
        let status = job_status(&cluster).await;
        assert_eq!((status.completed_indexes.as_deref(), status.succeeded), (Some("2"), Some(1)));
        end_active(&cluster, 0).await;
        assert_eq!(job_status(&cluster).await.completed_indexes.as_deref(), Some("0-2"));
        assert_eq!(conditions(&cluster).await.len(), 2);
    });
}

#[test]
fn a_suspended_job_has_no_pods_and_starts_anew_when_it_is_resumed() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        apply(&cluster, &json!({"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 600})).await;
        let first_start = job_status(&cluster).await.start_time.unwrap();
        cluster.advance(Duration::from_secs(500)).await;
        let suspend = |is_on: bool| json!({"spec": {"suspend": is_on}});
        cluster.patch::<Job>("default", "job", &suspend(true)).await;
        cluster.settle().await;
        assert_eq!(cluster.list::<Pod>("default").await.len(), 0);
        let status = job_status(&cluster).await;
        assert_eq!((status.start_time, status.active, status.failed), (None, None, None));
        assert_eq!(conditions(&cluster).await, ["Suspended=True JobSuspended: Job suspended"]);
        cluster.advance(Duration::from_secs(500)).await;
        cluster.patch::<Job>("default", "job", &suspend(false)).await;
        cluster.settle().await;
        assert_eq!(conditions(&cluster).await, ["Suspended=False JobResumed: Job resumed"]);
        let second_start = job_status(&cluster).await.start_time.unwrap();
        assert!(second_start.0.duration_since(first_start.0).as_secs() >= 1000);
        cluster.advance(Duration::from_secs(590)).await;
        assert_eq!(active(&cluster).await.len(), 2, "the deadline counts from the resume");
        let expected = [
            "Normal SuccessfulCreate: Created pod: ",
            "Normal SuccessfulDelete: Deleted pod: ",
            "Normal Suspended: Job suspended",
            "Normal SuccessfulCreate: Created pod: ",
            "Normal Resumed: Job resumed",
        ];
        assert_eq!(events(&cluster).await, expected);
        cluster.advance(Duration::from_secs(20)).await;
        let conditions = conditions(&cluster).await;
        assert_eq!(
            conditions[2],
            "Failed=True DeadlineExceeded: Job was active longer than specified deadline"
        );
    });
}

#[test]
fn a_success_policy_ends_the_other_pods() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        let policy = json!({"rules": [{"succeededIndexes": "1"}]});
        let spec =
            json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed", "successPolicy": policy});
        apply(&cluster, &spec).await;
        let pods = active(&cluster).await;
        end(&cluster, &pods[1].name_any(), 0).await;
        cluster.settle().await;
        let expected = [
            "SuccessCriteriaMet=True SuccessPolicy: Matched rules at index 0",
            "Complete=True SuccessPolicy: Matched rules at index 0",
        ];
        assert_eq!(conditions(&cluster).await, expected);
        let status = job_status(&cluster).await;
        assert_eq!((status.succeeded, status.failed, status.active), (Some(1), None, None));
        assert_eq!(cluster.list::<Pod>("default").await.len(), 1);
    });
}

#[test]
fn a_job_of_another_controller_is_left_alone() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        apply(&cluster, &json!({"managedBy": "example.com/other"})).await;
        assert_eq!(cluster.list::<Pod>("default").await.len(), 0);
        assert_eq!(job_status(&cluster).await, JobStatus::default());
    });
}

#[test]
fn pods_of_a_deleted_job_lose_their_finalizer() {
    // Without a policy, a deleted Job stays until its pods are orphans.
    for deletion in [DeleteParams::background(), DeleteParams::default()] {
        testkit::run(|cluster| {
            let deletion = deletion.clone();
            async move {
                let _running = start(&cluster);
                apply(&cluster, &json!({"parallelism": 2, "completions": 2})).await;
                let jobs: Api<Job> = Api::namespaced(cluster.client(), "default");
                jobs.delete("job", &deletion).await.unwrap();
                cluster.settle().await;
                let pods: Vec<Pod> = cluster.list("default").await;
                assert!(pods.len() == 2 && !pods.iter().any(is_tracked));
            }
        });
    }
}

#[test]
fn pods_that_match_a_manual_selector_are_adopted_and_others_released() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        let pod = "{apiVersion: v1, kind: Pod, metadata: {name: lone, labels: {app: job}}, \
            spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}";
        cluster.apply(pod).await;
        let template = json!({"metadata": {"labels": {"app": "job"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}});
        let spec = json!({"manualSelector": true, "selector": {"matchLabels": {"app": "job"}},
            "template": template});
        apply(&cluster, &spec).await;
        let lone: Pod = cluster.get("default", "lone").await;
        assert!(lone.owner_references().len() == 1 && is_tracked(&lone));
        assert_eq!(active(&cluster).await.len(), 1, "an adopted pod counts");
        cluster.patch::<Pod>("default", "lone", &json!({"metadata": {"labels": {"app": "other"}}})).await;
        cluster.settle().await;
        let lone: Pod = cluster.get("default", "lone").await;
        assert!(lone.owner_references().is_empty() && !is_tracked(&lone));
        assert_eq!(active(&cluster).await.len(), 2, "a released pod is replaced");
    });
}
