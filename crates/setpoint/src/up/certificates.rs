//! The CAs of this control plane, and the certificates of its server and its administrator.

mod kubelets;

use super::private_file;
use anyhow::{Context, Result, bail};
pub(crate) use kubelets::KubeletAuthority;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use std::{
    fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_rustls::rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use world::Timestamp;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// As long as the CA of a cluster usually lasts.
const CA_YEARS: i64 = 20;
/// With less left than this, a start renews the certificate: a server started once a year never runs out.
const CA_RENEWED_YEARS: i64 = YEARS;
const YEARS: i64 = 5;
const RENEWED_YEARS: i64 = 1;
const YEAR_SECONDS: i64 = 365 * 24 * 3600;
/// Clocks differ; a new certificate must not be from the future.
const BACKDATED_SECONDS: i64 = 3600;

/// CA, certificates and keys as PEM.
#[derive(Debug)]
pub(crate) struct Certificates {
    pub(crate) ca: String,
    pub(super) ca_key: String,
    pub(crate) server: String,
    pub(crate) server_key: String,
    pub(crate) admin: String,
    pub(crate) admin_key: String,
    pub(crate) kubelets: KubeletAuthority,
}

/// The certificates of the simulated nodes and of the server as their client, as PEM.
#[derive(Debug)]
pub(crate) struct NodeCertificates {
    pub(crate) node: String,
    pub(crate) node_key: String,
    pub(crate) client: String,
    pub(crate) client_key: String,
}

impl Certificates {
    /// Reads those in `directory`; creates them on the first start and renews them in time. The server's is
    /// for all `addresses`. If the user has put a CA of their own into `directory`, it signs them, and is never replaced.
    pub(crate) fn load_or_make(
        now: Timestamp,
        directory: &Path,
        addresses: &[IpAddr],
    ) -> Result<Certificates> {
        let files = Files(directory.to_owned());
        let is_outdated = |kept: &Certificates| {
            let left = years_left(now, &kept.ca);
            let left =
                left.with_context(|| format!("{} holds no certificate", directory.join("ca.crt").display()))?;
            Ok::<_, anyhow::Error>(left < CA_RENEWED_YEARS && is_named(&kept.ca, CA_NAME)?)
        };
        let mut kept = match files.read(now)? {
            Some(kept) if !is_outdated(&kept)? => kept,
            kept => {
                let user_ca = if kept.is_none() { files.user_ca()? } else { None };
                let (ca, key) = user_ca.map_or_else(|| make_ca(now), Ok)?;
                let kubelets = KubeletAuthority::load_or_make(now, directory)?;
                let made = Certificates::issue(now, addresses, (ca, key), kubelets)?;
                files.write(&made)?;
                return Ok(made);
            }
        };
        if kept.renew(now, addresses)? {
            files.write_renewed(&kept)?;
        }
        Ok(kept)
    }

    /// New ones, not stored.
    pub(crate) fn make(now: Timestamp, addresses: &[IpAddr]) -> Result<Certificates> {
        Certificates::issue(now, addresses, make_ca(now)?, KubeletAuthority::make(now)?)
    }

    /// New ones of a CA, given with its key.
    fn issue(
        now: Timestamp,
        addresses: &[IpAddr],
        (ca, ca_key): (String, String),
        kubelets: KubeletAuthority,
    ) -> Result<Certificates> {
        let (server_key, admin_key) = (KeyPair::generate()?, KeyPair::generate()?);
        let issuer = issuer(&ca, &ca_key)?;
        Ok(Certificates {
            server: server_certificate(now, addresses, &server_key, &issuer)?,
            server_key: server_key.serialize_pem(),
            admin: admin_certificate(now, &admin_key, &issuer)?,
            admin_key: admin_key.serialize_pem(),
            ca,
            ca_key,
            kubelets,
        })
    }

    /// Renews certificates that expire soon, or lack an address; keys stay. Returns whether any was renewed.
    fn renew(&mut self, now: Timestamp, addresses: &[IpAddr]) -> Result<bool> {
        let is_old = |pem: &str| Ok::<_, anyhow::Error>(years_left(now, pem)? < RENEWED_YEARS);
        let renew_server = is_old(&self.server)? || !names_all(&self.server, addresses)?;
        let renew_admin = is_old(&self.admin)?;
        if !renew_server && !renew_admin {
            return Ok(false);
        }
        let issuer = issuer(&self.ca, &self.ca_key)?;
        if renew_server {
            let key = KeyPair::from_pem(&self.server_key)?;
            self.server = server_certificate(now, addresses, &key, &issuer)?;
        }
        if renew_admin {
            let key = KeyPair::from_pem(&self.admin_key)?;
            self.admin = admin_certificate(now, &key, &issuer)?;
        }
        Ok(true)
    }

    /// New ones for the way from the server to its nodes; not stored: who shows them is in this process.
    pub(crate) fn of_nodes(&self, now: Timestamp, address: IpAddr) -> Result<NodeCertificates> {
        let node_key = KeyPair::generate()?;
        let mut node = params(now, "system:node:simulated", &["system:nodes"], YEARS)?;
        node.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        node.subject_alt_names = vec![SanType::IpAddress(address)];
        // In no group: even if a false Node sends the server to itself, it may do nothing there.
        let (client, client_key) = self.of_client(now, node::kubelet::API_SERVER)?;
        Ok(NodeCertificates {
            node: node.signed_by(&node_key, &self.kubelets.issuer()?)?.pem(),
            node_key: node_key.serialize_pem(),
            client,
            client_key,
        })
    }

    /// A certificate for a client of the server that is this user, and its key, as PEM; not stored here.
    pub(crate) fn of_client(&self, now: Timestamp, user: &str) -> Result<(String, String)> {
        let key = KeyPair::generate()?;
        let mut client = params(now, user, &[], YEARS)?;
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Ok((client.signed_by(&key, &issuer(&self.ca, &self.ca_key)?)?.pem(), key.serialize_pem()))
    }

    pub(crate) fn server_config(&self) -> Result<Arc<ServerConfig>> {
        server_config(&self.server, &self.server_key, &self.ca)
    }
}

/// The server's TLS configuration: HTTP/2 or 1.1, and optional client certificates of these CAs. All are PEM.
pub(crate) fn server_config(chain: &str, key: &str, client_cas: &str) -> Result<Arc<ServerConfig>> {
    let mut config = tls_config(chain, key, client_cas, false)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// The TLS configuration of nodes: HTTP/1.1, and only clients with a certificate of this CA.
pub(crate) fn node_config(chain: &str, key: &str, client_ca: &str) -> Result<Arc<ServerConfig>> {
    let mut config = tls_config(chain, key, client_ca, true)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn tls_config(chain: &str, key: &str, client_cas: &str, needs_client: bool) -> Result<ServerConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    for ca in CertificateDer::pem_slice_iter(client_cas.as_bytes()) {
        roots.add(ca?)?;
    }
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let builder = match roots.is_empty() {
        true => builder.with_no_client_auth(),
        false => {
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if needs_client { verifier } else { verifier.allow_unauthenticated() };
            builder.with_client_cert_verifier(verifier.build()?)
        }
    };
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    Ok(builder.with_single_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?)?)
}

/// The name of a CA that was made here.
const CA_NAME: &str = "setpoint-ca";

/// The certificate and the key of a new CA.
fn make_ca(now: Timestamp) -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    Ok((ca_params(now, CA_NAME)?.self_signed(&key)?.pem(), key.serialize_pem()))
}

fn ca_params(now: Timestamp, name: &str) -> Result<CertificateParams> {
    let mut ca = params(now, name, &[], CA_YEARS)?;
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(ca)
}

fn issuer(ca: &str, ca_key: &str) -> Result<Issuer<'static, KeyPair>> {
    let key = KeyPair::from_pem(ca_key).context("cannot read the key of the CA")?;
    Issuer::from_ca_cert_pem(ca, key).context("cannot read the certificate of the CA")
}

fn server_certificate(
    now: Timestamp,
    addresses: &[IpAddr],
    key: &KeyPair,
    issuer: &Issuer<'_, KeyPair>,
) -> Result<String> {
    let mut server = params(now, "setpoint", &[], YEARS)?;
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.subject_alt_names = server_names(addresses)?;
    Ok(server.signed_by(key, issuer)?.pem())
}

fn admin_certificate(now: Timestamp, key: &KeyPair, issuer: &Issuer<'_, KeyPair>) -> Result<String> {
    // Kubernetes: the group that may do everything.
    let mut admin = params(now, "kubernetes-admin", &["system:masters"], YEARS)?;
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok(admin.signed_by(key, issuer)?.pem())
}

fn params(now: Timestamp, name: &str, groups: &[&str], years: i64) -> Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    for group in groups {
        params.distinguished_name.push(DnType::OrganizationName, *group);
    }
    let now = now.as_second();
    params.not_before = moment(now - BACKDATED_SECONDS)?;
    params.not_after = moment(now + years * YEAR_SECONDS)?;
    Ok(params)
}

/// How many more years a certificate is valid, rounded down.
fn years_left(now: Timestamp, pem: &str) -> Result<i64> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes())?;
    let (_, certificate) = X509Certificate::from_der(&der)?;
    let left = certificate.validity().not_after.timestamp() - now.as_second();
    Ok(left.div_euclid(YEAR_SECONDS))
}

/// Whether the subject of a certificate is this common name.
fn is_named(pem: &str, name: &str) -> Result<bool> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes())?;
    let (_, certificate) = X509Certificate::from_der(&der)?;
    Ok(certificate.subject().iter_common_name().any(|found| found.as_str().is_ok_and(|found| found == name)))
}

/// Whether a certificate is for this key.
fn is_for_key(pem: &str, key: &str) -> Result<bool> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes())?;
    let (_, certificate) = X509Certificate::from_der(&der)?;
    let key = KeyPair::from_pem(key)?;
    Ok(certificate.public_key().subject_public_key.data.as_ref() == key.public_key_raw())
}

fn names_all(pem: &str, addresses: &[IpAddr]) -> Result<bool> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes())?;
    let (_, certificate) = X509Certificate::from_der(&der)?;
    let names = certificate.subject_alternative_name()?;
    let names = names.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
    let named = |address: &IpAddr| {
        let bytes = match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        names.iter().any(|name| *name == GeneralName::IPAddress(&bytes))
    };
    Ok(addresses.iter().filter(|address| !address.is_unspecified()).all(named))
}

fn moment(second: i64) -> Result<time::OffsetDateTime> {
    let day = Timestamp::from_second(second)?;
    Ok(time::OffsetDateTime::from_unix_timestamp(day.as_second())?)
}

/// The names and addresses of the server.
fn server_names(addresses: &[IpAddr]) -> Result<Vec<SanType>> {
    let mut all = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    for address in addresses.iter().filter(|address| !address.is_unspecified()) {
        if !all.contains(address) {
            all.push(*address);
        }
    }
    let names = NAMES.into_iter().map(|name| Ok(SanType::DnsName(name.try_into()?)));
    names.chain(all.into_iter().map(|address| Ok(SanType::IpAddress(address)))).collect()
}

const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// The certificate files, readable only by their owner.
struct Files(PathBuf);

/// The last is written last and removed first: if it exists, all exist, and they belong together.
const FILES: [&str; 6] = ["ca.crt", "ca.key", "server.crt", "server.key", "admin.crt", LAST];
const LAST: &str = "admin.key";

impl Files {
    /// `None` if the last file is missing. Otherwise the others must exist and be readable: a new CA would
    /// lock out every client that trusts the old one.
    fn read(&self, now: Timestamp) -> Result<Option<Certificates>> {
        let path = |name: &str| self.0.join(name);
        let Some(admin_key) = private_file::read(&path(LAST))? else { return Ok(None) };
        let read = |name: &str| {
            private_file::read(&path(name))?.with_context(|| {
                format!(
                    "{} is missing; restore it, or remove server.* and admin.* (and ca.*, unless it is a CA of your own)",
                    path(name).display()
                )
            })
        };
        Ok(Some(Certificates {
            ca: read("ca.crt")?,
            ca_key: read("ca.key")?,
            server: read("server.crt")?,
            server_key: read("server.key")?,
            admin: read("admin.crt")?,
            admin_key,
            kubelets: KubeletAuthority::load_or_make(now, &self.0)?,
        }))
    }

    /// `ca.crt` and `ca.key` that the user has put there before the first start. `None` if there are none, or if `ca.crt`
    /// was made by a first start that was cut off before it had written all files.
    fn user_ca(&self) -> Result<Option<(String, String)>> {
        let [certificate, key] = ["ca.crt", "ca.key"].map(|name| self.0.join(name));
        let Some(ca) = private_file::read(&certificate)? else { return Ok(None) };
        let broken = || format!("{} holds no certificate: correct it, or remove it", certificate.display());
        if is_named(&ca, CA_NAME).with_context(broken)? {
            return Ok(None);
        }
        let Some(ca_key) = private_file::read(&key)? else {
            bail!("{} is missing: put the key of the CA there, or remove ca.crt", key.display());
        };
        let broken = || format!("{} holds no key: correct it, or remove it", key.display());
        if !is_for_key(&ca, &ca_key).with_context(broken)? {
            bail!("{} is not the key of {}", key.display(), certificate.display());
        }
        Ok(Some((ca, ca_key)))
    }

    fn write(&self, certificates: &Certificates) -> Result<()> {
        let Certificates { ca, ca_key, server, server_key, admin, admin_key, kubelets: _ } = certificates;
        fs::create_dir_all(&self.0).with_context(|| format!("cannot create {}", self.0.display()))?;
        let last = self.0.join(LAST);
        if last.exists() {
            fs::remove_file(&last).with_context(|| format!("cannot remove {}", last.display()))?;
        }
        for (name, text) in FILES.into_iter().zip([ca, ca_key, server, server_key, admin, admin_key]) {
            private_file::write(&self.0.join(name), text)?;
        }
        Ok(())
    }

    /// Keys do not change, so each file is valid by itself.
    fn write_renewed(&self, certificates: &Certificates) -> Result<()> {
        private_file::write(&self.0.join("server.crt"), &certificates.server)?;
        private_file::write(&self.0.join("admin.crt"), &certificates.admin)
    }
}

#[cfg(test)]
mod tests;
