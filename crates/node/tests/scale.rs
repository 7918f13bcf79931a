//! Many nodes and pods: the number of requests stays proportional to what happens.

use crate::rig::{container, pod, start_with};
use k8s_openapi::api::core::v1::Pod;
use node::Settings;
use serde_json::json;

const NODES: usize = 50;
const PODS: usize = 1000;

#[test]
fn a_thousand_pods_on_fifty_nodes_cost_one_write_each() {
    testkit::simulate(1, |cluster| async move {
        let settings = Settings { count: NODES, has_events: false, ..Settings::default() };
        let _running = start_with(&cluster, &settings);
        for number in 0..PODS {
            let mut spec = container("nginx");
            spec["nodeName"] = json!(format!("node-{}", number % NODES));
            cluster.create(&pod(&format!("web-{number}"), spec, "")).await;
        }
        cluster.settle().await;
        let pods: Vec<Pod> = cluster.list("default").await;
        let is_running =
            |pod: &&Pod| pod.status.as_ref().is_some_and(|it| it.phase.as_deref() == Some("Running"));
        assert_eq!(pods.iter().filter(is_running).count(), PODS);
        let trace = cluster.trace();
        let requests = trace.forgotten + trace.entries.len() as u64;
        // A create and a status for each pod; a create, a lease and a report for each node; watches and lists.
        let expected = (2 * PODS + 5 * NODES + 100) as u64;
        assert!(requests <= expected, "{requests} requests, not {expected}");
    });
}
