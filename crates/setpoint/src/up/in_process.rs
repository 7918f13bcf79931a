//! Clients of the server in this process: the same API as any client's, without sockets.

use http::Request;
use kube::Client;
use server::{Caller, Server};
use std::{convert::Infallible, sync::Arc};
use testing::Transport;

/// Where the service accounts of control loops are.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// Where the requests of these clients go.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Server(Server),
    /// To the server, past traces and faults.
    Transport(Arc<Transport>),
}

impl Destination {
    /// A client with the permissions of a service account in kube-system.
    pub(super) fn account(&self, name: &str) -> Client {
        self.client(Caller::account(SYSTEM_NAMESPACE, name, ""))
    }

    /// A client with the permissions of a user.
    pub(super) fn user(&self, name: &str, groups: &[&str]) -> Client {
        self.client(Caller::known(name, "", groups.iter().map(|group| (*group).to_owned()).collect()))
    }

    fn client(&self, caller: Caller) -> Client {
        match self {
            Destination::Server(server) => client(server, caller),
            Destination::Transport(transport) => transport.client(caller),
        }
    }
}

fn client(server: &Server, caller: Caller) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
        let server = server.clone();
        request.extensions_mut().insert(caller.clone());
        async move { Ok::<_, Infallible>(server.handle(request).await) }
    });
    Client::new(service, "default")
}
