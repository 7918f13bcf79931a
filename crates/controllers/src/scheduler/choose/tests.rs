//! Tables of cases.

use super::*;
use crate::scheduler::{
    facts::tests::{pod, pod_on},
    node::tests::node,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};

fn requests(cpu: &str) -> Value {
    json!({"containers": [{"resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}]})
}

fn named(names: &[&str]) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": names}]}]}}}})
}

/// Nodes `a` and `b` with four CPUs, and `c` with a taint.
fn snapshot() -> Snapshot {
    let mut snapshot = Snapshot::default();
    let taint = json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}});
    snapshot.set_node(node("a", &json!({}), &json!({})));
    snapshot.set_node(node("b", &json!({}), &json!({})));
    snapshot.set_node(node("c", &json!({}), &taint));
    snapshot
}

fn chosen(spec: &Value, snapshot: &Snapshot, seed: u64) -> Result<String, String> {
    match choose(&pod("p", &json!({}), spec), snapshot, 0, seed) {
        Decision::Bind { node, .. } => Ok(node),
        Decision::Unschedulable(rejection) => Err(rejection.message("after")),
    }
}

#[test]
fn a_pod_without_a_node_gets_the_reasons_of_all_nodes() {
    for (spec, expected) in [
        (
            requests("8"),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. after",
        ),
        (
            json!({"nodeSelector": {"zone": "a"}}),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), \
             2 node(s) didn't match Pod's node affinity/selector. after",
        ),
        (
            named(&["c"]),
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), \
             2 node(s) didn't satisfy plugin(s) [NodeAffinity]. after",
        ),
        (
            json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]}),
            "0/3 nodes are available: persistentvolumeclaim \"data\" not found. after",
        ),
    ] {
        assert_eq!(chosen(&spec, &snapshot(), 1), Err(expected.to_owned()), "{spec}");
    }
    let none = chosen(&json!({}), &Snapshot::default(), 1);
    assert_eq!(none, Err("no nodes available to schedule pods".to_owned()));
}

#[test]
fn a_pod_may_name_its_node() {
    assert_eq!(chosen(&named(&["b"]), &snapshot(), 1), Ok("b".to_owned()));
}

#[test]
fn the_emptier_node_is_chosen_and_chance_decides_between_equal_ones() {
    let mut snapshot = snapshot();
    let all: BTreeSet<_> = (0..20).map(|seed| chosen(&requests("1"), &snapshot, seed).unwrap()).collect();
    assert_eq!(all, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    assert_eq!(chosen(&requests("1"), &snapshot, 7), chosen(&requests("1"), &snapshot, 7));
    let other = pod_on("a", "other", &json!({}), &requests("2"));
    snapshot.set_pod(&other.key(), Arc::new(other), "a");
    for seed in 0..20 {
        assert_eq!(chosen(&requests("1"), &snapshot, seed), Ok("b".to_owned()));
    }
}

#[test]
fn of_many_nodes_a_sample_is_compared() {
    for (nodes, expected) in [(1, 1), (99, 99), (100, 100), (1000, 420), (5000, 500), (10_000, 500)] {
        assert_eq!(enough(nodes), expected, "{nodes}");
    }
}

#[test]
fn the_nominated_node_goes_first() {
    let mut snapshot = snapshot();
    let other = pod_on("a", "other", &json!({}), &requests("2"));
    snapshot.set_pod(&other.key(), Arc::new(other), "a");
    let pod = PodFacts { nominated_node: Some("a".into()), ..pod("p", &json!({}), &requests("1")) };
    let Decision::Bind { node, .. } = choose(&pod, &snapshot, 0, 1) else { panic!("it fits") };
    assert_eq!(node, "a");
}
