//! Rollouts while requests fail and the controller crashes.

use super::*;

#[test]
fn rollouts_end_whatever_requests_fail() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster).await;
        for account in ["deployment-controller", "replicaset-controller"] {
            for nth in [2, 5, 9] {
                let on =
                    |verb: &str, resource: &str| Fault::on(verb, resource).by(&rig::user(account)).nth(nth);
                cluster.inject(on("update", "*").conflict());
                cluster.inject(on("create", "*").lose_answer());
                cluster.inject(on("write", "*").lose_answer());
                cluster.inject(on("delete", "pods").error(500, "InternalError"));
            }
        }
        set_image(&cluster, "two").await;
        patch(&cluster, json!({"spec": {"replicas": 5}})).await;
        assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 two 5/5"]);
        let pods: Vec<Pod> = cluster.list("default").await;
        assert_eq!(pods.len(), 5);
        assert_eq!(reason(&web(&cluster).await, "Progressing"), "NewReplicaSetAvailable");
    });
}

#[test]
fn a_rollout_ends_after_a_crash_at_any_write() {
    for account in ["deployment-controller", "replicaset-controller"] {
        let start = async |cluster: &Cluster| rig::start(cluster, &LOOPS);
        let crashes = testkit::crash_everywhere(&rig::user(account), start, |cluster| async move {
            let _kubelet = rig::kubelet(&cluster);
            let small = WEB.replace("replicas: 3", "replicas: 2");
            cluster.apply(&small).await;
            cluster.settle().await;
            set_image(&cluster, "two").await;
            assert_eq!(sets(&cluster).await, ["1 one 0/0", "2 two 2/2"]);
            let pods: Vec<Pod> = cluster.list("default").await;
            assert_eq!(pods.len(), 2);
            assert_eq!(reason(&web(&cluster).await, "Progressing"), "NewReplicaSetAvailable");
        });
        assert!(crashes.writes > 5, "{crashes}");
    }
}
