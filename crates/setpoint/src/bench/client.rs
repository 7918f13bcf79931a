//! Sends requests and reads responses with as little overhead as possible.
//!
//! A client is one connection of HTTP/1.1 that is kept open: it costs less to write and to read than
//! HTTP/2 with one stream at a time, and what the client saves goes to the server on the same
//! machine. The task that waits for an answer drives the connection, so that no request hops between tasks.

use super::kubeconfig::Target;
use anyhow::{Context, Result, bail};
use bytes::Bytes;
use futures::{FutureExt, pin_mut};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::{future::poll_fn, pin::Pin, sync::Arc, task::Poll, time::Duration};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use world::World;

/// This much of a response is kept by default; of a longer one only the length counts.
const KEPT: usize = 64 << 10;
/// A request that takes longer fails.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) type Stream = TokioIo<TlsStream<TcpStream>>;

/// One client of a server.
pub(crate) struct Client {
    requests: http1::SendRequest<Full<Bytes>>,
    connection: Pin<Box<http1::Connection<Stream, Full<Bytes>>>>,
    closed: bool,
    /// How much of a response is kept.
    pub(crate) kept: usize,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) length: usize,
    /// The beginning of the body.
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The body, if the request succeeded.
    pub(crate) fn done(self) -> Result<Vec<u8>> {
        if !self.status.is_success() {
            bail!("{}", self.complaint());
        }
        Ok(self.body)
    }

    /// The server's error message.
    pub(crate) fn complaint(&self) -> String {
        let status: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let message = status.get("message").and_then(serde_json::Value::as_str);
        format!("the server answers {}: {}", self.status, message.unwrap_or("no reason given"))
    }
}

/// A connection with the given ALPN protocol.
pub(crate) async fn connect(world: &World, target: &Target, protocol: &str) -> Result<Stream> {
    let connected = async {
        let socket = TcpStream::connect((target.host.as_str(), target.port)).await?;
        socket.set_nodelay(true)?;
        let mut tls = (*target.tls).clone();
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsConnector::from(Arc::new(tls)).connect(target.server_name.clone(), socket).await
    };
    let stream = world.timeout(PATIENCE, connected).await;
    let stream = stream.map_err(anyhow::Error::from).and_then(|stream| Ok(stream?));
    stream.map(TokioIo::new).with_context(|| format!("cannot connect to {}", target.url))
}

impl Client {
    pub(crate) async fn connect(world: &World, target: &Target) -> Result<Client> {
        let stream = connect(world, target, "http/1.1").await?;
        let (requests, connection) = http1::handshake(stream).await?;
        Ok(Client { requests, connection: Box::pin(connection), closed: false, kept: KEPT })
    }

    pub(crate) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Answer> {
        let Client { requests, connection, closed, kept } = self;
        let exchange = async {
            requests.ready().await?;
            let response = requests.send_request(request).await?;
            let mut answer = Answer { status: response.status(), length: 0, body: Vec::new() };
            let mut body = response.into_body();
            while let Some(frame) = body.frame().await {
                let Ok(data) = frame?.into_data() else { continue };
                answer.length += data.len();
                let room = kept.saturating_sub(answer.body.len());
                answer.body.extend_from_slice(&data[..data.len().min(room)]);
            }
            Ok(answer)
        };
        pin_mut!(exchange);
        let driven = poll_fn(|context| {
            loop {
                if let Poll::Ready(answer) = exchange.poll_unpin(context) {
                    return Poll::Ready(answer);
                }
                // Once the connection is closed, the exchange ends with the last data, or fails.
                if *closed || connection.poll_unpin(context).is_pending() {
                    return Poll::Pending;
                }
                *closed = true;
            }
        });
        driven.await
    }

    /// Sends a request of the preparations, which must not fail.
    pub(crate) async fn ask(&mut self, world: &World, request: Request<Full<Bytes>>) -> Result<Vec<u8>> {
        let what = format!("{} {}", request.method(), request.uri());
        let answer = world.timeout(PATIENCE, self.send(request)).await;
        answer.map_err(anyhow::Error::from).flatten().and_then(Answer::done).context(what)
    }
}
