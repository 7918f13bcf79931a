//! Connections to kubelets over real sockets: TLS in both directions, always verified.

use super::{Connecting, KubeletAddress, KubeletStream, Kubelets};
use crate::webhook::{Trust, root_cause};
use std::{fmt, sync::Arc};
use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    rustls::{
        self, ClientConfig, RootCertStore,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem, pem::PemObject},
    },
};

/// The identities of a server and its kubelets, as PEM.
// Kubernetes: --kubelet-client-certificate, --kubelet-client-key and --kubelet-certificate-authority.
#[derive(Clone, Copy, Debug)]
pub struct KubeletTls<'a> {
    /// The server's client certificate and its key.
    pub certificate: &'a str,
    pub key: &'a str,
    /// The CA of the kubelets' certificates. A kubelet without a certificate of this CA gets no request.
    pub authority: &'a str,
}

/// A certificate, key or CA that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadKubeletTls {
    #[error("no PEM")]
    Pem(#[from] pem::Error),
    #[error("certificate and key do not fit")]
    Tls(#[from] rustls::Error),
    #[error("the CA of kubelets: {0}")]
    Authority(String),
}

/// Connections over real sockets.
pub struct KubeletSockets {
    tls: TlsConnector,
}

impl KubeletSockets {
    pub fn new(tls: KubeletTls<'_>) -> Result<KubeletSockets, BadKubeletTls> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(tls.authority.as_bytes()) {
            roots.add(certificate?)?;
        }
        // Only what the CA has signed: never the certificate of the CA itself.
        let trust = Trust::new(roots, Vec::new()).map_err(BadKubeletTls::Authority)?;
        let chain = CertificateDer::pem_slice_iter(tls.certificate.as_bytes()).collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(tls.key.as_bytes())?;
        let mut config = ClientConfig::builder()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(trust))
            .with_client_auth_cert(chain, key)?;
        // An upgrade needs HTTP/1.1.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(KubeletSockets { tls: Arc::new(config).into() })
    }
}

impl Kubelets for KubeletSockets {
    fn connect<'a>(&'a self, address: &'a KubeletAddress) -> Connecting<'a> {
        Box::pin(async move {
            let place = address.to_string();
            let name = ServerName::try_from(address.host.clone())
                .map_err(|_| format!("dial tcp: lookup {}: no such host", address.host))?;
            let socket = TcpStream::connect(&place).await.map_err(|error| root_cause(&place, &error))?;
            socket.set_nodelay(true).map_err(|error| error.to_string())?;
            let stream = self.tls.connect(name, socket).await.map_err(|error| root_cause(&place, &error))?;
            Ok(Box::new(stream) as Box<dyn KubeletStream>)
        })
    }
}

impl fmt::Debug for KubeletSockets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KubeletSockets")
    }
}
