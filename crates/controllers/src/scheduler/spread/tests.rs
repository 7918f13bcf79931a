//! Tables of cases.

use super::*;
use crate::scheduler::{
    facts::tests::{pod, pod_on},
    node::tests::node,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Nodes `a1`, `a2` in zone a, `b1` in zone b, and `x` without a zone; with so many matching pods on each.
fn snapshot(on_a1: usize, on_a2: usize, on_b1: usize) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        snapshot.set_node(node(name, &json!({"zone": zone, HOSTNAME: name}), &json!({})));
    }
    snapshot.set_node(node("x", &json!({HOSTNAME: "x"}), &json!({})));
    for (name, count) in [("a1", on_a1), ("a2", on_a2), ("b1", on_b1)] {
        for number in 0..count {
            let pod = pod_on(name, &format!("{name}-{number}"), &json!({"app": "web", "v": "1"}), &json!({}));
            snapshot.set_pod(&pod.key(), Arc::new(pod), name);
        }
    }
    snapshot
}

fn constraint(more: &Value) -> Value {
    let mut constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}});
    for (key, value) in more.as_object().into_iter().flatten() {
        constraint[key.as_str()] = value.clone();
    }
    json!({"topologySpreadConstraints": [constraint], "nodeSelector": more["nodeSelector"].as_object()
        .map_or(json!({}), |it| json!(it))})
}

#[test]
fn required_constraints_reject_nodes_that_would_become_too_full() {
    for (pods, more, labels, expected) in [
        ((0, 0, 0), json!({}), json!({"app": "web"}), ["a1", "a2", "b1"].as_slice()),
        ((1, 0, 0), json!({}), json!({"app": "web"}), &["b1"]),
        ((1, 0, 1), json!({}), json!({"app": "web"}), &["a1", "a2", "b1"]),
        ((1, 1, 1), json!({}), json!({"app": "web"}), &["b1"]),
        ((1, 1, 1), json!({"maxSkew": 2}), json!({"app": "web"}), &["a1", "a2", "b1"]),
        // The pod itself does not count.
        ((1, 0, 0), json!({}), json!({"app": "db"}), &["a1", "a2", "b1"]),
        ((1, 0, 1), json!({"topologyKey": HOSTNAME}), json!({"app": "web"}), &["a2", "x"]),
        // Three zones are wanted: the missing one is empty.
        ((1, 0, 1), json!({"minDomains": 3}), json!({"app": "web"}), &[]),
        // Only pods of the same version count.
        ((1, 0, 0), json!({"matchLabelKeys": ["v"]}), json!({"app": "web", "v": "2"}), &["a1", "a2", "b1"]),
        // Zone b does not count because the pod may not run there: zone a is the emptiest.
        ((1, 0, 0), json!({"nodeSelector": {"zone": "a"}}), json!({"app": "web"}), &["a1", "a2", "b1"]),
        (
            (1, 0, 0),
            json!({"nodeSelector": {"zone": "a"}, "nodeAffinityPolicy": "Ignore"}),
            json!({"app": "web"}),
            &["b1"],
        ),
        ((1, 0, 0), json!({"labelSelector": null}), json!({"app": "web"}), &["a1", "a2", "b1"]),
    ] {
        let mut snapshot = snapshot(pods.0, pods.1, pods.2);
        let pod = pod("p", &labels, &constraint(&more));
        let fitting = |snapshot: &Snapshot| -> Vec<String> {
            let filter = SpreadFilter::new(&pod, snapshot).unwrap();
            let nodes = ["a1", "a2", "b1", "x"].into_iter();
            let fits = nodes.filter(|name| filter.check(snapshot.node(name).unwrap().1).is_ok());
            fits.map(str::to_owned).collect()
        };
        assert_eq!(fitting(&snapshot), expected, "{pods:?} {more}");
        snapshot.prepare(&pod, &pod.rules.spread);
        assert_eq!(fitting(&snapshot), expected, "{pods:?} {more}: with counts that are kept");
    }
}

#[test]
fn a_node_without_the_label_does_not_fit() {
    let snapshot = snapshot(0, 0, 0);
    let pod = pod("p", &json!({"app": "web"}), &constraint(&json!({})));
    let filter = SpreadFilter::new(&pod, &snapshot).unwrap();
    assert_eq!(filter.check(snapshot.node("x").unwrap().1), Err(SpreadProblem::MissingLabel));
}

#[test]
fn preferred_constraints_and_those_of_kubernetes_prefer_emptier_domains() {
    let snapshot = snapshot(2, 0, 0);
    let places: Vec<usize> = ["a1", "a2", "b1"].iter().map(|name| snapshot.node(name).unwrap().0).collect();
    let soft = pod("p", &json!({"app": "web"}), &constraint(&json!({"whenUnsatisfiable": "ScheduleAnyway"})));
    let found = scores(&soft, &snapshot.preferred_spread(&soft), &places, &snapshot).unwrap();
    assert_eq!(found, [0, 0, 100]);
    let plain = pod("p", &json!({"app": "web"}), &json!({}));
    assert!(scores(&plain, &snapshot.preferred_spread(&plain), &places, &snapshot).is_none(), "no service");
    let mut snapshot = snapshot;
    let selector = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
    snapshot.services.insert(operator::Key::parse("default/web"), selector.clone());
    snapshot.services.insert(operator::Key::parse("other/web"), selector);
    let found = scores(&plain, &snapshot.preferred_spread(&plain), &places, &snapshot).unwrap();
    assert!(found[1] > found[0], "{found:?}");
}
