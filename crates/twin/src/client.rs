//! A client of one server: persistent HTTP/1.1 and HTTP/2 connections, requests, whole responses.

use anyhow::{Context, Result, anyhow};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{CryptoProvider, aws_lc_rs},
        pki_types::{CertificateDer, ServerName, UnixTime},
    },
};
use world::World;

const ANSWER_LIMIT: Duration = Duration::from_secs(60);
/// How long a watch may be silent before it counts as complete.
const WATCH_SILENCE: Duration = Duration::from_millis(2500);
const LAST_EVENT_SILENCE: Duration = Duration::from_millis(200);
const WATCH_LIMIT: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Bytes,
}

/// When to stop reading a response.
#[derive(Clone, Debug)]
pub enum ReadUntil {
    End,
    /// A watch: until this text arrives, or no more events do.
    Text(String),
    Silence,
}

#[derive(Debug)]
pub struct Client {
    world: World,
    address: SocketAddr,
    http1: Option<http1::SendRequest<Full<Bytes>>>,
    http2: Option<http2::SendRequest<Full<Bytes>>>,
}

impl Client {
    pub fn new(world: &World, address: SocketAddr) -> Client {
        Client { world: world.clone(), address, http1: None, http2: None }
    }

    pub async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
        over_http2: bool,
        until: &ReadUntil,
    ) -> Result<Reply> {
        let world = self.world.clone();
        let reused = if over_http2 { self.http2.is_some() } else { self.http1.is_some() };
        let again = request.clone();
        let limit = ANSWER_LIMIT;
        let first = world.timeout(limit, self.send_once(request, over_http2, until)).await;
        let outcome = match first {
            Ok(Err(_)) if reused => {
                // The server may have closed the idle connection.
                self.forget(over_http2);
                world.timeout(limit, self.send_once(again, over_http2, until)).await
            }
            other => other,
        };
        let reply = outcome.map_err(|_| anyhow!("no answer within {limit:?}")).and_then(|reply| reply);
        if reply.is_err() || !matches!(until, ReadUntil::End) {
            self.forget(over_http2);
        }
        reply
    }

    fn forget(&mut self, over_http2: bool) {
        if over_http2 {
            self.http2 = None;
        } else {
            self.http1 = None;
        }
    }

    async fn send_once(
        &mut self,
        request: http::Request<Full<Bytes>>,
        over_http2: bool,
        until: &ReadUntil,
    ) -> Result<Reply> {
        let response = if over_http2 {
            let mut sender = self.http2().await?;
            let response = sender.send_request(request).await?;
            self.http2 = Some(sender);
            response
        } else {
            let mut sender = self.http1().await?;
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            self.http1 = Some(sender);
            response
        };
        let (head, body) = response.into_parts();
        let until = if head.status.is_success() { until } else { &ReadUntil::End };
        let body = self.read(body, until).await?;
        Ok(Reply { status: head.status.as_u16(), headers: head.headers, body })
    }

    async fn read(&self, mut body: Incoming, until: &ReadUntil) -> Result<Bytes> {
        if let ReadUntil::End = until {
            return Ok(body.collect().await?.to_bytes());
        }
        let start = self.world.now();
        let mut all = BytesMut::new();
        let mut silence = WATCH_SILENCE;
        while self.world.now().since(start) < WATCH_LIMIT {
            let Ok(frame) = self.world.timeout(silence, body.frame()).await else { break };
            let Some(frame) = frame else { break };
            if let Some(data) = frame?.data_ref() {
                all.extend_from_slice(data);
            }
            if let ReadUntil::Text(text) = until
                && contains(&all, text.as_bytes())
            {
                // The event with the text may arrive in several pieces.
                silence = LAST_EVENT_SILENCE;
                if all.starts_with(b"{") && all.ends_with(b"\n") {
                    break;
                }
            }
        }
        Ok(all.freeze())
    }

    async fn http1(&mut self) -> Result<http1::SendRequest<Full<Bytes>>> {
        if let Some(sender) = self.http1.take().filter(|sender| !sender.is_closed()) {
            return Ok(sender);
        }
        let stream = connect(self.address, b"http/1.1").await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        self.drive(connection);
        Ok(sender)
    }

    async fn http2(&mut self) -> Result<http2::SendRequest<Full<Bytes>>> {
        if let Some(sender) = self.http2.take().filter(|sender| !sender.is_closed()) {
            return Ok(sender);
        }
        let stream = connect(self.address, b"h2").await?;
        let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
        self.drive(connection);
        Ok(sender)
    }

    /// Drives the connection until it ends; its requests get its errors themselves.
    fn drive(&self, connection: impl Future<Output = hyper::Result<()>> + Send + 'static) {
        self.world.spawn("connection", async move { drop(connection.await) }).detach();
    }
}

/// Whether a server answers its readiness probe.
pub async fn is_ready(world: &World, address: SocketAddr) -> bool {
    let request = http::Request::get("/readyz").header("host", address.to_string()).body(Full::default());
    let Ok(request) = request else { return false };
    let reply = Client::new(world, address).send(request, false, &ReadUntil::End).await;
    reply.is_ok_and(|reply| reply.status == 200)
}

async fn connect(address: SocketAddr, protocol: &[u8]) -> Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await.with_context(|| format!("cannot reach {address}"))?;
    stream.set_nodelay(true)?;
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let name = ServerName::from(address.ip());
    Ok(TlsConnector::from(Arc::new(config)).connect(name, stream).await?)
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Trusts any certificate: both servers were started a moment ago on this machine, each with a new certificate.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
