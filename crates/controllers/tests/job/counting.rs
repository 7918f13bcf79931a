//! Every pod is counted once, whatever goes wrong.

use super::*;
use std::collections::BTreeSet;
use testkit::Fault;

const USER: &str = "system:serviceaccount:kube-system:job-controller";

/// Lets a Job run: the first two pods fail, the others succeed. Every pod that has ended must be counted once.
async fn run_with_failures(cluster: Cluster, mode: &str) {
    apply(&cluster, &json!({"parallelism": 2, "completions": 3, "completionMode": mode})).await;
    let (mut failed, mut succeeded) = (BTreeSet::new(), BTreeSet::new());
    // A Job of five pods ends well before.
    for _ in 0..20 {
        for pod in active(&cluster).await {
            let (uid, is_failure) = (pod.uid().unwrap(), failed.len() < 2);
            end(&cluster, &pod.name_any(), i32::from(is_failure)).await;
            if is_failure {
                failed.insert(uid)
            } else {
                succeeded.insert(uid)
            };
        }
        cluster.advance(Duration::from_secs(30)).await;
    }
    let status = job_status(&cluster).await;
    let count = |pods: &BTreeSet<String>| Some(i32::try_from(pods.len()).unwrap());
    assert_eq!((status.failed, status.succeeded), (count(&failed), count(&succeeded)));
    assert_eq!(status.succeeded, Some(3));
    let expected = "Complete=True CompletionsReached: Reached expected number of succeeded pods";
    assert_eq!(conditions(&cluster).await[1], expected);
    let pods: Vec<Pod> = cluster.list("default").await;
    assert!(!pods.iter().any(is_tracked), "no finalizer is left");
}

#[test]
fn every_pod_is_counted_once_wherever_the_controller_crashes() {
    for mode in ["NonIndexed", "Indexed"] {
        let crashes = testkit::crash_everywhere(
            USER,
            async |cluster: &Cluster| start(cluster),
            |cluster| run_with_failures(cluster, mode),
        );
        assert!(crashes.writes >= 15, "{crashes}");
    }
}

#[test]
fn every_pod_is_counted_once_whatever_requests_fail() {
    for (verb, resource) in [
        ("update", "jobs/status"),
        ("patch", "pods"),
        ("create", "pods"),
        ("watch", "pods"),
        ("watch", "jobs"),
    ] {
        testkit::run(|cluster| async move {
            let rule = || Fault::on(verb, resource).by(USER);
            if verb == "watch" {
                let rule = || Fault::on(verb, resource);
                cluster.inject(rule().times(2).cut_after(1));
                cluster.inject(rule().nth(3).expire_after(2));
                cluster.inject(rule().always().lag(Duration::from_millis(300)));
            } else {
                cluster.inject(rule().nth(1).error(503, "ServiceUnavailable"));
                cluster.inject(rule().nth(3).lose_answer());
                cluster.inject(rule().nth(4).lose_request());
                cluster.inject(rule().nth(6).conflict());
            }
            let _running = start(&cluster);
            run_with_failures(cluster.clone(), "NonIndexed").await;
        });
    }
}
