//! A client whose requests go through a function: how caches, the fence and metrics see every request.

use crate::{BoxError, retry};
use http::{Request, Response};
use kube::{
    Client,
    api::GetParams,
    client::Body,
    core::{DynamicObject, PartialObjectMeta},
};

/// An extension of a request: when a cache may answer it. Clients without a cache ask the server.
#[derive(Clone, Debug)]
pub(crate) enum CachedRead {
    Always,
    /// A list of the objects with this value of a label, which is also in the query.
    Labelled {
        label: &'static str,
        value: String,
    },
    /// After the server has shown this process the object with this UID, by a read or a write: what a
    /// cache got from a late watch may have been deleted before this process started to work.
    AfterConfirmation(String),
}

/// An extension of an apply whose caller has seen no such object. Of two at a time the second one is answered with a
/// conflict: the server would take it for a change of the first one by the same manager, and a child that two owners
/// want would go from one to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnlyIfAbsent;

/// The metadata of an object, from the cache of the manager's client or from the server; `None` if there
/// is no such object. `path` is that of its collection.
pub(crate) async fn metadata(
    client: &Client,
    path: &str,
    name: &str,
    read: CachedRead,
) -> Result<Option<PartialObjectMeta<DynamicObject>>, kube::Error> {
    let mut request = kube::core::Request::new(path)
        .get_metadata(name, &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    request.extensions_mut().insert(read);
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if retry::is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A client that calls `send` with `inner` for each request.
pub(crate) fn through<S, F, E>(inner: &Client, send: S) -> Client
where
    S: Fn(Client, Request<Body>) -> F + Send + 'static,
    F: Future<Output = Result<Response<Body>, E>> + Send + 'static,
    E: Into<BoxError>,
{
    let (namespace, valid_until) = (inner.default_namespace().to_owned(), *inner.valid_until());
    let inner = inner.clone();
    let service = tower::service_fn(move |request| send(inner.clone(), request));
    Client::new(service, namespace).with_valid_until(valid_until)
}
