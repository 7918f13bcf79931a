//! A namespace for the benchmark on a server: filled before, emptied and removed after.

use super::{client::Client, kubeconfig::Target};
use anyhow::{Context, Result, bail};
use api::path::ResourcePath;
use bytes::Bytes;
use futures::future::try_join_all;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use std::time::Duration;
use world::World;

/// The size of an object in a request.
pub(crate) const OBJECT_BYTES: usize = 1024;
/// Connections that fill the namespace.
const FILLERS: usize = 8;
/// How long the controllers of a cluster get to remove a namespace.
const REMOVAL: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The lifetime of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// Stays until the end.
    Kept,
    /// Created to be deleted.
    Passing,
}

/// The server and the namespace.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) target: Target,
    pub(crate) namespace: String,
    /// The number of permanent objects: those that are listed, read and changed.
    pub(crate) objects: usize,
}

impl Role {
    fn label(self) -> &'static str {
        match self {
            Role::Kept => "kept",
            Role::Passing => "passing",
        }
    }
}

impl Place {
    /// A namespace that does not exist yet.
    pub(crate) fn new(world: &World, target: Target, objects: usize) -> Place {
        Place { target, namespace: format!("setpoint-bench-{}", world.name_suffix()), objects }
    }

    /// The path of all objects, or of one.
    pub(crate) fn path(&self, name: &str) -> String {
        let objects = ResourcePath::collection("", "v1", "configmaps").in_namespace(&self.namespace);
        objects.named(name).to_string()
    }

    pub(crate) fn request(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        self.target.request(method, path, body)
    }

    /// Creates the namespace and the permanent objects.
    pub(crate) async fn prepare(&self, world: &World) -> Result<()> {
        let mut client = Client::connect(world, &self.target).await?;
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}});
        let create = self.request(Method::POST, "/api/v1/namespaces", namespace.to_string());
        client.ask(world, create).await?;
        let fillers = (0..FILLERS).map(|filler| async move {
            let mut client = Client::connect(world, &self.target).await?;
            for number in (filler..self.objects).step_by(FILLERS) {
                let body = object(&kept(number), Role::Kept, 0);
                client.ask(world, self.request(Method::POST, &self.path(""), body)).await?;
            }
            Ok::<_, anyhow::Error>(())
        });
        try_join_all(fillers).await.map(drop)
    }

    /// Removes objects that were created to be deleted, and still exist.
    pub(crate) async fn clear(&self, world: &World) -> Result<()> {
        let mut client = Client::connect(world, &self.target).await?;
        let path = format!("{}?labelSelector=setpoint-bench%3D{}", self.path(""), Role::Passing.label());
        client.ask(world, self.request(Method::DELETE, &path, "")).await.map(drop)
    }

    /// Removes everything from the server.
    pub(crate) async fn remove(&self, world: &World) -> Result<()> {
        let mut client = Client::connect(world, &self.target).await?;
        let path = ResourcePath::collection("", "v1", "namespaces").named(&self.namespace).to_string();
        if client.send(self.request(Method::GET, &path, "")).await?.status == StatusCode::NOT_FOUND {
            return Ok(());
        }
        // Our control plane has no namespace controller yet that finalizes namespaces.
        let is_managed = !self.version(world).await?.contains("setpoint");
        // In this order: once the namespace is terminating, no pending create succeeds.
        let namespace = client.ask(world, self.request(Method::DELETE, &path, "")).await?;
        client.ask(world, self.request(Method::DELETE, &self.path(""), "")).await?;
        if !is_managed {
            // No controller finalizes this namespace, which is empty now.
            let mut namespace: Value = serde_json::from_slice(&namespace)?;
            namespace["spec"] = json!({});
            let finalize = self.request(Method::PUT, &format!("{path}/finalize"), namespace.to_string());
            client.send(finalize).await?;
        }
        let deadline = world.now() + REMOVAL;
        while world.now() < deadline {
            if client.send(self.request(Method::GET, &path, "")).await?.status == StatusCode::NOT_FOUND {
                return Ok(());
            }
            world.sleep(LOOK_AGAIN).await;
        }
        bail!("namespace {:?} is empty and deleted, and the cluster has not removed it yet", self.namespace)
    }

    /// The latest revision, for watches to start from.
    pub(crate) async fn revision(&self, world: &World) -> Result<String> {
        let mut client = Client::connect(world, &self.target).await?;
        let path = format!("{}?limit=1", self.path(""));
        let list: Value =
            serde_json::from_slice(&client.ask(world, self.request(Method::GET, &path, "")).await?)?;
        let version = list["metadata"]["resourceVersion"].as_str();
        version.map(str::to_owned).context("a list has no resourceVersion")
    }

    /// The server's version.
    pub(crate) async fn version(&self, world: &World) -> Result<String> {
        let mut client = Client::connect(world, &self.target).await?;
        let version = client.ask(world, self.request(Method::GET, "/version", "")).await?;
        let version: Value = serde_json::from_slice(&version)?;
        Ok(version["gitVersion"].as_str().unwrap_or("unknown").to_owned())
    }
}

/// The name of a permanent object.
pub(crate) fn kept(number: usize) -> String {
    format!("object-{number:04}")
}

/// An object of [`OBJECT_BYTES`], different for each `edition`.
pub(crate) fn object(name: &str, role: Role, edition: u64) -> String {
    let start = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}","labels":{{"setpoint-bench":"{}"}}}},"data":{{"edition":"{edition:020}","filling":""#,
        role.label()
    );
    const END: &str = r#""}}"#;
    let room = OBJECT_BYTES.saturating_sub(start.len() + END.len());
    format!("{start}{}{END}", "x".repeat(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_their_size_and_are_json() {
        for (name, edition) in [("a", 0), ("object-0999", u64::MAX)] {
            let text = object(name, Role::Kept, edition);
            assert_eq!(text.len(), OBJECT_BYTES);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["metadata"]["name"], name);
        }
    }
}
