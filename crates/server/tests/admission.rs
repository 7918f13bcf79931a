//! Built-in admission plugins over the API: defaults, rejections and warnings.

mod certificates;
mod defaults;
mod first_count;
mod node_restriction;
mod owners;
mod plugins;
mod pod_security;
mod quota;
mod subresources;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Caller, Config, Server};
use std::sync::Arc;
use world::World;

/// A control plane with the namespace `n`.
#[derive(Clone)]
struct Cluster {
    world: World,
    server: Server,
}

struct Answer {
    code: u16,
    body: Value,
    warnings: Vec<String>,
}

/// Runs a test on its own control plane.
fn story<F: Future<Output = ()>>(config: Config, act: impl FnOnce(Cluster) -> F) {
    let run = world::simulate(5, |world| async move {
        let server = Server::start(&world, Arc::new(store::Memory::new()), config).await.unwrap();
        let cluster = Cluster { world, server };
        cluster.made("POST /api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
        act(cluster).await;
    });
    run.unwrap();
}

impl Cluster {
    async fn by(&self, caller: Caller, what: &str, body: Value) -> Answer {
        let (method, path) = what.split_once(' ').unwrap();
        let content_type =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content_type);
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let mut request = request.body(Full::new(body)).unwrap();
        request.extensions_mut().insert(caller);
        let response = self.server.handle(request).await;
        let code = response.status().as_u16();
        let warnings = response.headers().get_all(header::WARNING).iter();
        let warnings = warnings.map(|text| text.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Answer { code, body: serde_json::from_slice(&bytes).unwrap_or_default(), warnings }
    }

    /// Sends a request as system:masters.
    async fn send(&self, what: &str, body: Value) -> Answer {
        self.by(Caller::known("admin", "", vec!["system:masters".to_owned()]), what, body).await
    }

    /// Sends a request that must succeed.
    async fn made(&self, what: &str, body: Value) -> Value {
        let answer = self.send(what, body).await;
        assert!(answer.code < 300, "{what}: {}", answer.body);
        answer.body
    }

    async fn refused(&self, what: &str, body: Value, code: u16, message: &str) {
        self.send(what, body).await.is_refused(what, code, message);
    }

    async fn get(&self, path: &str) -> Value {
        self.made(&format!("GET {path}"), Value::Null).await
    }

    /// Grants a user rules in all namespaces.
    async fn grant(&self, user: &str, rules: Value) {
        let base = "POST /apis/rbac.authorization.k8s.io/v1";
        let role = json!({"metadata": {"generateName": "r-"}, "rules": rules});
        let role = self.made(&format!("{base}/clusterroles"), role).await;
        let binding = json!({
            "metadata": {"generateName": "b-"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role["metadata"]["name"]},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
        });
        self.made(&format!("{base}/clusterrolebindings"), binding).await;
    }
}

impl Answer {
    fn is_refused(&self, what: &str, code: u16, message: &str) {
        assert_eq!(
            (self.code, self.body["message"].as_str()),
            (code, Some(message)),
            "{what}: {}",
            self.body
        );
    }
}

/// A pod with one container `c`, and this merged into its spec.
fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

const PODS: &str = "/api/v1/namespaces/n/pods";
