//! Parses URLs and queries of requests.

mod options;
mod path;

pub(crate) use options::{Match, Options, flag, pairs};
pub(crate) use path::{Place, Target, decode, parse};

use std::net::SocketAddr;

/// The remote address of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClientAddress(pub(crate) SocketAddr);

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
