//! Ranges of pod addresses for nodes, out of one that has room for two.

use crate::rig;
use k8s_openapi::api::core::v1::Node;
use testkit::Cluster;

const LOOP: &str = "node-ipam-controller";

async fn add(cluster: &Cluster, name: &str) {
    cluster.apply(&format!("{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}")).await;
}

async fn ranges(cluster: &Cluster) -> Vec<String> {
    let nodes = cluster.list::<Node>(None).await;
    let ranges = nodes.into_iter().map(|node| {
        let spec = node.spec.unwrap_or_default();
        assert_eq!(
            spec.pod_cidr.iter().collect::<Vec<_>>(),
            spec.pod_cidrs.iter().flatten().collect::<Vec<_>>()
        );
        spec.pod_cidr.unwrap_or_default()
    });
    ranges.collect()
}

#[test]
fn every_node_gets_a_range_and_a_node_that_goes_leaves_its_own() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &[LOOP]);
        add(&cluster, "a").await;
        cluster.settle().await;
        add(&cluster, "b").await;
        cluster.settle().await;
        assert_eq!(ranges(&cluster).await, ["10.244.0.0/24", "10.244.1.0/24"]);
        add(&cluster, "c").await;
        cluster.settle().await;
        assert_eq!(ranges(&cluster).await, ["10.244.0.0/24", "10.244.1.0/24", ""]);
        cluster.delete::<Node>(None, "a").await;
        cluster.settle().await;
        assert_eq!(ranges(&cluster).await, ["10.244.1.0/24", "10.244.0.0/24"]);
    });
}

#[test]
fn no_range_is_given_twice_wherever_the_loop_crashes() {
    let crashes = testkit::crash_everywhere(
        &rig::user("node-controller"),
        async |cluster: &Cluster| rig::start(cluster, &[LOOP]),
        |cluster| async move {
            add(&cluster, "a").await;
            add(&cluster, "b").await;
            cluster.settle().await;
            let mut ranges = ranges(&cluster).await;
            ranges.sort();
            assert_eq!(ranges, ["10.244.0.0/24", "10.244.1.0/24"]);
        },
    );
    assert!(crashes.writes >= 2, "{crashes}");
}
