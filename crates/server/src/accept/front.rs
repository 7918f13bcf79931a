//! A service between connections and the server: it may answer, delay or lose what passes.

pub use crate::request::{Broken, WebSocketEvents};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use std::fmt;

/// The body of a request that a front gets.
pub type FrontRequest = Request<UnsyncBoxBody<Bytes, hyper::Error>>;
/// The body of a front's response; it may break off.
pub type FrontBody = UnsyncBoxBody<Bytes, Broken>;

/// Gets the requests of all connections instead of the server. The extensions of a request have an
/// `Arc<Caller>` if the client has shown a certificate.
pub trait Front: fmt::Debug + Send + Sync {
    fn handle(&self, request: FrontRequest) -> BoxFuture<'static, Result<Response<FrontBody>, Broken>>;
}
