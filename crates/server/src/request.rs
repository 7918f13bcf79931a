//! Parses URLs and queries of requests.

mod front;
mod options;
mod path;

pub use front::{Broken, WebSocketEvents};
pub(crate) use options::{Match, Options, encode, flag, pairs};
pub(crate) use path::{Place, Target, decode, parse};

use crate::shared_places::PlaceEnd;
use http::{HeaderMap, Method, Uri, header, request::Parts};
use hyper::upgrade::OnUpgrade;
use std::{
    any::Any,
    net::SocketAddr,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
};

/// The remote address of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

/// The connection of a request. It counts as open until this is dropped.
#[derive(Clone)]
pub(crate) struct ClientConnection {
    _open: Arc<dyn Any + Send + Sync>,
    end: PlaceEnd,
}

impl ClientConnection {
    /// Counts as long as `open` is held.
    pub(crate) fn new(open: Arc<dyn Any + Send + Sync>, end: PlaceEnd) -> ClientConnection {
        ClientConnection { _open: open, end }
    }

    /// Lets a session over this connection go on until it ends, or the connection's place is needed for another.
    pub(crate) async fn keep(connection: Option<ClientConnection>, session: impl Future<Output = ()>) {
        match connection {
            None => session.await,
            Some(connection) => {
                futures::future::select(pin!(session), pin!(connection.end.wait())).await;
            }
        }
    }
}

/// What requests that are passed on to a node, or become a WebSocket, need beside their parsed parts.
#[derive(Debug)]
pub(crate) struct RawRequest {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// Unknown without a socket.
    pub(crate) client: Option<SocketAddr>,
    upgrade: Mutex<Option<Upgrade>>,
}

/// A connection that may switch to another protocol than HTTP.
#[derive(Debug)]
pub(crate) struct Upgrade {
    pub(crate) on_upgrade: OnUpgrade,
    pub(crate) connection: Option<ClientConnection>,
    /// What the events of a watch pass through.
    pub(crate) front: Option<WebSocketEvents>,
}

impl RawRequest {
    pub(crate) fn of(head: &mut Parts) -> RawRequest {
        let connection = head.extensions.remove::<ClientConnection>();
        let front = head.extensions.remove::<WebSocketEvents>();
        let upgrade =
            head.extensions.remove::<OnUpgrade>().map(|on_upgrade| Upgrade { on_upgrade, connection, front });
        let client = head.extensions.get::<ClientAddress>().map(|address| address.0);
        let (method, uri) = (head.method.clone(), head.uri.clone());
        RawRequest { method, uri, client, upgrade: Mutex::new(upgrade) }
    }

    /// The connection, once, if it can switch.
    pub(crate) fn take_upgrade(&self) -> Option<Upgrade> {
        self.upgrade.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether a client asks to switch to another protocol.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

pub(crate) fn is_web_socket(headers: &HeaderMap) -> bool {
    let asked = headers.get(header::UPGRADE).and_then(|value| value.to_str().ok());
    asked.is_some_and(|protocol| protocol.eq_ignore_ascii_case("websocket")) && is_upgrade(headers)
}

impl std::fmt::Debug for ClientConnection {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("ClientConnection")
    }
}

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    pub(crate) fn is_write(self) -> bool {
        !matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }

    pub(crate) fn text(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }
}
