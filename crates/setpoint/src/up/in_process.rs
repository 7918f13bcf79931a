//! Clients of the server in this process: the same API as any client's, without sockets.

use http::{HeaderValue, Request, header};
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
    /// A client with the permissions of a service account in kube-system, for a control loop.
    pub(super) fn account(&self, name: &str) -> Client {
        self.client(Caller::account(SYSTEM_NAMESPACE, name, ""), "kube-controller-manager")
    }

    /// A client with the permissions of a user. `program` is its User-Agent, and so the field manager of what it writes.
    pub(super) fn user(&self, program: &'static str, name: &str, groups: &[&str]) -> Client {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        self.client(Caller::known(name, "", groups), program)
    }

    fn client(&self, caller: Caller, program: &'static str) -> Client {
        match self {
            Destination::Server(server) => client(server, caller, program),
            Destination::Transport(transport) => transport.client_of(caller, program),
        }
    }
}

fn client(server: &Server, caller: Caller, program: &'static str) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |mut request: Request<kube::client::Body>| {
        let server = server.clone();
        request.headers_mut().insert(header::USER_AGENT, HeaderValue::from_static(program));
        request.extensions_mut().insert(caller.clone());
        async move { Ok::<_, Infallible>(server.handle(request).await) }
    });
    Client::new(service, "default")
}
