//! The service `kubernetes` in the namespace `default`, through which pods reach this server.
//!
//! Kubernetes: `pkg/controlplane/controller/kubernetesservice` and its endpoint reconciler. The service is
//! created once and later changes by users are kept; the endpoints always have the server's address. Left
//! out on purpose: leases among several servers on one etcd; the endpoints name the one that started last.

use crate::{Caller, Server};
use bytes::Bytes;
use futures::FutureExt;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::{net::SocketAddr, time::Duration};
use store::{Event, Feed};
use world::World;

const NAME: &str = "kubernetes";
const SERVICE_PORT: u16 = 443;
/// The port of a server that advertises no address.
const USUAL_PORT: u16 = 6443;
// Kubernetes: the interval of its reconciler.
const RETRY: Duration = Duration::from_secs(10);
/// Group, version and plural of the objects that are kept.
const KEPT: [[&str; 3]; 3] =
    [["", "v1", "services"], ["", "v1", "endpoints"], ["discovery.k8s.io", "v1", "endpointslices"]];

/// Creates the service and its endpoints where missing, and corrects the endpoints.
pub(crate) async fn ensure(server: &Server) -> bool {
    let advertised = server.0.advertised;
    let made = async {
        service(server, advertised).await?;
        match advertised {
            Some(address) => endpoints(server, address).await,
            None => Ok(()),
        }
    };
    match made.await {
        Ok(()) => true,
        // A warning only: the server works without it.
        Err(problem) => {
            tracing::warn!(problem, "cannot make the service kubernetes");
            false
        }
    }
}

/// Recreates these objects when one is deleted, until the server drains.
pub(crate) fn keep(world: &World, server: &Server) {
    for [group, version, resource] in KEPT {
        let Some(served) = server.0.registry.find(group, version, resource) else { continue };
        let key = served.key("default", NAME);
        let server = server.clone();
        world.spawn("kubernetes service", async move { keep_one(&server, &key).await }).detach();
    }
}

async fn keep_one(server: &Server, key: &str) {
    let mut draining = server.0.draining.subscribe();
    let drained = draining.wait_for(|draining| *draining).map(drop);
    let kept = async {
        // Ends when the store shuts down.
        while let Ok(feed) = server.0.store.feed(key.to_owned().into(), None).await {
            match ensure(server).await {
                true => removal(feed, key).await,
                false => server.0.world.sleep(RETRY).await,
            }
        }
    };
    futures::pin_mut!(drained, kept);
    futures::future::select(drained, kept).await;
}

/// Ends when the key is deleted, or when the feed ends.
async fn removal(mut feed: Feed, key: &str) {
    while let Ok(event) = feed.next().await {
        if let Event::Commit(commit) = event
            && commit.changes.iter().any(|change| change.key == key && change.value.is_none())
        {
            return;
        }
    }
}

async fn service(server: &Server, advertised: Option<SocketAddr>) -> Result<(), String> {
    let target = advertised.map_or(USUAL_PORT, |address| address.port());
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": NAME, "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "type": "ClusterIP", "clusterIP": server.0.service_range.first().to_string(),
            "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
            "ports": [{"name": "https", "protocol": "TCP", "port": SERVICE_PORT, "targetPort": target}],
        },
    });
    let place = "/api/v1/namespaces/default/services";
    match read(server, place).await? {
        Some(_) => Ok(()),
        None => send(server, Method::POST, place, &service).await,
    }
}

async fn endpoints(server: &Server, address: SocketAddr) -> Result<(), String> {
    let ip = address.ip().to_string();
    let port = json!({"name": "https", "port": address.port(), "protocol": "TCP"});
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints",
        // It has an EndpointSlice already: not to be mirrored.
        "metadata": {
            "name": NAME, "namespace": "default", "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
        },
        "subsets": [{"addresses": [{"ip": ip}], "ports": [port]}],
    });
    put(server, "/api/v1/namespaces/default/endpoints", endpoints, &["subsets"]).await?;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "name": NAME, "namespace": "default", "labels": {"kubernetes.io/service-name": NAME},
        },
        "addressType": if address.is_ipv6() { "IPv6" } else { "IPv4" },
        "endpoints": [{"addresses": [ip], "conditions": {"ready": true}}],
        "ports": [port],
    });
    let place = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let current = read(server, place).await?;
    // The addressType of a slice is immutable.
    if current.is_some_and(|current| current["addressType"] != slice["addressType"]) {
        send(server, Method::DELETE, &format!("{place}/{NAME}"), &Value::Null).await?;
    }
    put(server, place, slice, &["endpoints", "ports"]).await
}

/// Creates an object, or updates those of its fields that differ.
async fn put(server: &Server, place: &str, wanted: Value, fields: &[&str]) -> Result<(), String> {
    let Some(mut current) = read(server, place).await? else {
        return send(server, Method::POST, place, &wanted).await;
    };
    let labels = &wanted["metadata"]["labels"];
    let same = current["metadata"]["labels"] == *labels
        && fields.iter().all(|field| current[field] == wanted[field]);
    if same {
        return Ok(());
    }
    current["metadata"]["labels"] = labels.clone();
    for field in fields {
        current[field] = wanted[field].clone();
    }
    send(server, Method::PUT, &format!("{place}/{NAME}"), &current).await
}

async fn read(server: &Server, place: &str) -> Result<Option<Value>, String> {
    match request(server, Method::GET, &format!("{place}/{NAME}"), Bytes::new()).await {
        (404, _) => Ok(None),
        (200, body) => Ok(serde_json::from_slice(&body).ok()),
        (_, body) => Err(String::from_utf8_lossy(&body).into_owned()),
    }
}

async fn send(server: &Server, method: Method, path: &str, body: &Value) -> Result<(), String> {
    let bytes = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    match request(server, method, path, bytes).await {
        // 409: another server on the same store was faster.
        (200 | 201 | 409, _) => Ok(()),
        (_, body) => Err(String::from_utf8_lossy(&body).into_owned()),
    }
}

/// Sends a request to this server as a member of system:masters.
async fn request(server: &Server, method: Method, path: &str, body: Bytes) -> (u16, Bytes) {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = path.parse().expect("paths here are constant");
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    // Kubernetes: field managers are named after the user agent.
    headers.insert(header::USER_AGENT, header::HeaderValue::from_static("kube-apiserver"));
    let myself = Caller::known("system:apiserver", "", vec!["system:masters".to_owned()]);
    request.extensions_mut().insert(myself);
    let response = Box::pin(server.handle(request)).await;
    let code = response.status().as_u16();
    let Ok(body) = response.into_body().collect().await;
    (code, body.to_bytes())
}
