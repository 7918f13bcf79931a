//! Webhooks against a server: what they say happens, in process and over TLS, while certificates change.
#![expect(clippy::panic, reason = "a test that panics has failed")]

mod admission;
mod conversion;
mod managed;
mod rotation;
mod tls;

use kube::CustomResource;
use operator::webhook::{Reply, Webhooks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use testkit::Cluster;

/// Where the webhooks of these tests are, in process.
const HOST: &str = "hooks.example.com";
const URL: &str = "https://hooks.example.com";

/// What most tests are about.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Bucket", namespaced)]
pub(crate) struct BucketSpec {
    pub(crate) size: Option<u32>,
}

/// Lets the cluster reach the webhooks without sockets.
fn handle_webhooks(cluster: &Cluster, webhooks: &Arc<Webhooks>) {
    let (world, webhooks) = (cluster.world().clone(), Arc::clone(webhooks));
    cluster.handle_webhooks(HOST, move |exchange| {
        let (world, webhooks) = (world.clone(), Arc::clone(&webhooks));
        async move {
            let url: http::Uri = exchange.url.parse().unwrap();
            let query = url.query().unwrap_or_default();
            let Reply { code, body } = webhooks.answer(&world, url.path(), query, &exchange.body).await;
            (code.as_u16(), body)
        }
    });
}
