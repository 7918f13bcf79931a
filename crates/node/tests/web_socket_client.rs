//! A client of commands in containers: a request over a connection in memory that becomes a WebSocket.

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode, header};
use http_body_util::Empty;
use hyper::{body::Incoming, service::service_fn, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use server::Caller;
use std::convert::Infallible;
use testkit::Cluster;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A connection that has switched to the protocol of commands.
pub(crate) struct Session {
    pub(crate) stream: TokioIo<Upgraded>,
    received: BytesMut,
}

/// Sends a request over a connection of its own, as a user.
pub(crate) async fn ask(
    cluster: &Cluster,
    user: &str,
    groups: &[&str],
    request: Request<Empty<Bytes>>,
) -> Response<Incoming> {
    let (near, far) = tokio::io::duplex(4096);
    let server = cluster.server().clone();
    let caller = Caller::known(user, "", groups.iter().map(|group| (*group).to_owned()).collect());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (server, caller) = (server.clone(), caller.clone());
        request.extensions_mut().insert(caller);
        async move { Ok::<_, Infallible>(server.handle(request).await) }
    });
    let serve = hyper::server::conn::http1::Builder::new()
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(far), service)
        .with_upgrades();
    cluster.world().spawn("server of a test", async move { drop(serve.await) }).detach();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
    cluster.world().spawn("client of a test", async move { drop(connection.with_upgrades().await) }).detach();
    sender.send_request(request).await.unwrap()
}

pub(crate) fn upgrade(path: &str, protocol: &str) -> Request<Empty<Bytes>> {
    Request::get(format!("/api/v1/namespaces/default/pods/{path}"))
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, "dGhlIHNhbXBsZSBub25jZQ==")
        .header(header::SEC_WEBSOCKET_PROTOCOL, protocol)
        .body(Empty::new())
        .unwrap()
}

impl Session {
    pub(crate) async fn start(cluster: &Cluster, path: &str, protocol: &str) -> Session {
        let response = ask(cluster, "admin", &["system:masters"], upgrade(path, protocol)).await;
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        assert_eq!(response.headers()[header::SEC_WEBSOCKET_PROTOCOL], protocol);
        assert_eq!(response.headers()[header::SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        Session::of(response).await
    }

    pub(crate) async fn of(response: Response<Incoming>) -> Session {
        let stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
        Session { stream, received: BytesMut::new() }
    }

    /// Sends a frame with a mask that changes nothing.
    pub(crate) async fn send(&mut self, first: u8, payload: &[u8]) {
        let length = u8::try_from(payload.len()).unwrap();
        let frame = [&[first, 0x80 | length, 0, 0, 0, 0], payload].concat();
        self.stream.write_all(&frame).await.unwrap();
    }

    /// The next frame: its first byte and its payload; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<(u8, Bytes)> {
        loop {
            if self.received.len() >= 2 {
                let (length, header) = match self.received[1] {
                    126 if self.received.len() >= 4 => {
                        (usize::from(u16::from_be_bytes([self.received[2], self.received[3]])), 4)
                    }
                    126 => (usize::MAX / 2, 4),
                    short => (usize::from(short), 2),
                };
                if self.received.len() >= header + length {
                    let frame = self.received.split_to(header + length).freeze();
                    return Some((frame[0], frame.slice(header..)));
                }
            }
            if self.stream.read_buf(&mut self.received).await.unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// Everything to the end: stdout, stderr, the status, and the code that closes the connection.
    pub(crate) async fn rest(mut self) -> (String, String, Value, u16) {
        let mut texts = [const { String::new() }; 4];
        loop {
            let (first, payload) = self.next().await.expect("a connection ends with a farewell");
            match first {
                0x82 => texts[usize::from(payload[0])].push_str(&String::from_utf8_lossy(&payload[1..])),
                0x88 => {
                    let code = u16::from_be_bytes([payload[0], payload[1]]);
                    let [_, stdout, stderr, status] = texts;
                    let status = serde_json::from_str(&status).unwrap_or(Value::String(status));
                    return (stdout, stderr, status, code);
                }
                _ => {}
            }
        }
    }
}
