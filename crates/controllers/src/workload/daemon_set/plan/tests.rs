//! Plans for DaemonSets in many states.

use super::*;
use k8s_openapi::api::apps::v1::DaemonSet;
use serde_json::{Value, json};

const NOW: &str = "2026-01-01T01:00:00Z";

/// A pod as `name@node:state[:revision]`; `n` is the new revision, and the default. Pods with longer names are older.
fn pod(text: &str) -> Arc<Pod> {
    let mut words = text.split(':');
    let (name, node) = words.next().unwrap().split_once('@').unwrap();
    let state = words.next().unwrap();
    let revision = words.next().unwrap_or("n");
    let (phase, ready) = match state {
        "ready" | "deleting" => ("Running", "True"),
        "unready" => ("Running", "False"),
        "unbound" => ("Pending", "False"),
        "failed" | "going" => ("Failed", "False"),
        "succeeded" => ("Succeeded", "False"),
        other => panic!("unknown state {other}"),
    };
    let deleted = matches!(state, "deleting" | "going").then_some(NOW);
    let created = format!("2026-01-01T00:{:02}:00Z", 30 - name.len());
    let spec = match state {
        "unbound" => json!({"containers": [], "affinity": {"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}}}}),
        _ => json!({"containers": [], "nodeName": node}),
    };
    let pod = json!({
        "metadata": {"name": name, "labels": {"controller-revision-hash": revision},
            "creationTimestamp": created, "deletionTimestamp": deleted},
        "spec": spec,
        "status": {"phase": phase, "conditions": [
            {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

/// Nodes as `name` or `name!effect` of a taint; `name-` has not the label that the set selects.
fn node(text: &str) -> Arc<Node> {
    let (name, effect) = text.split_once('!').map_or((text, None), |(name, effect)| (name, Some(effect)));
    let taints: Vec<Value> = effect.iter().map(|effect| json!({"key": "t", "effect": effect})).collect();
    let label = if name.ends_with('-') { "no" } else { "yes" };
    let node = json!({"metadata": {"name": name.trim_end_matches('-'), "labels": {"run": label}},
        "spec": {"taints": taints}});
    Arc::new(serde_json::from_value(node).unwrap())
}

fn rolling(unavailable: i32, surge: i32) -> Value {
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": surge}})
}

fn planned(strategy: &Value, nodes: &str, pods: &str, paused: &[(&str, u64)]) -> String {
    let set = json!({"metadata": {"name": "agent"}, "spec": {"selector": {}, "updateStrategy": strategy,
        "template": {"spec": {"containers": [], "nodeSelector": {"run": "yes"}}}}});
    let set: DaemonSet = serde_json::from_value(set).unwrap();
    let nodes: Vec<_> = nodes.split_whitespace().map(node).collect();
    let pods: Vec<_> = pods.split_whitespace().map(pod).collect();
    let pause = |(node, seconds): &(&str, u64)| ((*node).to_owned(), Duration::from_secs(*seconds));
    let paused = paused.iter().map(pause).collect();
    let desired = DaemonSpec::of(&set).unwrap().with_hash("n");
    let observed =
        DaemonState { desired, nodes: &nodes, pods: &pods, paused: &paused, now: NOW.parse().unwrap() };
    let plan = plan(&observed);
    let mut text: Vec<String> = plan.create_on.iter().map(|node| format!("create on {node}")).collect();
    text.extend(plan.delete.iter().map(|pod| format!("delete {pod}")));
    text.extend(plan.check_after.map(|pause| format!("check after {}s", pause.as_secs())));
    text.join(", ")
}

fn check(strategy: &Value, nodes: &str, pods: &str, expected: &str) {
    assert_eq!(planned(strategy, nodes, pods, &[]), expected, "{strategy}, nodes {nodes}, pods {pods}");
}

#[test]
fn every_node_that_fits_has_one_pod() {
    let one = rolling(1, 0);
    check(&one, "a b c", "", "create on a, create on b, create on c");
    check(&one, "a b", "p@a:ready", "create on b");
    check(&one, "a b", "p@a:unbound", "create on b");
    check(&one, "a b-", "p@a:ready", "");
    check(&one, "a-", "p@a:ready", "delete p");
    check(&one, "a-", "p@a:deleting", "");
    check(&one, "a!NoSchedule", "", "");
    check(&one, "a!NoSchedule", "p@a:ready", "");
    check(&one, "a!NoExecute", "p@a:ready", "delete p");
    // Its successor comes when it is gone.
    check(&one, "a", "p@a:deleting", "");
    check(&one, "a", "p@a:going", "create on a");
}

#[test]
fn of_several_pods_on_a_node_the_oldest_one_stays() {
    let one = rolling(1, 0);
    check(&one, "a", "p@a:ready ppp@a:ready pp@a:ready", "delete pp, delete p");
    check(&one, "a", "ppp@a:unbound p@a:unready", "delete ppp");
    check(&one, "a", "p@a:ready ppp@a:deleting", "");
}

#[test]
fn pods_for_nodes_that_are_gone_are_deleted_if_they_were_never_bound() {
    check(&rolling(1, 0), "a", "p@a:ready q@b:unbound", "delete q");
    check(&rolling(1, 0), "a", "p@a:ready q@b:ready", "");
}

#[test]
fn finished_pods_are_replaced_and_failing_ones_with_pauses() {
    let one = rolling(1, 0);
    check(&one, "a", "p@a:failed", "delete p");
    check(&one, "a", "p@a:succeeded", "delete p");
    assert_eq!(planned(&one, "a", "p@a:failed", &[("a", 4)]), "check after 4s");
    assert_eq!(planned(&one, "a b", "p@a:failed q@b:failed", &[("a", 4), ("b", 2)]), "check after 2s");
    assert_eq!(planned(&one, "a", "p@a:succeeded", &[("a", 4)]), "delete p");
}

#[test]
fn updates_keep_within_the_unavailable_pods() {
    let old = "p@a:ready:o q@b:ready:o r@c:ready:o";
    check(&json!({"type": "OnDelete"}), "a b c", old, "");
    check(&rolling(1, 0), "a b c", old, "delete p");
    check(&rolling(2, 0), "a b c", old, "delete p, delete q");
    check(&rolling(1, 0), "a b c", "p@a:unready q@b:ready:o r@c:ready:o", "");
    check(&rolling(1, 0), "a b c", "p@a:ready q@b:ready:o r@c:ready:o", "delete q");
    check(&rolling(1, 0), "a b c", "p@a:deleting:o q@b:ready:o r@c:ready:o", "");
    // Old pods that are not available are replaced, too, and count.
    check(&rolling(1, 0), "a b c", "p@a:ready:o q@b:unready:o r@c:unready:o", "delete q, delete r");
    // The number of pods comes first.
    check(&rolling(1, 0), "a b c", "p@a:ready:o q@b:ready:o", "create on c");
}

#[test]
fn updates_with_a_surge_create_the_new_pod_first() {
    let surge = rolling(0, 1);
    check(&surge, "a b", "p@a:ready:o q@b:ready:o", "create on a");
    check(&rolling(0, 2), "a b", "p@a:ready:o q@b:ready:o", "create on a, create on b");
    check(&surge, "a b", "p@a:ready:o pn@a:unready q@b:ready:o", "");
    check(&surge, "a b", "p@a:ready:o pn@a:ready q@b:ready:o", "delete p");
    check(&surge, "a b", "p@a:unready:o pn@a:unready q@b:ready:o", "delete p");
    check(&surge, "a b", "p@a:ready q@b:ready:o", "create on b");
    check(&surge, "a b", "p@a:unready:o q@b:unready:o", "create on a, create on b");
    check(&surge, "a", "p@a:deleting:o", "create on a");
    check(&surge, "a", "p@a:ready pp@a:ready ppp@a:ready:o", "delete p, delete ppp");
}

#[test]
fn with_a_surge_pods_on_nodes_that_are_left_stay_until_others_are_available() {
    let surge = rolling(0, 1);
    check(&surge, "a!NoSchedule b", "p@a:ready:o q@b:unready", "");
    check(&surge, "a!NoSchedule b", "p@a:ready:o q@b:ready", "delete p");
    check(&surge, "a!NoSchedule b", "p@a:unready:o q@b:ready", "delete p");
}
