//! Answers reads of the framework from the caches, if one of them holds all that is asked for.

use crate::{
    Key,
    cache::{Item, own_writes::Registry, store::Store},
    client::CachedRead,
};
use api::{kind::GroupResource, path::ResourcePath, status::Status};
use http::{Request, Response, StatusCode, header};
use kube::client::Body;
use std::sync::Arc;

/// The response of a cache to a read of one object, or of those with a label; `None` if only the server knows.
pub(crate) fn answer(
    registry: &Registry,
    read: &CachedRead,
    request: &Request<Body>,
) -> Option<Response<Body>> {
    let path = ResourcePath::parse(request.uri().path())?;
    let namespace = (!path.namespace.is_empty()).then_some(path.namespace);
    let stores = registry.stores(path.group, path.resource, namespace);
    if let CachedRead::Labelled { label, value } = read {
        let store = stores.iter().find(holds_all)?;
        // A label of the framework, read in every reconcile.
        store.index_label(label);
        return Some(list(&store.labelled(label, value, namespace)));
    }
    let key = Key::new(namespace, path.name);
    if let Some(item) = stores.iter().find_map(|store| store.item(&key)) {
        return Some(object(&item));
    }
    stores.iter().any(|store| holds_all(&store)).then(|| {
        let missing = Status::not_found(&GroupResource::new(path.group, path.resource), path.name);
        response(StatusCode::NOT_FOUND, serde_json::to_string(&missing).unwrap_or_default())
    })
}

/// The response to a read of this object, or to a write that has not changed it.
pub(crate) fn object(item: &Item) -> Response<Body> {
    response(StatusCode::OK, item.json().to_owned())
}

/// The response to a creation that comes too late.
pub(crate) fn conflict(path: &str) -> Response<Body> {
    let ResourcePath { group, resource, name, .. } = ResourcePath::parse(path).unwrap_or_default();
    let cause = "another request has created it meanwhile";
    let status = Status::conflict(&GroupResource::new(group, resource), name, cause);
    response(StatusCode::CONFLICT, serde_json::to_string(&status).unwrap_or_default())
}

fn list(items: &[Item]) -> Response<Body> {
    let items: Vec<&str> = items.iter().map(Item::json).collect();
    let list = format!(
        r#"{{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{{}},"items":[{}]}}"#,
        items.join(",")
    );
    response(StatusCode::OK, list)
}

/// Whether an object that is not in the store does not exist.
fn holds_all(store: &&Arc<Store>) -> bool {
    store.filter().takes_all() && store.read().is_synced()
}

fn response(code: StatusCode, json: String) -> Response<Body> {
    let mut response = Response::new(Body::from(json.into_bytes()));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
