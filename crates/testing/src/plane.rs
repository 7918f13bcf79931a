//! The small server beside the cluster that holds the objects of the testing API.
//!
//! Its objects are no part of the cluster: a restore does not undo them, and a fork does not copy them.

use crate::definitions::{self, GROUP, TestingKind, VERSION};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use server::{Body, Caller, Config, Server};
use std::{convert::Infallible, sync::Arc};
use store::Memory;
use world::World;

/// The user of the server's own requests.
const OWN_USER: &str = "system:testing";
const MASTERS: &str = "system:masters";

/// The media type of aggregated discovery.
// Kubernetes: what kubectl and client-go ask for.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The state of a plane without objects, and the documents about its API: made once, shared by all clusters.
#[derive(Debug)]
pub(crate) struct Template {
    store: Memory,
    /// Its entry in `/apis`.
    pub(crate) group: Value,
    /// Its entry in aggregated discovery.
    pub(crate) discovery: Value,
    /// Its entries in `/openapi/v3`.
    pub(crate) openapi: Value,
}

#[derive(Clone, Debug)]
pub(crate) struct Plane {
    server: Server,
}

/// An answer of the plane that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub(crate) struct PlaneError {
    pub(crate) code: u16,
    pub(crate) message: String,
}

impl Template {
    pub(crate) async fn make(world: &World) -> Result<Template, PlaneError> {
        let store = Memory::new();
        let plane = Plane::on(world, store).await?;
        for kind in definitions::ALL {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            plane.0.ask(Method::POST, path, &kind.definition()).await?;
        }
        let clock = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Clock",
            "metadata": {"name": "cluster"}, "spec": {"frozen": false},
        });
        plane.0.ask(Method::POST, &path(TestingKind::Clock, ""), &clock).await?;
        let groups = plane.0.ask(Method::GET, "/apis", &Value::Null).await?;
        let discovery = plane.0.get("/apis", AGGREGATED).await?;
        let openapi = plane.0.ask(Method::GET, "/openapi/v3", &Value::Null).await?;
        let has = |list: &Value, name: fn(&Value) -> &Value| {
            let found = list.as_array().and_then(|all| all.iter().find(|it| name(it) == GROUP));
            found.cloned().unwrap_or_default()
        };
        let api = format!("apis/{GROUP}/{VERSION}");
        Ok(Template {
            group: has(&groups["groups"], |it| &it["name"]),
            discovery: has(&discovery["items"], |it| &it["metadata"]["name"]),
            openapi: serde_json::Map::from_iter([(api.clone(), openapi["paths"][api.as_str()].clone())])
                .into(),
            store: plane.1.fork(),
        })
    }

    /// A plane for one more cluster.
    pub(crate) async fn plane(&self, world: &World) -> Result<Plane, PlaneError> {
        Ok(Plane::on(world, self.store.fork()).await?.0)
    }
}

impl Plane {
    async fn on(world: &World, store: Memory) -> Result<(Plane, Arc<Memory>), PlaneError> {
        let store = Arc::new(store);
        let server = Server::start(world, Arc::clone(&store) as _, Config::default()).await;
        let server = server.map_err(|error| PlaneError { code: 500, message: error.to_string() })?;
        Ok((Plane { server }, store))
    }

    /// Answers a request of a user who may do this.
    pub(crate) async fn handle<B>(&self, caller: &Caller, mut request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data: Send, Error: std::error::Error + Send + Sync> + Send + 'static,
    {
        let groups = vec![MASTERS.to_owned()];
        request.extensions_mut().remove::<Arc<Caller>>();
        request.extensions_mut().insert(Caller::known(caller.name.clone(), caller.uid.clone(), groups));
        self.server.handle(request).await
    }

    /// Sends a request of this process.
    pub(crate) async fn ask(&self, method: Method, path: &str, body: &Value) -> Result<Value, PlaneError> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, content);
        self.answer(request.body(Full::new(body))).await
    }

    async fn get(&self, path: &str, accept: &str) -> Result<Value, PlaneError> {
        self.answer(Request::get(path).header(header::ACCEPT, accept).body(Full::default())).await
    }

    async fn answer(&self, request: http::Result<Request<Full<Bytes>>>) -> Result<Value, PlaneError> {
        let request = request.map_err(|error| PlaneError { code: 400, message: error.to_string() })?;
        let response = self.handle(&Caller::known(OWN_USER, "", Vec::new()), request).await;
        let (code, value) = read(response).await;
        match code.is_success() {
            true => Ok(value),
            false => {
                let message = value["message"].as_str().unwrap_or("no reason given").to_owned();
                Err(PlaneError { code: code.as_u16(), message })
            }
        }
    }

    /// Sets the status of an object, and returns the object.
    pub(crate) async fn set_status(
        &self,
        kind: TestingKind,
        name: &str,
        status: Value,
    ) -> Result<Value, PlaneError> {
        let path = format!("{}/status", path(kind, name));
        self.ask(Method::PATCH, &path, &json!({"status": status})).await
    }

    /// Writes into the Clock that it is frozen.
    pub(crate) async fn set_frozen(&self) -> Result<(), PlaneError> {
        let spec = json!({"spec": {"frozen": true}});
        self.ask(Method::PATCH, &path(TestingKind::Clock, "cluster"), &spec).await.map(drop)
    }

    pub(crate) async fn delete(&self, kind: TestingKind, name: &str) -> Result<Value, PlaneError> {
        self.ask(Method::DELETE, &path(kind, name), &Value::Null).await
    }

    /// All objects of a kind.
    pub(crate) async fn list(&self, kind: TestingKind) -> Result<Vec<Value>, PlaneError> {
        let mut list = self.ask(Method::GET, &path(kind, ""), &Value::Null).await?;
        Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}

/// The path of an object, or of all with an empty name.
pub(crate) fn path(kind: TestingKind, name: &str) -> String {
    let collection = format!("/apis/{GROUP}/{VERSION}/{}", kind.resource());
    if name.is_empty() { collection } else { format!("{collection}/{name}") }
}

/// The code and the JSON of a response.
pub(crate) async fn read(response: Response<Body>) -> (StatusCode, Value) {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap_or_else(|never: Infallible| match never {}).to_bytes();
    (head.status, serde_json::from_slice(&body).unwrap_or_default())
}
