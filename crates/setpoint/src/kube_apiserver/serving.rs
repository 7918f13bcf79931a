//! TLS of the server: its certificate and the CAs of clients, both read again when their files change.

use super::{flags::Flags, reloaded::Reloaded};
use crate::up::certificates::Certificates;
use anyhow::{Context, Result, bail};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_rustls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    SupportedProtocolVersion,
    client::danger::HandshakeSignatureValid,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{
        ClientHello, ResolvesServerCert, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
    version::{TLS12, TLS13},
};

/// Where the certificate of the server comes from.
pub(super) enum Identity {
    /// The certificate file and the key file.
    Files(PathBuf, PathBuf),
    /// A new one.
    New,
}

/// Kubernetes: the files of `--cert-dir`.
const CERTIFICATE: &str = "apiserver.crt";
const KEY: &str = "apiserver.key";
const CERTIFICATE_FOLDER: &str = "/var/run/kubernetes";

/// The certificate of the flags, or of the certificate folder, or a new one.
pub(super) fn identity(flags: &Flags) -> Result<Identity> {
    match (flags.last("tls-cert-file"), flags.last("tls-private-key-file")) {
        (Some(certificate), Some(key)) => return Ok(Identity::Files(certificate.into(), key.into())),
        (None, None) => {}
        _ => bail!("--tls-cert-file and --tls-private-key-file must be given together"),
    }
    let folder = Path::new(flags.last("cert-dir").unwrap_or(CERTIFICATE_FOLDER));
    let (certificate, key) = (folder.join(CERTIFICATE), folder.join(KEY));
    let is_there = certificate.exists() && key.exists();
    Ok(if is_there { Identity::Files(certificate, key) } else { Identity::New })
}

/// Writes a new certificate and its CA into `--cert-dir`, if that is given, as kube-apiserver does.
pub(super) fn keep(flags: &Flags, made: &Certificates) -> Result<()> {
    let Some(folder) = flags.last("cert-dir").map(Path::new) else { return Ok(()) };
    fs::create_dir_all(folder).with_context(|| format!("--cert-dir {}", folder.display()))?;
    let chain = format!("{}{}", made.server, made.ca);
    crate::up::private_file::write(&folder.join(KEY), &made.server_key)?;
    fs::write(folder.join(CERTIFICATE), chain).with_context(|| format!("--cert-dir {}", folder.display()))
}

/// The TLS configuration: the certificate of `identity`, or else the one of `made`; clients with a certificate
/// of the CAs of the flags, or of the CA of `made`.
pub(super) fn tls(
    flags: &Flags,
    identity: &Identity,
    made: Option<&Certificates>,
) -> Result<Arc<ServerConfig>> {
    let certificate: Arc<dyn ResolvesServerCert> = match (identity, made) {
        (Identity::Files(certificate, key), _) => {
            Arc::new(FileCertificate(Reloaded::open(vec![certificate.clone(), key.clone()], certified)?))
        }
        (Identity::New, Some(made)) => {
            Arc::new(OneCertificate(certified(&[made.server.clone(), made.server_key.clone()])?))
        }
        (Identity::New, None) => bail!("there is no certificate"),
    };
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_protocol_versions(versions(flags)?)?;
    let builder = match ClientAuthorities::open(flags, made)? {
        Some(authorities) => builder.with_client_cert_verifier(Arc::new(authorities)),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn versions(flags: &Flags) -> Result<&'static [&'static SupportedProtocolVersion]> {
    const ALL: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
    const NEWEST: &[&SupportedProtocolVersion] = &[&TLS13];
    match flags.last("tls-min-version") {
        // Older ones than 1.2 are never spoken.
        None | Some("VersionTLS10" | "VersionTLS11" | "VersionTLS12") => Ok(ALL),
        Some("VersionTLS13") => Ok(NEWEST),
        // Kubernetes: its text.
        Some(other) => bail!("unknown tls version {other:?}"),
    }
}

/// A certificate chain and its key, of two PEM texts.
fn certified(texts: &[String]) -> Result<Arc<CertifiedKey>> {
    let [chain, key] = texts else { bail!("a certificate and its key are two files") };
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).context("there is no private key in PEM")?;
    let key = aws_lc_rs::default_provider().key_provider.load_private_key(key)?;
    let certified = CertifiedKey::new(chain, key);
    certified.keys_match().context("the certificate and the key do not belong together")?;
    Ok(Arc::new(certified))
}

#[derive(Debug)]
struct FileCertificate(Reloaded<Arc<CertifiedKey>>);

impl ResolvesServerCert for FileCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.get())
    }
}

#[derive(Debug)]
struct OneCertificate(Arc<CertifiedKey>);

impl ResolvesServerCert for OneCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

type Verifier = Arc<dyn ClientCertVerifier>;

/// Verifies client certificates by CAs that may change. A client without a certificate passes, too.
#[derive(Debug)]
struct ClientAuthorities {
    of_files: Option<Reloaded<Verifier>>,
    /// Of the CA of this process, which signs what certificate requests ask for.
    own: Option<Verifier>,
}

impl ClientAuthorities {
    /// `None` without any CA.
    fn open(flags: &Flags, made: Option<&Certificates>) -> Result<Option<ClientAuthorities>> {
        let files: Vec<PathBuf> = flags.all("client-ca-file").map(PathBuf::from).collect();
        let of_files = match files.is_empty() {
            true => None,
            false => Some(Reloaded::open(files, verifier).context("unable to load client CA file")?),
        };
        let own = made.map(|made| verifier(std::slice::from_ref(&made.ca))).transpose()?;
        let is_any = of_files.is_some() || own.is_some();
        Ok(is_any.then_some(ClientAuthorities { of_files, own }))
    }

    fn verifiers(&self) -> impl Iterator<Item = Verifier> {
        self.of_files.iter().map(Reloaded::get).chain(self.own.clone())
    }

    /// What the first verifier says that is content, or else the last one.
    fn ask<T>(&self, question: impl Fn(&Verifier) -> Result<T, Error>) -> Result<T, Error> {
        let mut answer = Err(Error::General("there is no CA for client certificates".to_owned()));
        for verifier in self.verifiers() {
            answer = question(&verifier);
            if answer.is_ok() {
                break;
            }
        }
        answer
    }
}

fn verifier(texts: &[String]) -> Result<Verifier> {
    let mut roots = RootCertStore::empty();
    for ca in texts.iter().flat_map(|text| CertificateDer::pem_slice_iter(text.as_bytes())) {
        roots.add(ca?)?;
    }
    if roots.is_empty() {
        bail!("data does not contain any valid RSA or ECDSA certificates");
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    Ok(WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?)
}

impl ClientCertVerifier for ClientAuthorities {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // None: the CAs may change, and clients then send whatever certificate they have.
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.ask(|verifier| verifier.verify_client_cert(certificate, intermediates, now))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.ask(|verifier| verifier.verify_tls12_signature(message, certificate, signature))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.ask(|verifier| verifier.verify_tls13_signature(message, certificate, signature))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
