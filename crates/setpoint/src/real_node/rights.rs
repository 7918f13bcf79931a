//! The roles and bindings for real nodes, applied as often as one likes.

use super::bootstrap_token::GROUP;
use crate::client::{
    api::{APPLY, Api, Call, JSON},
    failure::ClientResult,
};
use http::Method;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
/// The role of our own; the others are Kubernetes'.
const OWN_SERVING: &str = "setpoint:own-serving-certificate";
/// Kubernetes: all nodes that have joined.
const NODES: &str = "system:nodes";
const NODE_CERTIFICATES: &str = "system:certificates.k8s.io:certificatesigningrequests";

/// Applies all of them.
pub(crate) async fn grant(api: &Api) -> ClientResult<()> {
    for (resource, object) in objects() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let path = format!("{RBAC}/{resource}/{name}?fieldManager=setpoint&force=true");
        let body = object.to_string().into_bytes();
        api.json(Call { method: Method::PATCH, path: &path, accept: JSON, content_type: APPLY, body })
            .await?;
    }
    Ok(())
}

fn objects() -> Vec<(&'static str, Value)> {
    let group = |name: &str| json!({"kind": "Group", "name": name, "apiGroup": "rbac.authorization.k8s.io"});
    let binding = |name: &str, role: &str, subject: Value| {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role});
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": name}, "roleRef": role, "subjects": [subject],
        });
        ("clusterrolebindings", binding)
    };
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": OWN_SERVING},
        "rules": [{"verbs": ["create"], "apiGroups": ["certificates.k8s.io"],
            "resources": ["certificatesigningrequests/selfnodeserver"]}],
    });
    let approver =
        json!({"kind": "ServiceAccount", "namespace": "kube-system", "name": "certificate-controller"});
    let server =
        json!({"kind": "User", "name": node::kubelet::API_SERVER, "apiGroup": "rbac.authorization.k8s.io"});
    vec![
        ("clusterroles", role),
        // Who has a token may ask for the certificate of a node, and gets it.
        binding("setpoint:bootstrappers-ask", "system:node-bootstrapper", group(GROUP)),
        binding("setpoint:bootstrappers-join", &format!("{NODE_CERTIFICATES}:nodeclient"), group(GROUP)),
        // A node renews its certificate, and gets one to serve with.
        binding("setpoint:nodes-renew", &format!("{NODE_CERTIFICATES}:selfnodeclient"), group(NODES)),
        binding("setpoint:nodes-serve", OWN_SERVING, group(NODES)),
        binding("setpoint:approve-serving", "system:certificates.k8s.io:kubelet-serving-approver", approver),
        // Kubelets ask the server whether the server may ask them.
        binding("setpoint:server-asks-kubelets", "system:kubelet-api-admin", server),
    ]
}
