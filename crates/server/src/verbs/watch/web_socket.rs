//! A watch over a WebSocket: one message for each event, text for JSON and binary for protobuf.

mod frames;

use crate::{
    answer::{self, Body},
    call::Call,
    input::Encoding,
    request::{Broken, ClientConnection, RawRequest, Upgrade, WebSocketEvents},
};
use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Bytes, BytesMut};
use frames::{ClientFrames, CloseCode, Opcode, Received};
use futures::future::{Either, select};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper_util::rt::TokioIo;
use std::{io, pin::pin, time::Duration};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use world::World;

/// How long the client may take to switch protocols.
const SWITCH: Duration = Duration::from_secs(30);
/// How long the client may take to answer the end.
const FAREWELL: Duration = Duration::from_secs(5);
/// So much is read at once: clients have nothing to say but pings.
const READ: usize = 4 << 10;
/// The protocol's constant, which makes the answer to a key.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// Protobuf events have their length in front of them, which messages do not need.
const LENGTH: usize = 4;

/// Sends the events of a response once the client has switched protocols; or the response to a client that cannot.
pub(super) fn open(call: &Call, raw: &RawRequest, events: Response<Body>) -> Response<Body> {
    let mut agreed = match agree(&call.headers) {
        Ok(agreed) => agreed,
        Err(refused) => return *refused,
    };
    let Some(Upgrade { on_upgrade, connection, front }) = raw.take_upgrade() else {
        return refuse(StatusCode::BAD_REQUEST, "not websocket protocol");
    };
    let opcode = if call.form.encoding == Encoding::Protobuf { Opcode::Binary } else { Opcode::Text };
    if let Some(content_type) = events.headers().get(header::CONTENT_TYPE) {
        agreed.headers_mut().insert(header::CONTENT_TYPE, content_type.clone());
    }
    let events = WebSocketEvents::pass(front.as_ref(), events);
    let world = call.inner.world.clone();
    let session = async move {
        // A client that leaves instead is no error.
        let Ok(Ok(upgraded)) = world.timeout(SWITCH, on_upgrade).await else { return };
        let mut socket = TokioIo::new(upgraded);
        if send_all(&world, &mut socket, opcode, events).await.is_ok() {
            drop(socket.shutdown().await);
        }
    };
    let session = ClientConnection::keep(connection, session);
    call.inner.world.spawn("watch over a WebSocket", session).detach();
    agreed
}

/// The response that makes a connection a WebSocket.
// Kubernetes: clients say where they come from, offer at most one protocol, and get it, whatever it is.
fn agree(headers: &HeaderMap) -> Result<Response<Body>, Box<Response<Body>>> {
    let refused = |code, problem| Err(Box::new(refuse(code, problem)));
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = text(header::SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return refused(StatusCode::BAD_REQUEST, "mismatch challenge/response");
    }
    if text(header::SEC_WEBSOCKET_VERSION) != "13" {
        let mut response = refuse(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(Box::new(response));
    }
    let origin = text(header::ORIGIN);
    if !origin.starts_with('/') && origin.parse::<Uri>().map_or(true, |origin| origin.scheme().is_none()) {
        return refused(StatusCode::FORBIDDEN, "");
    }
    let offered = text(header::SEC_WEBSOCKET_PROTOCOL).trim();
    if offered.contains(',') {
        return refused(StatusCode::BAD_REQUEST, "");
    }
    let accept = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{KEY_SUFFIX}").as_bytes());
    let Ok(accept) = HeaderValue::from_str(&STANDARD.encode(accept)) else {
        return refused(StatusCode::BAD_REQUEST, "mismatch challenge/response");
    };
    let mut response = answer::empty(StatusCode::SWITCHING_PROTOCOLS);
    let agreed = response.headers_mut();
    agreed.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    agreed.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    agreed.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Ok(protocol) = HeaderValue::from_str(offered)
        && !offered.is_empty()
    {
        agreed.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    Ok(response)
}

fn refuse(code: StatusCode, problem: &'static str) -> Response<Body> {
    answer::full(code, "text/plain; charset=utf-8", problem)
}

/// Sends events until they end or the client does, and says so; if they break off, the connection does.
async fn send_all<S: AsyncRead + AsyncWrite + Unpin>(
    world: &World,
    socket: &mut S,
    opcode: Opcode,
    mut events: UnsyncBoxBody<Bytes, Broken>,
) -> io::Result<()> {
    let mut received = FromClient::default();
    let code = loop {
        let next = {
            let event = pin!(events.frame());
            match select(event, pin!(received.next(socket))).await {
                Either::Left((event, _)) => Ok(event.transpose().map_err(io::Error::other)?),
                Either::Right((message, _)) => Err(message?),
            }
        };
        match next {
            Ok(Some(event)) => {
                let event = event.into_data().unwrap_or_default();
                let message =
                    if opcode == Opcode::Binary { event.slice(LENGTH.min(event.len())..) } else { event };
                write(socket, opcode, &message).await?;
            }
            Ok(None) | Err(Received::Close) => break CloseCode::Normal,
            Err(Received::Ping(payload)) => write(socket, Opcode::Pong, &payload).await?,
            Err(Received::Wrong(code)) => break code,
            Err(Received::End) => return Ok(()),
        }
    };
    write(socket, Opcode::Close, &(code as u16).to_be_bytes()).await?;
    let farewell = async { while let Ok(Received::Ping(_)) = received.next(socket).await {} };
    let _ = world.timeout(FAREWELL, farewell).await;
    Ok(())
}

async fn write(socket: &mut (impl AsyncWrite + Unpin), opcode: Opcode, payload: &[u8]) -> io::Result<()> {
    socket.write_all(&frames::head(opcode, payload.len())).await?;
    socket.write_all(payload).await?;
    socket.flush().await
}

/// What has come from the client and is not yet understood.
#[derive(Debug, Default)]
struct FromClient {
    bytes: BytesMut,
    frames: ClientFrames,
}

impl FromClient {
    /// The next message that needs an answer. To drop this future loses nothing.
    async fn next(&mut self, socket: &mut (impl AsyncRead + Unpin)) -> io::Result<Received> {
        loop {
            if let Some(received) = self.frames.take(&mut self.bytes) {
                return Ok(received);
            }
            self.bytes.reserve(READ);
            if socket.read_buf(&mut self.bytes).await? == 0 {
                return Ok(Received::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_checked_as_kubernetes_does() {
        let complete = [
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ("sec-websocket-version", "13"),
            ("origin", "http://localhost"),
        ];
        let with = |name: &'static str, value: &'static str| {
            let mut headers: HeaderMap = complete
                .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
                .into_iter()
                .collect();
            headers.insert(name, HeaderValue::from_static(value));
            headers
        };
        for (headers, code) in [
            (with("x-other", "1"), 101),
            (with("sec-websocket-protocol", "base64.binary.k8s.io"), 101),
            (with("sec-websocket-protocol", "a, b"), 400),
            (with("sec-websocket-key", ""), 400),
            (with("sec-websocket-version", "8"), 400),
            (with("origin", ""), 403),
            (with("origin", "nowhere"), 403),
            (with("origin", "https://example.com:8443"), 101),
        ] {
            let response = agree(&headers).unwrap_or_else(|refused| *refused);
            assert_eq!(response.status().as_u16(), code, "{headers:?}");
            let protocol = response.headers().get("sec-websocket-protocol");
            let offered = headers.get("sec-websocket-protocol").filter(|_| code == 101);
            assert_eq!(protocol, offered, "{headers:?}");
        }
        let agreed = agree(&with("x-other", "1")).unwrap();
        assert_eq!(agreed.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
