//! HTTPS POST to a webhook over pooled sockets, or over a test's replacement.

use super::trust::Trust;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use std::{
    collections::BTreeMap,
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        self, AlertDescription, CertificateError, ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

/// Limit on the pooled clients.
const MAX_CLIENTS: usize = 256;
/// Idle connections are closed after this.
const IDLE: Duration = Duration::from_secs(90);

/// A request to a webhook.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub url: String,
    /// `host:port` of the socket.
    pub connect: String,
    /// The name that the server's certificate must have.
    pub server_name: String,
    /// PEM of the CAs of its certificate; empty trusts the system's CAs.
    pub authorities: Bytes,
    pub body: Bytes,
    /// A longer answer is an error.
    pub max_answer: usize,
}

/// The response of a webhook.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
    /// Empty if not set.
    pub content_type: String,
}

/// Outgoing requests of the server.
pub trait Outbound: Send + Sync + std::fmt::Debug {
    /// Sends a JSON body. The error text is for users.
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>>;
}

type HttpsClient = Client<Connector, Full<Bytes>>;

/// Outgoing requests over real sockets.
#[derive(Debug, Default)]
pub struct Sockets {
    /// By address, server name and CAs.
    clients: Mutex<BTreeMap<(String, String, Bytes), HttpsClient>>,
}

impl Outbound for Sockets {
    fn post(&self, exchange: Exchange) -> BoxFuture<'_, Result<Answer, String>> {
        Box::pin(async move {
            let client = self.client(&exchange)?;
            let request = Request::post(&exchange.url)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json, */*")
                .header(header::USER_AGENT, "kube-apiserver-admission")
                .body(Full::new(exchange.body))
                .map_err(|error| error.to_string())?;
            // A redirect is answered as it is, never followed.
            let answer = client.request(request).await.map_err(|error| root(&exchange.connect, &error))?;
            let status = answer.status().as_u16();
            let sort = answer.headers().get(header::CONTENT_TYPE).and_then(|sort| sort.to_str().ok());
            let content_type = sort.unwrap_or_default().to_owned();
            let body = Limited::new(answer.into_body(), exchange.max_answer).collect().await;
            let body = body.map_err(|error| format!("cannot read the answer: {error}"))?;
            Ok(Answer { status, body: body.to_bytes(), content_type })
        })
    }
}

impl Sockets {
    fn client(&self, exchange: &Exchange) -> Result<HttpsClient, String> {
        let key = (exchange.connect.clone(), exchange.server_name.clone(), exchange.authorities.clone());
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        if clients.len() >= MAX_CLIENTS {
            clients.clear();
        }
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(Connector::new(exchange)?);
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// The innermost cause is the one that users can act on.
// Kubernetes: Go's text where there is one.
pub(crate) fn root(connect: &str, error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    loop {
        if let Some(text) = cause.downcast_ref::<io::Error>().and_then(|error| in_go(connect, error)) {
            return text;
        }
        match cause.source() {
            Some(source) => cause = source,
            None => return cause.to_string(),
        }
    }
}

fn in_go(connect: &str, error: &io::Error) -> Option<String> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            return Some(format!("dial tcp {connect}: connect: connection refused"));
        }
        io::ErrorKind::UnexpectedEof => return Some("EOF".to_owned()),
        // The resolver's text for an unknown name.
        _ if error.to_string().starts_with("failed to lookup address information") => {
            let host = connect.rsplit_once(':').map_or(connect, |(host, _)| host);
            return Some(format!("dial tcp: lookup {host}: no such host"));
        }
        _ => {}
    }
    match error.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(CertificateError::Other(cause)) => Some(cause.0.to_string()),
        // A kubelet that has no certificate yet sends one.
        rustls::Error::AlertReceived(alert) => Some(format!("remote error: tls: {}", alert_in_go(*alert))),
        _ => None,
    }
}

/// Go's text for an alert: mostly its name in words.
fn alert_in_go(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::UnknownCA => "unknown certificate authority".to_owned(),
        AlertDescription::ProtocolVersion => "protocol version not supported".to_owned(),
        AlertDescription::UnrecognisedName => "unrecognized name".to_owned(),
        AlertDescription::BadRecordMac => "bad record MAC".to_owned(),
        AlertDescription::CertificateRevoked => "revoked certificate".to_owned(),
        AlertDescription::CertificateExpired => "expired certificate".to_owned(),
        AlertDescription::CertificateUnknown => "unknown certificate".to_owned(),
        AlertDescription::DecodeError => "error decoding message".to_owned(),
        AlertDescription::DecryptError => "error decrypting message".to_owned(),
        AlertDescription::InsufficientSecurity => "insufficient security level".to_owned(),
        AlertDescription::UnknownPSKIdentity => "unknown PSK identity".to_owned(),
        other => {
            let mut words = String::new();
            for letter in format!("{other:?}").chars() {
                if letter.is_ascii_uppercase() && !words.is_empty() {
                    words.push(' ');
                }
                words.push(letter.to_ascii_lowercase());
            }
            words
        }
    }
}

/// Opens TLS connections to one server.
#[derive(Clone)]
struct Connector {
    connect: String,
    server_name: ServerName<'static>,
    tls: TlsConnector,
}

impl Connector {
    fn new(exchange: &Exchange) -> Result<Connector, String> {
        let mut roots = RootCertStore::empty();
        let mut authorities = Vec::new();
        if exchange.authorities.is_empty() {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        } else {
            for certificate in CertificateDer::pem_slice_iter(&exchange.authorities) {
                let certificate =
                    certificate.map_err(|error| format!("unable to load root certificates: {error}"))?;
                authorities.push(certificate.clone());
                roots
                    .add(certificate)
                    .map_err(|error| format!("unable to load root certificates: {error}"))?;
            }
        }
        let trust = Arc::new(Trust::new(roots, authorities)?);
        let builder = ClientConfig::builder().dangerous();
        let mut config = builder.with_custom_certificate_verifier(trust).with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let server_name =
            ServerName::try_from(exchange.server_name.clone()).map_err(|error| error.to_string())?;
        Ok(Connector { connect: exchange.connect.clone(), server_name, tls: Arc::new(config).into() })
    }
}

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Secured>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Secured>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let to = self.clone();
        Box::pin(async move {
            let socket = TcpStream::connect(&to.connect).await?;
            socket.set_nodelay(true)?;
            Ok(TokioIo::new(Secured(to.tls.connect(to.server_name, socket).await?)))
        })
    }
}

/// A TLS connection that knows its negotiated protocol.
struct Secured(TlsStream<TcpStream>);

impl Connection for Secured {
    fn connected(&self) -> Connected {
        let (_, session) = self.0.get_ref();
        match session.alpn_protocol() {
            Some(b"h2") => Connected::new().negotiated_h2(),
            _ => Connected::new(),
        }
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_of_the_other_side_has_gos_text() {
        for (alert, expected) in [
            (AlertDescription::InternalError, "remote error: tls: internal error"),
            (AlertDescription::BadCertificate, "remote error: tls: bad certificate"),
            (AlertDescription::UnknownCA, "remote error: tls: unknown certificate authority"),
            (AlertDescription::CertificateExpired, "remote error: tls: expired certificate"),
            (AlertDescription::CertificateUnknown, "remote error: tls: unknown certificate"),
            (AlertDescription::DecryptError, "remote error: tls: error decrypting message"),
            (AlertDescription::BadRecordMac, "remote error: tls: bad record MAC"),
            (AlertDescription::UnknownPSKIdentity, "remote error: tls: unknown PSK identity"),
        ] {
            let error = io::Error::other(rustls::Error::AlertReceived(alert));
            assert_eq!(root("192.0.2.1:10250", &error), expected);
        }
    }
}
