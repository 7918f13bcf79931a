//! A client whose requests go through a function: how caches, the fence and metrics see every request.

use crate::BoxError;
use http::{Request, Response};
use kube::{Client, client::Body};

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
