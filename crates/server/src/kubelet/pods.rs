//! Connections to pods: to an address that a pod reports, in plain text or in TLS with an unverified certificate.

use super::{CONNECT, Connecting, KubeletStream, NoResponse, exchange};
use crate::{Inner, authenticate::Caller, webhook::root_cause};
use http::{Request, Response};
use hyper::body::Incoming;
use std::{error::Error, net::SocketAddr, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, DigitallySignedStruct, SignatureScheme,
        client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature},
        pki_types::{CertificateDer, ServerName, UnixTime},
    },
};

/// A port of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PodAddress {
    pub(crate) socket: SocketAddr,
    pub(crate) is_tls: bool,
}

/// A connection to a port of a pod over a socket.
pub fn connect_to_pod(address: SocketAddr) -> Connecting<'static> {
    Box::pin(async move {
        let socket = TcpStream::connect(address).await;
        let socket = socket.map_err(|error| dial_problem(address, &error))?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        Ok(Box::new(socket) as Box<dyn KubeletStream>)
    })
}

// Kubernetes: the texts of Go's dialer.
fn dial_problem(address: SocketAddr, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    let cause = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::HostUnreachable => "no route to host",
        ErrorKind::NetworkUnreachable => "network is unreachable",
        ErrorKind::TimedOut => "connection timed out",
        _ => return format!("dial tcp {address}: {error}"),
    };
    format!("dial tcp {address}: connect: {cause}")
}

/// Sends a request to a pod. A redirect is answered as it is, never followed. The connection is one of this caller.
pub(crate) async fn send_to_pod<B>(
    inner: &Inner,
    caller: &Caller,
    address: PodAddress,
    request: Request<B>,
) -> Result<Response<Incoming>, NoResponse>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let place = inner.pod_connections.take_for(caller.sharer()).ok_or(NoResponse::TooManyConnections)?;
    let socket = address.socket;
    let connecting = async {
        let stream = match &inner.kubelets {
            Some(kubelets) => kubelets.connect_to_pod(socket).await?,
            None => connect_to_pod(socket).await?,
        };
        if !address.is_tls {
            return Ok(stream);
        }
        let stream = tls().connect(ServerName::from(socket.ip()), stream).await;
        let stream = stream.map_err(|error| root_cause(&socket.to_string(), &error))?;
        Ok(Box::new(stream) as Box<dyn KubeletStream>)
    };
    let stream = inner.world.timeout(CONNECT, connecting).await;
    let stream = stream.unwrap_or_else(|_| Err(format!("dial tcp {socket}: i/o timeout")));
    exchange(inner, stream.map_err(NoResponse::Unreachable)?, place, request).await
}

/// TLS without a client certificate, to any server.
// Kubernetes: the certificate of a pod is not verified, since it need not name the pod's address.
fn tls() -> TlsConnector {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let anyone = Arc::new(Anyone(Arc::clone(&provider)));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has suites for its default versions")
        .dangerous()
        .with_custom_certificate_verifier(anyone)
        .with_no_client_auth();
    // An upgrade needs HTTP/1.1.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

/// Accepts every certificate whose key the other side has.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
