//! NodeRestriction: kubelets may write only their own node and pods.

use super::{Answer, Cluster, PODS, certificates, pod, story};
use serde_json::{Value, json};
use server::{Caller, Config};

/// As the kubelet of the node `one`, with all RBAC rights.
async fn kubelet(cluster: &Cluster, what: &str, body: Value) -> Answer {
    cluster.by(Caller::known("system:node:one", "", vec!["system:nodes".to_owned()]), what, body).await
}

fn labelled(name: &str, labels: Value) -> Value {
    json!({"metadata": {"name": name, "labels": labels}})
}

#[test]
fn a_kubelet_writes_only_its_own_node_and_pods() {
    story(Config::default(), |cluster| async move {
        cluster
            .grant("system:node:one", json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]))
            .await;
        let node = cluster.made("POST /api/v1/nodes", labelled("one", json!({}))).await;
        cluster.made("POST /api/v1/nodes", labelled("two", json!({}))).await;
        cluster.made(&format!("POST {PODS}"), pod("own", json!({"nodeName": "one"}))).await;
        cluster.made(&format!("POST {PODS}"), pod("other", json!({"nodeName": "two"}))).await;
        let lease = json!({"metadata": {"name": "one"}, "spec": {}});
        let signer = "kubernetes.io/kube-apiserver-client-kubelet";
        let request = |who: &str| certificates::request("r", signer, who, "system:nodes");
        let requests = "POST /apis/certificates.k8s.io/v1/certificatesigningrequests";
        for (what, body, message) in [
            (
                "PATCH /api/v1/nodes/two",
                json!({"spec": {"unschedulable": true}}),
                r#"nodes "two" is forbidden: node "one" is not allowed to modify node "two""#,
            ),
            (
                "PATCH /api/v1/nodes/one",
                json!({"spec": {"taints": []}}),
                r#"nodes "one" is forbidden: node "one" is not allowed to modify taints"#,
            ),
            (
                "PATCH /api/v1/nodes/one",
                json!({"metadata": {"labels": {"node-restriction.kubernetes.io/x": "1", "a.k8s.io/b": "2",
                    "kubernetes.io/os": "linux", "x.node.kubernetes.io/y": "3", "example.com/z": "4"}}}),
                r#"nodes "one" is forbidden: is not allowed to modify labels: a.k8s.io/b, node-restriction.kubernetes.io/x"#,
            ),
            (
                "DELETE /api/v1/namespaces/n/pods/other",
                Value::Null,
                r#"pods "other" is forbidden: node "one" can only delete pods with spec.nodeName set to itself"#,
            ),
            (
                "PATCH /api/v1/namespaces/n/pods/own",
                labelled("own", json!({"a": "b"})),
                r#"pods "own" is forbidden: unexpected operation "UPDATE", node "one" can only create and delete mirror pods"#,
            ),
            (
                "PATCH /api/v1/namespaces/n/pods/other/status",
                json!({"status": {"phase": "Running"}}),
                r#"pods "other" is forbidden: node "one" can only update pod status for pods with spec.nodeName set to itself"#,
            ),
            (
                "POST /api/v1/namespaces/n/pods/other/eviction",
                json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}}),
                r#"pods "other" is forbidden: node one can only evict pods with spec.nodeName set to itself"#,
            ),
            (
                "POST /api/v1/namespaces/n/pods/other/binding",
                json!({"target": {"kind": "Node", "name": "one"}}),
                r#"pods "other" is forbidden: unexpected pod subresource "binding", only 'status' and 'eviction' are allowed"#,
            ),
            (
                "POST /api/v1/namespaces/n/pods",
                pod("p", json!({"nodeName": "one"})),
                r#"pods "p" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "one" can only create mirror pods"#,
            ),
            (
                "POST /apis/coordination.k8s.io/v1/namespaces/n/leases",
                lease.clone(),
                r#"leases.coordination.k8s.io "one" is forbidden: can only access leases in the "kube-node-lease" system namespace"#,
            ),
            (
                "POST /apis/storage.k8s.io/v1/csinodes",
                json!({"metadata": {"name": "two"}, "spec": {"drivers": []}}),
                r#"csinodes.storage.k8s.io "two" is forbidden: can only access CSINode with the same name as the requesting node"#,
            ),
            (
                "POST /api/v1/namespaces/n/serviceaccounts/default/token",
                json!({"spec": {"audiences": []}}),
                r#"serviceaccounts "default" is forbidden: node requested token not bound to a pod"#,
            ),
            (
                requests,
                request("system:node:two"),
                r#"certificatesigningrequests.certificates.k8s.io "r" is forbidden: can only create a node CSR with CN=system:node:one"#,
            ),
        ] {
            kubelet(&cluster, what, body).await.is_refused(what, 403, message);
        }
        let mut mirror = pod("mirror", json!({"nodeName": "one"}));
        mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        mirror["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "v1", "kind": "Node", "name": "one", "uid": node["metadata"]["uid"], "controller": true},
        ]);
        for (what, body) in [
            ("PATCH /api/v1/nodes/one", labelled("one", json!({"kubernetes.io/arch": "arm64"}))),
            ("PATCH /api/v1/namespaces/n/pods/own/status", json!({"status": {"phase": "Running"}})),
            ("POST /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", lease),
            ("POST /api/v1/namespaces/n/pods", mirror),
            (requests, request("system:node:one")),
        ] {
            let answer = kubelet(&cluster, what, body).await;
            assert!(answer.code < 300, "{what}: {}", answer.body);
        }
    });
}

#[test]
fn a_kubelet_requests_tokens_only_for_its_pods_and_their_audiences() {
    story(Config::default(), |cluster| async move {
        cluster
            .grant(
                "system:node:one",
                json!([{"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"]}]),
            )
            .await;
        cluster.made("POST /api/v1/nodes", labelled("one", json!({}))).await;
        let token = json!({"serviceAccountToken": {"path": "t", "audience": "vault"}});
        let volumes = json!([{"name": "v", "projected": {"sources": [token]}}]);
        let own = pod("own", json!({"nodeName": "one", "volumes": volumes}));
        let own = cluster.made(&format!("POST {PODS}"), own).await;
        let other = cluster.made(&format!("POST {PODS}"), pod("other", json!({"nodeName": "two"}))).await;
        let ask = |pod: &Value, audiences: Value| {
            let (name, uid) = (&pod["metadata"]["name"], &pod["metadata"]["uid"]);
            let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
            json!({"spec": {"audiences": audiences, "boundObjectRef": bound}})
        };
        let what = "POST /api/v1/namespaces/n/serviceaccounts/default/token";
        for (body, message) in [
            (ask(&other, json!([])), "node requested token bound to a pod scheduled on a different node"),
            (ask(&own, json!(["a", "b"])), "node may only request 0 or 1 audiences"),
            (
                ask(&own, json!(["bank"])),
                r#"audience "bank" not found in pod spec volume, system:node:one is not authorized to request tokens for this audience"#,
            ),
        ] {
            let message = format!("serviceaccounts \"default\" is forbidden: {message}");
            kubelet(&cluster, what, body).await.is_refused(what, 403, &message);
        }
        for audiences in [json!([]), json!(["vault"])] {
            let answer = kubelet(&cluster, what, ask(&own, audiences)).await;
            assert_eq!(answer.code, 201, "{}", answer.body);
        }
        let rule = json!([{"apiGroups": [""], "resources": ["bank"], "verbs": ["request-serviceaccounts-token-audience"]}]);
        cluster.grant("system:node:one", rule).await;
        let answer = kubelet(&cluster, what, ask(&own, json!(["bank"]))).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
    });
}
