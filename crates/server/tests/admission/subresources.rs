//! Admission of bindings, evictions and resizes.

use super::{PODS, pod, story};
use serde_json::{Value, json};
use server::Config;

#[test]
fn a_bound_pod_gets_zone_and_region_of_its_node() {
    story(Config::default(), |cluster| async move {
        let labels =
            json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"});
        cluster.made("POST /api/v1/nodes", json!({"metadata": {"name": "one", "labels": labels}})).await;
        let direct = cluster.made(&format!("POST {PODS}"), pod("direct", json!({"nodeName": "one"}))).await;
        let expected = json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"});
        assert_eq!(direct["metadata"]["labels"], expected);
        let mut later = pod("later", json!({}));
        later["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "mine"});
        cluster.made(&format!("POST {PODS}"), later).await;
        let binding = json!({"target": {"kind": "Node", "name": "one"}, "metadata": {"name": "later", "annotations": {"a": "b"}}});
        cluster.made(&format!("POST {PODS}/later/binding"), binding).await;
        let bound = cluster.get(&format!("{PODS}/later")).await;
        assert_eq!(bound["metadata"]["labels"], expected);
        assert_eq!(bound["metadata"]["annotations"]["a"], "b");
    });
}

#[test]
fn a_resize_beyond_the_nodes_capacity_is_rejected() {
    story(Config::default(), |cluster| async move {
        let node =
            json!({"metadata": {"name": "one"}, "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}});
        cluster.made("POST /api/v1/nodes", node).await;
        let sized = |cpu: &str| json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]);
        let pod = pod("p", json!({"nodeName": "one", "containers": sized("1")}));
        cluster.made(&format!("POST {PODS}"), pod).await;
        let resize = format!("PATCH {PODS}/p/resize");
        let answer = cluster.send(&resize, json!({"spec": {"containers": sized("3")}})).await;
        let message = "pods \"p\" is forbidden: node didn't have enough allocatable resources: cpu, requested: 3000, \
                       allocatable: 2000";
        answer.is_refused(&resize, 403, message);
        assert_eq!(answer.body["details"]["causes"], json!([{"reason": "NodeCapacity"}]));
        cluster.made(&resize, json!({"spec": {"containers": sized("2")}})).await;
    });
}

#[test]
fn an_eviction_in_a_terminating_namespace_is_rejected() {
    story(Config::default(), |cluster| async move {
        cluster.made(&format!("POST {PODS}"), pod("p", json!({}))).await;
        cluster.made("DELETE /api/v1/namespaces/n", Value::Null).await;
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
        let answer = cluster.send(&format!("POST {PODS}/p/eviction"), eviction).await;
        assert_eq!(answer.code, 403, "{}", answer.body);
    });
}
