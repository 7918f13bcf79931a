//! The two clients of the server: an administrator who prepares, and an attacker with the rights of the
//! attack.

use crate::{
    bench::{client::Client, kubeconfig::Target},
    victim::Victim,
};
use futures::future::join_all;
use http::{HeaderValue, Method, header};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc};
use world::World;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
pub(crate) const JSON_PATCH: &str = "application/json-patch+json";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

pub(crate) struct Scene {
    pub(crate) world: World,
    pub(crate) admin: Arc<Target>,
    pub(crate) attacker: Arc<Target>,
}

impl Scene {
    /// Gives the attacker `rights`, the rules of a cluster role.
    pub(crate) async fn new(world: &World, victim: &Victim, rights: &str) -> Scene {
        let admin = Arc::new(Target::read(&victim.kubeconfig).unwrap());
        let attacker = Arc::new(with_token(&victim.kubeconfig));
        let scene = Scene { world: world.clone(), admin, attacker };
        let rules: Value = serde_json::from_str(rights).unwrap();
        let role = json!({"metadata": {"name": "attacker"}, "rules": rules});
        let reference =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "attacker"});
        let subjects = json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]);
        let binding = json!({"metadata": {"name": "attacker"}, "roleRef": reference, "subjects": subjects});
        scene.make("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await;
        scene.make("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
        scene
            .make("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "default"}}))
            .await;
        scene
    }

    /// Creates an object for the attack, as administrator.
    pub(crate) async fn make(&self, path: &str, object: Value) {
        let code = self.send(&self.admin, "POST", path, JSON, object.to_string()).await;
        assert!(matches!(&*code, "201" | "409"), "{path}: {code}");
    }

    /// Sends a request of the attacker; returns the status code, or that there was no response.
    pub(crate) async fn attack(&self, what: &str, content_type: &str, body: impl Into<String>) -> String {
        let (method, path) = what.split_once(' ').unwrap();
        self.send(&self.attacker, method, path, content_type, body.into()).await
    }

    /// Sends many requests at once; returns the status codes and their counts.
    pub(crate) async fn attack_at_once(&self, requests: Vec<(String, &str, String)>) -> String {
        let all = requests
            .into_iter()
            .map(|(what, content_type, body)| async move { self.attack(&what, content_type, body).await });
        counted(join_all(all).await)
    }

    async fn send(
        &self,
        from: &Target,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> String {
        let Ok(mut client) = Client::connect(&self.world, from).await else { return "cut off".to_owned() };
        let mut request = from.request(Method::from_bytes(method.as_bytes()).unwrap(), path, body);
        let content_type = HeaderValue::from_str(content_type).unwrap();
        request.headers_mut().insert(header::CONTENT_TYPE, content_type);
        match client.send(request).await {
            Ok(answer) => answer.status.as_u16().to_string(),
            Err(_) => "cut off".to_owned(),
        }
    }
}

/// Distinct responses with their counts.
pub(crate) fn counted(answers: Vec<String>) -> String {
    let mut counts = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer).or_insert(0) += 1;
    }
    let shown = counts.into_iter().map(|(answer, count)| match count {
        1 => answer,
        _ => format!("{count} × {answer}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// The server of a kubeconfig, for the user of the static token.
fn with_token(kubeconfig: &Path) -> Target {
    let json = schema::yaml::to_json(&fs::read(kubeconfig).unwrap()).unwrap().json;
    let mut config: Value = serde_json::from_slice(&json).unwrap();
    config["users"][0]["user"] = json!({"token": "mallory"});
    let path = kubeconfig.with_file_name("attacker");
    fs::write(&path, config.to_string()).unwrap();
    Target::read(&path).unwrap()
}
