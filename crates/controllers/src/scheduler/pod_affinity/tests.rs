//! Tables of cases.

use super::*;
use crate::scheduler::{
    facts::tests::{pod, pod_on},
    node::tests::node,
};
use serde_json::{Value, json};
use std::sync::Arc;

/// Nodes `a1`, `a2` in zone a and `b1` in zone b; a pod `db` runs on `a1`.
fn snapshot(spec_of_db: &Value) -> Snapshot {
    let mut snapshot = Snapshot::default();
    for (name, zone) in [("a1", "a"), ("a2", "a"), ("b1", "b")] {
        snapshot.set_node(node(name, &json!({"zone": zone}), &json!({})));
    }
    snapshot.set_node(node("x", &json!({}), &json!({})));
    let db = pod_on("a1", "db", &json!({"app": "db"}), spec_of_db);
    snapshot.set_pod(&db.key(), Arc::new(db), "a1");
    snapshot.namespaces.insert("default".into(), BTreeMap::from([("team".to_owned(), "red".to_owned())]));
    snapshot
}

fn near(app: &str) -> Value {
    json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}})
}

fn affinity(kind: &str, term: &Value) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

#[test]
fn required_rules_select_nodes_by_the_pods_near_them() {
    let mut elsewhere = near("db");
    elsewhere["namespaces"] = json!(["other"]);
    let mut red = near("db");
    red["namespaceSelector"] = json!({"matchLabels": {"team": "red"}});
    let mut blue = near("db");
    blue["namespaceSelector"] = json!({"matchLabels": {"team": "blue"}});
    let none = json!({});
    for (db, spec, expected) in [
        (&none, affinity("podAffinity", &near("db")), ["a1", "a2"].as_slice()),
        (&none, affinity("podAffinity", &near("cache")), &[]),
        // The first of pods that want to be together.
        (&none, affinity("podAffinity", &near("web")), &["a1", "a2", "b1"]),
        (&none, affinity("podAffinity", &elsewhere), &[]),
        (&none, affinity("podAffinity", &red), &["a1", "a2"]),
        (&none, affinity("podAffinity", &blue), &[]),
        (&none, affinity("podAntiAffinity", &near("db")), &["b1", "x"]),
        (&none, affinity("podAntiAffinity", &near("web")), &["a1", "a2", "b1", "x"]),
        (&affinity("podAntiAffinity", &near("web")), json!({}), &["b1", "x"]),
    ] {
        let snapshot = snapshot(db);
        let pod = pod("p", &json!({"app": "web"}), &spec);
        let filter = AffinityFilter::new(&pod, &snapshot).unwrap();
        let fits = |name: &&&str| filter.check(snapshot.node(name).unwrap().1).is_ok();
        let fitting: Vec<&str> = ["a1", "a2", "b1", "x"].iter().filter(fits).copied().collect();
        assert_eq!(fitting, expected, "{db} {spec}");
    }
    let snapshot = snapshot(&none);
    let plain = pod("p", &json!({"app": "web"}), &json!({}));
    assert!(AffinityFilter::new(&plain, &snapshot).is_none(), "without rules there is nothing to check");
}

#[test]
fn a_pod_that_leaves_takes_its_rules_along() {
    let snapshot = snapshot(&affinity("podAntiAffinity", &near("web")));
    let pod = pod("p", &json!({"app": "web"}), &json!({}));
    let mut filter = AffinityFilter::new(&pod, &snapshot).unwrap();
    let (_, a1) = snapshot.node("a1").unwrap();
    assert_eq!(filter.check(a1), Err(AffinityProblem::Existing));
    let db = a1.pods.values().next().unwrap();
    filter.change(db, a1, -1);
    assert_eq!(filter.check(a1), Ok(()));
}

#[test]
fn preferences_of_the_pod_and_of_other_pods_compare_nodes() {
    let preferred = |kind: &str, app: &str| {
        json!({"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 10, "podAffinityTerm": near(app)}]}}})
    };
    let none = json!({});
    for (db, spec, expected) in [
        (&none, none.clone(), None),
        (&none, preferred("podAffinity", "db"), Some(vec![100, 100, 0])),
        (&none, preferred("podAntiAffinity", "db"), Some(vec![0, 0, 100])),
        (&preferred("podAffinity", "web"), none.clone(), Some(vec![100, 100, 0])),
        (&preferred("podAntiAffinity", "web"), none.clone(), Some(vec![0, 0, 100])),
        (&affinity("podAffinity", &near("web")), none.clone(), Some(vec![100, 100, 0])),
    ] {
        let snapshot = snapshot(db);
        let places: Vec<usize> =
            ["a1", "a2", "b1"].iter().map(|name| snapshot.node(name).unwrap().0).collect();
        let pod = pod("p", &json!({"app": "web"}), &spec);
        assert_eq!(scores(&pod, &places, &snapshot), expected, "{db} {spec}");
    }
}
