//! Requests to the testing API of a running cluster.

use crate::bench::{client::Client, kubeconfig::Target};
use anyhow::{Context, Result, bail};
use http::{HeaderValue, Method, header};
use serde_json::{Value, json};
use std::path::Path;
use testing::{GROUP, VERSION};
use world::World;

/// Far more than the largest object of this API, a trace of a thousand requests.
const MAX_RESPONSE: usize = 16 << 20;

pub(super) struct TestingClient {
    target: Target,
    client: Client,
}

impl TestingClient {
    pub(super) async fn connect(world: &World, kubeconfig: &Path) -> Result<TestingClient> {
        let target = Target::read(kubeconfig)?;
        let mut client = Client::connect(world, &target).await?;
        client.kept = MAX_RESPONSE;
        Ok(TestingClient { target, client })
    }

    async fn send(&mut self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let is_patch = method == Method::PATCH;
        let mut request = self.target.request(method, &format!("/apis/{GROUP}/{VERSION}/{path}"), body);
        let headers = request.headers_mut();
        headers.insert(header::USER_AGENT, HeaderValue::from_static("setpoint-testing"));
        if is_patch {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/merge-patch+json"));
        }
        let answer = self.client.send(request).await?;
        if answer.status == http::StatusCode::NOT_FOUND && !answer.body.starts_with(b"{") {
            bail!("{} serves no {GROUP}; start it with `setpoint up --testing`", self.target.url);
        }
        let body = answer.done()?;
        serde_json::from_slice(&body).context("the server's answer is no JSON")
    }

    /// Creates an object of a kind, and returns it with its status.
    pub(super) async fn create(&mut self, kind: &str, name: Option<&str>, spec: Value) -> Result<Value> {
        let mut spec = spec;
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        let lower = kind.to_lowercase();
        let metadata = match name {
            Some(name) => json!({"name": name}),
            None => json!({"generateName": format!("{lower}-")}),
        };
        let object = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": kind, "metadata": metadata, "spec": spec,
        });
        self.post(&format!("{lower}s"), &object).await
    }

    pub(super) async fn post(&mut self, resource: &str, object: &Value) -> Result<Value> {
        self.send(Method::POST, resource, Some(object)).await
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, None).await
    }

    pub(super) async fn delete(&mut self, resource: &str, name: &str) -> Result<()> {
        self.send(Method::DELETE, &format!("{resource}/{name}"), None).await.map(drop)
    }

    pub(super) async fn freeze(&mut self, is_frozen: bool) -> Result<Value> {
        self.send(Method::PATCH, "clocks/cluster", Some(&json!({"spec": {"frozen": is_frozen}}))).await
    }
}
