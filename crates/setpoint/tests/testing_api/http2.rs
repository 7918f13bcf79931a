//! A watch that is cut over HTTP/2, which Go's clients speak: a stream that is reset drops what it has not sent.

use super::{Tested, create, with_cluster};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::{
    Config,
    client::ConfigExt,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, rustls::pki_types::ServerName};
use world::World;

/// A reset that came too early lost one event of a few.
const WATCHES: usize = 20;

async fn connect(tested: &Tested) -> SendRequest<Empty<Bytes>> {
    let kubeconfig = Kubeconfig::read_from(&tested.up.kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let mut tls = config.rustls_client_config().unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let socket = TcpStream::connect(tested.up.url.strip_prefix("https://").unwrap()).await.unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, socket).await.unwrap();
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    World::real().spawn("connection of a test", async move { drop(connection.await) }).detach();
    sender
}

#[test]
fn the_events_before_a_cut_arrive_over_http2() {
    with_cluster(&["--ephemeral", "--controllers", "", "--nodes", "0"], async |tested: &Tested| {
        let cut = json!({"match": {"verb": "watch"}, "endWatch": {"after": 1, "how": "Cut"}});
        create(&tested.client, "Fault", "cut", cut).await;
        let mut sender = connect(tested).await;
        let url = format!("{}/api/v1/namespaces/default/configmaps?watch=1", tested.up.url);
        for _ in 0..WATCHES {
            let request = Request::get(&url).body(Empty::new()).unwrap();
            let mut body = sender.send_request(request).await.unwrap().into_body();
            let event = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(event.starts_with(b"{\"type\":\"ADDED\""), "{event:?}");
            assert!(body.frame().await.unwrap().is_err());
        }
    });
}
