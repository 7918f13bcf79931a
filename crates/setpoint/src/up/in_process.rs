//! Clients of the server in this process: the same API as any client's, without sockets.

use http::Request;
use kube::Client;
use server::{Caller, Server};
use std::convert::Infallible;

/// Where the service accounts of control loops are.
const SYSTEM_NAMESPACE: &str = "kube-system";

/// A client with the permissions of a service account in kube-system.
pub(super) fn account(server: &Server, name: &str) -> Client {
    client(server, Caller::account(SYSTEM_NAMESPACE, name, ""))
}

/// A client with the permissions of a user.
pub(super) fn user(server: &Server, name: &str, groups: &[&str]) -> Client {
    client(server, Caller::known(name, "", groups.iter().map(|group| (*group).to_owned()).collect()))
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
