//! The client's TLS configuration: which CA to trust, and which certificate to present.

use super::kubeconfig::{Cluster, User};
use anyhow::{Context, Result};
use std::{path::Path, sync::Arc};
use tokio_rustls::rustls::{
    ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};

pub(super) fn client_config(cluster: &Cluster, user: &User, folder: &Path) -> Result<Arc<ClientConfig>> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions()?;
    let builder = if cluster.insecure_skip_tls_verify {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(AcceptAnyCertificate(provider)))
    } else {
        let authority = cluster.authority(folder)?.context("its cluster names no certificate authority")?;
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&authority) {
            roots.add(certificate.context("certificate-authority")?)?;
        }
        builder.with_root_certificates(roots)
    };
    let Some((certificate, key)) = user.identity(folder)? else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain = CertificateDer::pem_slice_iter(&certificate).collect::<Result<_, _>>();
    let key = PrivateKeyDer::from_pem_slice(&key).context("client-key")?;
    Ok(Arc::new(builder.with_client_auth_cert(chain.context("client-certificate")?, key)?))
}

/// Trusts every server: `insecure-skip-tls-verify`.
#[derive(Debug)]
struct AcceptAnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
