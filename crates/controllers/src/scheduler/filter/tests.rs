//! Tables of cases.

use super::*;
use crate::scheduler::{
    facts::tests::{pod, pod_on},
    node::tests::node,
};
use serde_json::{Value, json};

fn requests(requests: &Value) -> Value {
    json!({"containers": [{"resources": {"requests": requests}}]})
}

/// A node with four CPUs and room for ten pods; a pod on it takes three CPUs and the port 80.
fn check(node_more: &Value, spec: &Value) -> Result<(), Misfit> {
    let mut snapshot = Snapshot::default();
    snapshot.set_node(node("n", &json!({"zone": "a"}), node_more));
    let spec_of_other = json!({"containers": [{"resources": {"requests": {"cpu": "3"}},
        "ports": [{"containerPort": 80, "hostPort": 80}]}]});
    let other = pod_on("n", "other", &json!({}), &spec_of_other);
    snapshot.set_pod(&other.key(), Arc::new(other), "n");
    let pod = pod("p", &json!({}), spec);
    let cycle = SchedulingCycle::new(&pod, &snapshot).unwrap();
    cycle.check(snapshot.node("n").unwrap().1)
}

#[test]
fn each_filter_gives_its_reason_and_says_whether_preemption_helps() {
    let plain = json!({});
    let cordoned = json!({"spec": {"unschedulable": true}});
    let tainted = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    let full = json!({"status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "1"}}});
    let tolerant = json!({"tolerations": [{"operator": "Exists"}]});
    for (node_more, spec, expected) in [
        (&plain, json!({}), None),
        (&cordoned, json!({}), Some((vec!["node(s) were unschedulable"], false))),
        (&cordoned, tolerant.clone(), None),
        (&tainted, json!({}), Some((vec!["node(s) had untolerated taint(s)"], false))),
        (&tainted, tolerant, None),
        (
            &plain,
            json!({"nodeSelector": {"zone": "b"}}),
            Some((vec!["node(s) didn't match Pod's node affinity/selector"], false)),
        ),
        (
            &plain,
            json!({"containers": [{"ports": [{"containerPort": 80, "hostPort": 80}]}]}),
            Some((vec!["node(s) didn't have free ports for the requested pod ports"], true)),
        ),
        (&plain, json!({"containers": [{"ports": [{"containerPort": 80}]}]}), None),
        (&plain, requests(&json!({"cpu": "1"})), None),
        (&plain, requests(&json!({"cpu": "2"})), Some((vec!["Insufficient cpu"], true))),
        (&plain, requests(&json!({"cpu": "5"})), Some((vec!["Insufficient cpu"], false))),
        (
            &plain,
            requests(&json!({"cpu": "2", "memory": "9Gi", "example.com/gpu": "1"})),
            Some((vec!["Insufficient cpu", "Insufficient memory", "Insufficient example.com/gpu"], false)),
        ),
        (&full, json!({}), Some((vec!["Too many pods"], true))),
        (&full, requests(&json!({"cpu": "2"})), Some((vec!["Too many pods", "Insufficient cpu"], true))),
    ] {
        let found = check(node_more, &spec).err();
        let found = found
            .map(|it| (it.reasons.iter().map(ToString::to_string).collect::<Vec<_>>(), it.is_resolvable));
        let expected = expected.map(|(reasons, is_resolvable)| {
            (reasons.into_iter().map(str::to_owned).collect::<Vec<_>>(), is_resolvable)
        });
        assert_eq!(found, expected, "{node_more} {spec}");
    }
}

#[test]
fn room_that_a_more_important_pod_has_reserved_is_taken() {
    let mut snapshot = Snapshot::default();
    snapshot.set_node(node("n", &json!({}), &json!({})));
    let big = Arc::new(PodFacts { priority: 10, ..pod("big", &json!({}), &requests(&json!({"cpu": "4"}))) });
    snapshot.nominate(&big.key(), &big, Some("n"));
    for (priority, expected) in [(9, false), (10, false), (11, true)] {
        let pod = PodFacts { priority, ..pod("p", &json!({}), &requests(&json!({"cpu": "1"}))) };
        let cycle = SchedulingCycle::new(&pod, &snapshot).unwrap();
        assert_eq!(cycle.check(snapshot.node("n").unwrap().1).is_ok(), expected, "{priority}");
    }
}
