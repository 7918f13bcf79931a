//! Tables of cases.

use super::*;
use crate::scheduler::{
    choose::{Decision, choose},
    facts::tests::{pod, pod_on},
    node::tests::node,
};
use serde_json::{Value, json};

fn cpu(cpu: &str) -> Value {
    json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]})
}

/// Nodes with four CPUs, and pods: node, name, priority, CPUs.
fn snapshot(pods: &[(&str, &str, i32, &str)]) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for name in ["a", "b"] {
        snapshot.set_node(node(name, &json!({}), &json!({})));
    }
    for (on, name, priority, requests) in pods {
        let pod = PodFacts { priority: *priority, ..pod_on(on, name, &json!({"app": name}), &cpu(requests)) };
        snapshot.set_pod(&pod.key(), Arc::new(pod), on);
    }
    snapshot
}

fn budget(app: &str, allowed: i32) -> DisruptionBudget {
    let budget = json!({"metadata": {"name": app, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
    DisruptionBudget::read(&serde_json::from_value(budget).unwrap()).unwrap()
}

fn run(pod: &PodFacts, snapshot: &Snapshot, budgets: &[DisruptionBudget]) -> String {
    let Decision::Unschedulable(rejection) = choose(pod, snapshot, 0, 1) else { panic!("it fits") };
    match preempt(pod, snapshot, &rejection, budgets, 1) {
        Preemption::Delete { node, victims } => {
            let names: Vec<&str> = victims.iter().map(|victim| victim.name.as_str()).collect();
            format!("{node}: {}", names.join(" "))
        }
        Preemption::Nothing { message, .. } => message,
    }
}

#[test]
fn the_least_important_pods_make_room() {
    let none = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.";
    let unhelpful = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.";
    for (pods, priority, wanted, budgets, expected) in [
        (&[("a", "x", 5, "4"), ("b", "y", 3, "4")][..], 9, "2", vec![], "b: y"),
        (&[("a", "x", 5, "4"), ("b", "y", 3, "4")], 4, "2", vec![], "b: y"),
        (&[("a", "x", 5, "4"), ("b", "y", 3, "4")], 3, "2", vec![], none),
        (&[("a", "x", 5, "4"), ("b", "y", 3, "4")], 9, "5", vec![], unhelpful),
        // The more important of two stays if it can.
        (&[("a", "x", 5, "2"), ("a", "z", 1, "2"), ("b", "y", 9, "4")], 9, "2", vec![], "a: z"),
        // Two pods of low priority against one: fewer victims with a lower sum.
        (&[("a", "x", 1, "2"), ("a", "z", 1, "2"), ("b", "y", 1, "4")], 9, "4", vec![], "b: y"),
        // A budget protects y.
        (&[("a", "x", 5, "4"), ("b", "y", 3, "4")], 9, "2", vec![budget("y", 0)], "a: x"),
        (&[("a", "x", 5, "4"), ("b", "y", 3, "4")], 9, "2", vec![budget("y", 1)], "b: y"),
        (&[("a", "x", 5, "4"), ("b", "y", 3, "4")], 9, "2", vec![budget("x", 0), budget("y", 0)], "b: y"),
    ] {
        let pod = PodFacts { priority, may_preempt: true, ..pod("p", &json!({}), &cpu(wanted)) };
        assert_eq!(run(&pod, &snapshot(pods), &budgets), expected, "{pods:?} {priority} {wanted}");
    }
}

#[test]
fn pods_that_may_not_preempt_or_whose_victims_are_going_wait() {
    let mut snapshot = snapshot(&[("a", "x", 1, "4"), ("b", "y", 1, "4")]);
    let polite = PodFacts { priority: 9, may_preempt: false, ..pod("p", &json!({}), &cpu("2")) };
    assert_eq!(run(&polite, &snapshot, &[]), "preemption: not eligible due to preemptionPolicy=Never.");
    let nominated = PodFacts { may_preempt: true, nominated_node: Some("a".into()), ..polite };
    let going = PodFacts { is_deleting: true, is_preempted: true, ..pod_on("a", "x", &json!({}), &cpu("4")) };
    snapshot.set_pod(&going.key(), Arc::new(going), "a");
    let expected = "preemption: not eligible due to a terminating pod on the nominated node.";
    assert_eq!(run(&nominated, &snapshot, &[]), expected);
}
