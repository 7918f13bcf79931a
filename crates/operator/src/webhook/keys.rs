//! The serving certificate, which can be replaced while TLS handshakes are in progress.

use super::certificate::BadCertificate;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, PoisonError, RwLock},
};
use tokio_rustls::rustls::{
    ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// The current certificate and its key. A handshake uses the one that is current when it starts.
#[derive(Debug)]
pub(super) struct Keys {
    provider: Arc<CryptoProvider>,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Keys {
    pub(super) fn new(certificate: &str, key: &str) -> Result<Keys, BadCertificate> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let current = RwLock::new(Arc::new(read(&provider, certificate, key)?));
        Ok(Keys { provider, current })
    }

    pub(super) fn replace(&self, certificate: &str, key: &str) -> Result<(), BadCertificate> {
        let next = Arc::new(read(&self.provider, certificate, key)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }

    /// A TLS configuration with the current certificate, for HTTP/2 and 1.1.
    pub(super) fn server_config(self: &Arc<Keys>) -> Result<Arc<ServerConfig>, BadCertificate> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

impl ResolvesServerCert for Keys {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn read(provider: &CryptoProvider, certificate: &str, key: &str) -> Result<CertifiedKey, BadCertificate> {
    let unreadable = |error: &dyn std::fmt::Display| BadCertificate::Unreadable(error.to_string());
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| unreadable(&error))?;
    Ok(CertifiedKey::from_der(chain.map_err(|error| unreadable(&error))?, key, provider)?)
}

/// Files with a certificate that another program makes; they are read again from time to time.
#[derive(Clone, Debug)]
pub struct Files {
    /// PEM, with intermediate certificates.
    pub certificate: PathBuf,
    /// PEM of the private key.
    pub key: PathBuf,
    /// PEM of the CA. Without it, the other program must set the CA bundle in the cluster.
    pub authority: Option<PathBuf>,
}

/// The contents of the files.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct PemTexts {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) authority: Option<String>,
}

impl Files {
    pub(super) fn read(&self) -> Result<PemTexts, std::io::Error> {
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .map_err(|error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        };
        Ok(PemTexts {
            certificate: read(&self.certificate)?,
            key: read(&self.key)?,
            authority: self.authority.as_deref().map(read).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_rustls::{
        TlsAcceptor, TlsConnector,
        rustls::{ClientConfig, RootCertStore, pki_types::ServerName},
    };

    const NAME: &str = "hooks.example.com";

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    /// The certificate that a client gets which trusts both.
    async fn handshake(keys: &Arc<Keys>, trusted: [&str; 2]) -> CertificateDer<'static> {
        let mut roots = RootCertStore::empty();
        for pem in trusted {
            roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        }
        let client = ClientConfig::builder_with_provider(Arc::clone(&keys.provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (here, there) = tokio::io::duplex(1 << 14);
        let server = TlsAcceptor::from(keys.server_config().unwrap());
        let connector = TlsConnector::from(Arc::new(client));
        let connect = connector.connect(ServerName::try_from(NAME).unwrap(), here);
        let (_, connected) = futures::future::try_join(server.accept(there), connect).await.unwrap();
        connected.get_ref().1.peer_certificates().unwrap()[0].clone()
    }

    #[test]
    fn keys_are_replaced_during_handshakes() {
        let run = world::run(|_| async {
            let (first, second) = (made(), made());
            let keys = Arc::new(Keys::new(&first.0, &first.1).unwrap());
            let trusted = [&*first.0, &*second.0];
            let before = handshake(&keys, trusted).await;
            // The key changes between the messages of handshakes, and none fails.
            let many = futures::future::join_all((0..20).map(|_| handshake(&keys, trusted)));
            let replacing = async {
                for (certificate, key) in [&second, &first, &second] {
                    tokio::task::yield_now().await;
                    keys.replace(certificate, key).unwrap();
                }
            };
            futures::future::join(many, replacing).await;
            let after = handshake(&keys, trusted).await;
            assert_ne!(before, after);
            assert!(keys.replace(&first.0, &second.1).is_err(), "a key must fit its certificate");
            assert_eq!(handshake(&keys, trusted).await, after);
        });
        run.unwrap();
    }
}
