//! Jobs whose pods fail.

use super::*;
use jiff::Timestamp;

/// When the pods were created, in seconds after the first.
async fn creations(cluster: &Cluster) -> Vec<i64> {
    let pods: Vec<Pod> = cluster.list("default").await;
    let mut times: Vec<Timestamp> = pods.iter().map(|pod| pod.creation_timestamp().unwrap().0).collect();
    times.sort();
    times.iter().map(|time| time.duration_since(times[0]).as_secs()).collect()
}

#[test]
fn failures_delay_the_next_pod_from_ten_seconds_to_ten_minutes() {
    // One seed: three hours are long enough.
    testkit::simulate(1, |cluster| async move {
        let _running = start(&cluster);
        apply(&cluster, &json!({"backoffLimit": 20})).await;
        // Three hours: pods fail as soon as they are there.
        for _ in 0..3 * 360 {
            end_active(&cluster, 1).await;
            cluster.advance(Duration::from_secs(10)).await;
        }
        let created = creations(&cluster).await;
        let pauses: Vec<i64> = created.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // A pod fails up to ten seconds after it was created.
        for (place, expected) in [10, 20, 40, 80, 160, 320, 600, 600, 600].into_iter().enumerate() {
            let pause = pauses[place];
            assert!((expected - 1..expected + 25).contains(&pause), "pause {place}: {pause} s in {pauses:?}");
        }
        assert_eq!((created.len(), job_status(&cluster).await.failed), (21, Some(21)));
        let expected = "Failed=True BackoffLimitExceeded: Job has reached the specified backoff limit";
        assert_eq!(conditions(&cluster).await[1], expected);
    });
}

#[test]
fn a_job_fails_when_its_back_off_limit_is_reached() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        apply(&cluster, &json!({"parallelism": 2, "completions": 2, "backoffLimit": 1})).await;
        let pods = active(&cluster).await;
        end(&cluster, &pods[0].name_any(), 1).await;
        cluster.advance(Duration::from_secs(15)).await;
        let pods = active(&cluster).await;
        assert_eq!(pods.len(), 2, "one failure is allowed");
        end(&cluster, &pods[0].name_any(), 1).await;
        cluster.settle().await;
        let expected = [
            "FailureTarget=True BackoffLimitExceeded: Job has reached the specified backoff limit",
            "Failed=True BackoffLimitExceeded: Job has reached the specified backoff limit",
        ];
        assert_eq!(conditions(&cluster).await, expected);
        let status = job_status(&cluster).await;
        // The pod that was ended with the Job counts as failed.
        assert_eq!((status.failed, status.active, status.completion_time), (Some(3), None, None));
        let expected = [
            "Normal SuccessfulCreate: Created pod: ",
            "Normal SuccessfulDelete: Deleted pod: ",
            "Warning BackoffLimitExceeded: Job has reached the specified backoff limit",
        ];
        assert_eq!(events(&cluster).await, expected);
    });
}

#[test]
fn the_failure_policy_ignores_counts_or_fails() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        let codes = |action: &str, code: i32| json!({"action": action, "onExitCodes": {"operator": "In", "values": [code]}});
        let policy = json!({"rules": [codes("Ignore", 3), codes("FailJob", 42)]});
        apply(&cluster, &json!({"backoffLimit": 0, "podFailurePolicy": policy})).await;
        end_active(&cluster, 3).await;
        cluster.advance(Duration::from_secs(15)).await;
        assert_eq!((active(&cluster).await.len(), job_status(&cluster).await.failed), (1, None));
        let name = active(&cluster).await[0].name_any();
        end_active(&cluster, 42).await;
        let message = format!(
            "Container main for pod default/{name} failed with exit code 42 matching FailJob rule at index 1"
        );
        let expected = [
            format!("FailureTarget=True PodFailurePolicy: {message}"),
            format!("Failed=True PodFailurePolicy: {message}"),
        ];
        assert_eq!(conditions(&cluster).await, expected);
        assert_eq!(job_status(&cluster).await.failed, Some(1));
    });
}

#[test]
fn each_index_fails_for_itself() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster);
        let spec = json!({"parallelism": 3, "completions": 3, "completionMode": "Indexed",
            "backoffLimitPerIndex": 1, "maxFailedIndexes": 2});
        apply(&cluster, &spec).await;
        let pods = active(&cluster).await;
        end(&cluster, &pods[1].name_any(), 1).await;
        cluster.advance(Duration::from_secs(15)).await;
        let pods = active(&cluster).await;
        assert_eq!(pods.len(), 3);
        assert_eq!(pods[1].annotations()["batch.kubernetes.io/job-index-failure-count"], "1");
        end(&cluster, &pods[1].name_any(), 1).await;
        cluster.advance(Duration::from_secs(60)).await;
        let status = job_status(&cluster).await;
        assert_eq!(
            (status.failed_indexes.as_deref(), status.failed, status.active),
            (Some("1"), Some(2), Some(2))
        );
        end_active(&cluster, 0).await;
        let status = job_status(&cluster).await;
        assert_eq!(status.completed_indexes.as_deref(), Some("0,2"));
        assert_eq!(conditions(&cluster).await[1], "Failed=True FailedIndexes: Job has failed indexes");
    });
}

#[test]
fn terminating_pods_are_replaced_at_once_or_when_they_have_ended() {
    for (policy, pods_meanwhile, failed) in [("TerminatingOrFailed", 1, Some(1)), ("Failed", 0, None)] {
        testkit::run(|cluster| async move {
            let _running = start(&cluster);
            apply(&cluster, &json!({"podReplacementPolicy": policy})).await;
            // On a node, a pod that is deleted stays until its kubelet has ended it.
            let name = active(&cluster).await[0].name_any();
            let hold = json!({"metadata": {"finalizers": [FINALIZER, "example.com/kubelet"]}});
            cluster.patch::<Pod>("default", &name, &hold).await;
            cluster.delete::<Pod>("default", &name).await;
            cluster.advance(Duration::from_secs(20)).await;
            let status = job_status(&cluster).await;
            let meanwhile = active(&cluster).await.len();
            assert_eq!(
                (meanwhile, status.terminating, status.failed),
                (pods_meanwhile, Some(1), failed),
                "{policy}"
            );
            end(&cluster, &name, 1).await;
            cluster.advance(Duration::from_secs(20)).await;
            let status = job_status(&cluster).await;
            assert_eq!((active(&cluster).await.len(), status.failed), (1, Some(1)), "{policy}");
        });
    }
}
