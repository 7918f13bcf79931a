//! The CA of this control plane, and the certificates it gives to its server and its administrator.

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::{
    fs,
    io::Write,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use world::{Timestamp, World};

/// Long enough to forget about it, as the CA of a cluster is.
const YEARS: i64 = 10;
/// Clocks differ; a new certificate must not be from the future.
const BACKDATED_SECONDS: i64 = 3600;

/// PEM texts of everything that proves who is who.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) ca: String,
    server: String,
    server_key: String,
    pub(crate) admin: String,
    pub(crate) admin_key: String,
}

impl Certificates {
    /// Those in `directory`, made on the first start.
    pub(crate) fn load_or_make(world: &World, directory: &Path, address: IpAddr) -> Result<Certificates> {
        let made = Files(directory.to_owned());
        if let Some(certificates) = made.read()? {
            return Ok(certificates);
        }
        let certificates = Certificates::make(world, address)?;
        made.write(&certificates)?;
        Ok(certificates)
    }

    /// New ones, kept nowhere.
    pub(crate) fn make(world: &World, address: IpAddr) -> Result<Certificates> {
        let ca_key = KeyPair::generate()?;
        let mut ca = params(world, "setpoint-ca", &[])?;
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let ca_certificate = ca.self_signed(&ca_key)?;
        let issuer = Issuer::new(ca, ca_key);

        let server_key = KeyPair::generate()?;
        let mut server = params(world, "setpoint", &[])?;
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.subject_alt_names = server_names(address)?;
        let server = server.signed_by(&server_key, &issuer)?;

        let admin_key = KeyPair::generate()?;
        // Kubernetes: the group whose members may do everything.
        let mut admin = params(world, "kubernetes-admin", &["system:masters"])?;
        admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let admin = admin.signed_by(&admin_key, &issuer)?;
        Ok(Certificates {
            ca: ca_certificate.pem(),
            server: server.pem(),
            server_key: server_key.serialize_pem(),
            admin: admin.pem(),
            admin_key: admin_key.serialize_pem(),
        })
    }

    /// TLS as the server speaks it: HTTP/2 or 1.1, and a client may show a certificate of our CA.
    pub(crate) fn server_config(&self) -> Result<Arc<ServerConfig>> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.as_bytes())?)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let verifier = verifier.allow_unauthenticated().build()?;
        let chain = vec![CertificateDer::from_pem_slice(self.server.as_bytes())?];
        let key = PrivateKeyDer::from_pem_slice(self.server_key.as_bytes())?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn params(world: &World, name: &str, groups: &[&str]) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    for group in groups {
        params.distinguished_name.push(DnType::OrganizationName, *group);
    }
    let now = world.wall().as_second();
    params.not_before = moment(now - BACKDATED_SECONDS)?;
    params.not_after = moment(now + YEARS * 365 * 24 * 3600)?;
    Ok(params)
}

fn moment(second: i64) -> Result<time::OffsetDateTime> {
    let day = Timestamp::from_second(second)?;
    Ok(time::OffsetDateTime::from_unix_timestamp(day.as_second())?)
}

/// Under which names the server may be reached.
fn server_names(address: IpAddr) -> Result<Vec<SanType>> {
    let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    if !address.is_unspecified() && !addresses.contains(&address) {
        addresses.push(address);
    }
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let names = names.into_iter().map(|name| Ok(SanType::DnsName(name.try_into()?)));
    names.chain(addresses.into_iter().map(|address| Ok(SanType::IpAddress(address)))).collect()
}

/// Where certificates are kept, each in a file that only its owner reads.
struct Files(PathBuf);

const NAMES: [&str; 5] = ["ca.crt", "server.crt", "server.key", "admin.crt", "admin.key"];

impl Files {
    fn read(&self) -> Result<Option<Certificates>> {
        if !NAMES.iter().all(|name| self.0.join(name).exists()) {
            return Ok(None);
        }
        let read = |name: &str| {
            let path = self.0.join(name);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        let [ca, server, server_key, admin, admin_key] = NAMES.map(read);
        Ok(Some(Certificates {
            ca: ca?,
            server: server?,
            server_key: server_key?,
            admin: admin?,
            admin_key: admin_key?,
        }))
    }

    fn write(&self, certificates: &Certificates) -> Result<()> {
        let Certificates { ca, server, server_key, admin, admin_key } = certificates;
        fs::create_dir_all(&self.0).with_context(|| format!("cannot create {}", self.0.display()))?;
        for (name, text) in NAMES.into_iter().zip([ca, server, server_key, admin, admin_key]) {
            write_private(&self.0.join(name), text)?;
        }
        Ok(())
    }
}

/// Writes a file that nobody but its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let write = || {
        let temporary = path.with_extension("part");
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        fs::rename(&temporary, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
