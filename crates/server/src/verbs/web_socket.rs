//! Answers over a WebSocket. A watch: one message for each event, text for JSON and binary for protobuf. A log: its
//! bytes as they come, or as base64.

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
/// So much of a log is one message.
// Kubernetes: as much.
const PIECE: usize = 2048;

/// How the parts of a body become messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageForm {
    TextEvents,
    /// Without the length in front of each.
    BinaryEvents,
    Bytes,
    Base64,
}

/// Sends the events of a response once the client has switched protocols; or the response to a client that cannot.
pub(super) fn open_watch(call: &Call, raw: &RawRequest, events: Response<Body>) -> Response<Body> {
    let agreed = match agree_on_watch(&call.headers) {
        Ok(agreed) => agreed,
        Err(refused) => return *refused,
    };
    let is_binary = call.form.encoding == Encoding::Protobuf;
    let form = if is_binary { MessageForm::BinaryEvents } else { MessageForm::TextEvents };
    let content_type = events.headers().get(header::CONTENT_TYPE).cloned();
    let pass = |front: Option<&WebSocketEvents>| WebSocketEvents::pass(front, events);
    let mut agreed = open(call, raw, form, agreed, pass);
    if let Some(content_type) = content_type {
        agreed.headers_mut().entry(header::CONTENT_TYPE).or_insert(content_type);
    }
    agreed
}

/// Sends a log once the client has switched protocols; or the response to a client that cannot.
pub(super) fn open_log(call: &Call, raw: &RawRequest, log: Body) -> Response<Body> {
    let (agreed, form) = match agree_on_log(&call.headers) {
        Ok(agreed) => agreed,
        Err(refused) => return *refused,
    };
    open(call, raw, form, agreed, |_| log.map_err(|never| match never {}).boxed_unsync())
}

fn open(
    call: &Call,
    raw: &RawRequest,
    form: MessageForm,
    agreed: Response<Body>,
    body: impl FnOnce(Option<&WebSocketEvents>) -> UnsyncBoxBody<Bytes, Broken>,
) -> Response<Body> {
    let Some(Upgrade { on_upgrade, connection, front }) = raw.take_upgrade() else {
        return refuse(StatusCode::BAD_REQUEST, "not websocket protocol");
    };
    let body = body(front.as_ref());
    let world = call.inner.world.clone();
    let session = async move {
        // A client that leaves instead is no error.
        let Ok(Ok(upgraded)) = world.timeout(SWITCH, on_upgrade).await else { return };
        let mut socket = TokioIo::new(upgraded);
        if send_all(&world, &mut socket, form, body).await.is_ok() {
            drop(socket.shutdown().await);
        }
    };
    let session = ClientConnection::keep(connection, session);
    call.inner.world.spawn("answer over a WebSocket", session).detach();
    agreed
}

/// The response that makes a connection a WebSocket.
// Kubernetes: clients say where they come from, offer at most one protocol, and get it, whatever it is.
fn agree_on_watch(headers: &HeaderMap) -> Result<Response<Body>, Box<Response<Body>>> {
    let accept = accept(headers)?;
    let refused = |code| Err(Box::new(refuse(code, "")));
    let origin = text(headers, header::ORIGIN);
    if !origin.starts_with('/') && origin.parse::<Uri>().map_or(true, |origin| origin.scheme().is_none()) {
        return refused(StatusCode::FORBIDDEN);
    }
    let offered = text(headers, header::SEC_WEBSOCKET_PROTOCOL).trim();
    if offered.contains(',') {
        return refused(StatusCode::BAD_REQUEST);
    }
    Ok(switching(accept, offered))
}

/// The response that makes a connection a WebSocket, and how the log is sent.
// Kubernetes: the first protocol of the client that the server knows, and none is one of them.
fn agree_on_log(headers: &HeaderMap) -> Result<(Response<Body>, MessageForm), Box<Response<Body>>> {
    let accept = accept(headers)?;
    let known = |protocol: &str| match protocol {
        "" | "binary.k8s.io" => Some(MessageForm::Bytes),
        "base64.binary.k8s.io" => Some(MessageForm::Base64),
        _ => None,
    };
    let mut offered = text(headers, header::SEC_WEBSOCKET_PROTOCOL).split(',').map(str::trim);
    match offered.find_map(|protocol| Some((protocol, known(protocol)?))) {
        Some((protocol, form)) => Ok((switching(accept, protocol), form)),
        None => Err(Box::new(refuse(StatusCode::FORBIDDEN, ""))),
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The answer to the key of a client that speaks the protocol.
fn accept(headers: &HeaderMap) -> Result<HeaderValue, Box<Response<Body>>> {
    let refused = |code, problem| Err(Box::new(refuse(code, problem)));
    let key = text(headers, header::SEC_WEBSOCKET_KEY);
    if key.is_empty() {
        return refused(StatusCode::BAD_REQUEST, "mismatch challenge/response");
    }
    if text(headers, header::SEC_WEBSOCKET_VERSION) != "13" {
        let mut response = refuse(StatusCode::BAD_REQUEST, "missing or bad WebSocket Version");
        response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(Box::new(response));
    }
    let accept = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{KEY_SUFFIX}").as_bytes());
    let accept = HeaderValue::from_str(&STANDARD.encode(accept));
    accept.or_else(|_| refused(StatusCode::BAD_REQUEST, "mismatch challenge/response"))
}

fn switching(accept: HeaderValue, protocol: &str) -> Response<Body> {
    let mut response = answer::empty(StatusCode::SWITCHING_PROTOCOLS);
    let agreed = response.headers_mut();
    agreed.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    agreed.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    agreed.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if let Ok(agreed_on) = HeaderValue::from_str(protocol)
        && !protocol.is_empty()
    {
        agreed.insert(header::SEC_WEBSOCKET_PROTOCOL, agreed_on);
    }
    response
}

fn refuse(code: StatusCode, problem: &'static str) -> Response<Body> {
    answer::full(code, "text/plain; charset=utf-8", problem)
}

/// Sends a body until it ends or the client does, and says so; if it breaks off, the connection does.
async fn send_all<S: AsyncRead + AsyncWrite + Unpin>(
    world: &World,
    socket: &mut S,
    form: MessageForm,
    mut body: UnsyncBoxBody<Bytes, Broken>,
) -> io::Result<()> {
    let mut received = FromClient::default();
    // Kubernetes: an empty message tells that the connection is there.
    match form {
        MessageForm::TextEvents | MessageForm::BinaryEvents => {}
        MessageForm::Bytes => write(socket, Opcode::Binary, &[]).await?,
        MessageForm::Base64 => write(socket, Opcode::Text, &[]).await?,
    }
    let code = loop {
        let next = {
            let frame = pin!(body.frame());
            match select(frame, pin!(received.next(socket))).await {
                Either::Left((frame, _)) => Ok(frame.transpose().map_err(io::Error::other)?),
                Either::Right((message, _)) => Err(message?),
            }
        };
        match next {
            Ok(Some(frame)) => send(socket, form, frame.into_data().unwrap_or_default()).await?,
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

/// Sends a part of a body as one message, or in pieces.
async fn send(socket: &mut (impl AsyncWrite + Unpin), form: MessageForm, part: Bytes) -> io::Result<()> {
    match form {
        MessageForm::TextEvents => write(socket, Opcode::Text, &part).await,
        MessageForm::BinaryEvents => write(socket, Opcode::Binary, &part[LENGTH.min(part.len())..]).await,
        MessageForm::Bytes | MessageForm::Base64 => {
            for piece in part.chunks(PIECE) {
                match form {
                    MessageForm::Base64 => {
                        write(socket, Opcode::Text, STANDARD.encode(piece).as_bytes()).await?;
                    }
                    _ => write(socket, Opcode::Binary, piece).await?,
                }
            }
            Ok(())
        }
    }
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
            let response = agree_on_watch(&headers).unwrap_or_else(|refused| *refused);
            assert_eq!(response.status().as_u16(), code, "{headers:?}");
            let protocol = response.headers().get("sec-websocket-protocol");
            let offered = headers.get("sec-websocket-protocol").filter(|_| code == 101);
            assert_eq!(protocol, offered, "{headers:?}");
        }
        let agreed = agree_on_watch(&with("x-other", "1")).unwrap();
        assert_eq!(agreed.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
