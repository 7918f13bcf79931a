//! The CA and the serving certificate of a webhook server: made, and renewed in time.
//!
//! Pure but for new keys: the current certificates and the time in, the new ones out. No handshake fails
//! meanwhile: a new CA is in the CA bundle for a day before it signs a certificate, and an old one stays in
//! the bundle until it expires.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};
use world::World;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

const DAY: SignedDuration = SignedDuration::from_hours(24);
const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
const SERVER_LIFE: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Renewed when less than a third of the validity is left.
const RENEWED_PART: i32 = 3;
/// A CA signs only after every API server has had time to get the new CA bundle.
const RIPE: SignedDuration = DAY;
/// Clocks differ: a new certificate must not be in the future for a client.
const BACKDATED: SignedDuration = SignedDuration::from_hours(1);
/// The one that signs, its successor, and its predecessor.
const MAX_AUTHORITIES: usize = 3;

/// Why a certificate cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum BadCertificate {
    /// What another program has made is not PEM, or not a certificate.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Our own could not be made.
    #[error("it cannot be made")]
    NotMade(#[from] rcgen::Error),
    /// The key is of another certificate.
    #[error("key and certificate do not fit")]
    Unfit(#[from] tokio_rustls::rustls::Error),
}

/// The CAs and the serving certificate, in PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct CertificateSet {
    /// The oldest first, each with its key.
    pub(super) authorities: Vec<CertificateAndKey>,
    pub(super) server: CertificateAndKey,
}

#[derive(Clone, PartialEq, Eq)]
pub(super) struct CertificateAndKey {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl CertificateSet {
    /// The CA bundle that clients should trust.
    pub(super) fn bundle(&self) -> String {
        self.authorities.iter().map(|authority| authority.certificate.as_str()).collect()
    }
}

/// Makes a key.
pub(super) type NewKey<'a> = &'a dyn Fn() -> Result<KeyPair, rcgen::Error>;

/// A new key. A simulated world gives one of Ed25519 from its seed: the signatures of ECDSA have random
/// numbers of their own, so certificates would differ from run to run.
pub(super) fn new_key(world: &World) -> Result<KeyPair, rcgen::Error> {
    match world.seeded_key() {
        Some(seeded) => KeyPair::try_from([ED25519_PKCS8, &seeded].concat()),
        None => KeyPair::generate(),
    }
}

/// What precedes the 32 bytes of an Ed25519 key in PKCS#8 (RFC 8410).
const ED25519_PKCS8: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";

/// The certificates that replace the current ones; `None` if those are still good.
pub(super) fn renewed(
    new_key: NewKey<'_>,
    now: Timestamp,
    current: Option<&CertificateSet>,
    names: &[String],
) -> Result<Option<CertificateSet>, BadCertificate> {
    // If the current ones cannot be read, make new ones.
    let Some((current, (authorities, server))) =
        current.and_then(|current| Some((current, CertificateInfo::of_all(current).ok()?)))
    else {
        return make(new_key, now, names).map(Some);
    };
    let mut next = current.clone();
    let mut lives = authorities.iter().map(|facts| facts.until > now);
    next.authorities.retain(|_| lives.next().unwrap_or(false));
    let mut facts: Vec<CertificateInfo> = authorities.into_iter().filter(|facts| facts.until > now).collect();
    let Some(newest) = facts.last() else { return make(new_key, now, names).map(Some) };
    if newest.is_due(now) && facts.len() < MAX_AUTHORITIES {
        let made = authority(new_key, now)?;
        facts.push(CertificateInfo::of(&made.certificate)?);
        next.authorities.push(made);
    }
    let is_ripe = |facts: &CertificateInfo| now.duration_since(facts.since) >= RIPE + BACKDATED;
    let signer = facts.iter().rposition(is_ripe).unwrap_or(0);
    if server.is_due(now) || server.issuer != facts[signer].name || !server.is_for(names) {
        next.server = sign(new_key, now, names, &next.authorities[signer], &facts[signer].name)?;
    }
    Ok((next != *current).then_some(next))
}

fn make(new_key: NewKey<'_>, now: Timestamp, names: &[String]) -> Result<CertificateSet, BadCertificate> {
    let made = authority(new_key, now)?;
    let name = CertificateInfo::of(&made.certificate)?.name;
    let server = sign(new_key, now, names, &made, &name)?;
    Ok(CertificateSet { authorities: vec![made], server })
}

fn authority(new_key: NewKey<'_>, now: Timestamp) -> Result<CertificateAndKey, BadCertificate> {
    let key = new_key()?;
    // The name distinguishes a CA from the one before.
    let mut params = named(&format!("webhook-ca-{}", now.as_second()), now, AUTHORITY_LIFE)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(CertificateAndKey { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() })
}

fn sign(
    new_key: NewKey<'_>,
    now: Timestamp,
    names: &[String],
    authority: &CertificateAndKey,
    name: &str,
) -> Result<CertificateAndKey, BadCertificate> {
    let issuer = Issuer::new(named(name, now, AUTHORITY_LIFE)?, KeyPair::from_pem(&authority.key)?);
    let key = new_key()?;
    let mut params = named("webhook", now, SERVER_LIFE)?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.subject_alt_names = names.iter().map(|name| subject(name)).collect::<Result<_, _>>()?;
    Ok(CertificateAndKey { certificate: params.signed_by(&key, &issuer)?.pem(), key: key.serialize_pem() })
}

fn subject(name: &str) -> Result<SanType, BadCertificate> {
    match name.parse() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => Ok(SanType::DnsName(name.try_into()?)),
    }
}

fn named(name: &str, now: Timestamp, life: SignedDuration) -> Result<CertificateParams, BadCertificate> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = moment(now - BACKDATED)?;
    params.not_after = moment(now + life)?;
    Ok(params)
}

fn moment(at: Timestamp) -> Result<time::OffsetDateTime, BadCertificate> {
    let moment = time::OffsetDateTime::from_unix_timestamp(at.as_second());
    moment.map_err(|error| BadCertificate::Unreadable(error.to_string()))
}

/// The contents of a certificate.
struct CertificateInfo {
    name: String,
    issuer: String,
    since: Timestamp,
    until: Timestamp,
    /// Names and addresses, as text.
    subjects: Vec<String>,
}

impl CertificateInfo {
    /// Of the CAs, and of the serving certificate.
    fn of_all(current: &CertificateSet) -> Result<(Vec<CertificateInfo>, CertificateInfo), BadCertificate> {
        let authorities = current
            .authorities
            .iter()
            .map(|it| CertificateInfo::of(&it.certificate))
            .collect::<Result<_, _>>()?;
        Ok((authorities, CertificateInfo::of(&current.server.certificate)?))
    }

    fn of(pem: &str) -> Result<CertificateInfo, BadCertificate> {
        let unreadable = |error: &dyn std::fmt::Display| BadCertificate::Unreadable(error.to_string());
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| unreadable(&error))?;
        let (_, read) = X509Certificate::from_der(&der).map_err(|error| unreadable(&error))?;
        let moment = |seconds| Timestamp::from_second(seconds).map_err(|error| unreadable(&error));
        let name = |name: &x509_parser::x509::X509Name<'_>| {
            let text = name.iter_common_name().next().and_then(|name| name.as_str().ok());
            text.unwrap_or_default().to_owned()
        };
        let subjects = read.subject_alternative_name().map_err(|error| unreadable(&error))?;
        let subjects = subjects.map(|names| names.value.general_names.as_slice()).unwrap_or_default();
        Ok(CertificateInfo {
            name: name(read.subject()),
            issuer: name(read.issuer()),
            since: moment(read.validity().not_before.timestamp())?,
            until: moment(read.validity().not_after.timestamp())?,
            subjects: subjects.iter().map(text).collect(),
        })
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let life = self.until.duration_since(self.since);
        self.until.duration_since(now) < life / RENEWED_PART
    }

    fn is_for(&self, names: &[String]) -> bool {
        names.iter().all(|name| self.subjects.contains(name))
    }
}

fn text(name: &GeneralName<'_>) -> String {
    let address = |bytes: &[u8]| match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| std::net::Ipv4Addr::from(bytes).to_string()),
        _ => <[u8; 16]>::try_from(bytes).ok().map(|bytes| std::net::Ipv6Addr::from(bytes).to_string()),
    };
    match name {
        GeneralName::DNSName(name) => (*name).to_owned(),
        GeneralName::IPAddress(bytes) => address(bytes).unwrap_or_default(),
        _ => String::new(),
    }
}

/// Without the private keys.
impl std::fmt::Debug for CertificateSet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "certificates under {} authorities", self.authorities.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn certificates_are_renewed_in_time_and_cas_in_two_steps() {
        let mut now = Timestamp::from_second(1_767_225_600).unwrap();
        let usual = names(&["hooks.default.svc", "127.0.0.1"]);
        let mut current =
            renewed(&KeyPair::generate, now, None, &usual).unwrap().expect("there is nothing yet");
        // Days later; names; how many CAs then; which of them has signed; whether the certificate is new.
        for (days, names, authorities, signer, is_new) in [
            (0, &usual, 1, 0, false),
            (59, &usual, 1, 0, false),
            (2, &usual, 1, 0, true),
            (0, &names(&["other.default.svc"]), 1, 0, true),
            (50, &usual, 1, 0, true),
            // It has expired without a check: clients that trust the CA trust the new one.
            (100, &usual, 1, 0, true),
            (33, &usual, 2, 0, false),
            (0, &usual, 2, 0, false),
            (2, &usual, 2, 1, true),
            (59, &usual, 2, 1, false),
            (2, &usual, 2, 1, true),
            (58, &usual, 1, 0, false),
        ] {
            now += DAY * days;
            let next = renewed(&KeyPair::generate, now, Some(&current), names)
                .unwrap()
                .unwrap_or_else(|| current.clone());
            let (all, server) = CertificateInfo::of_all(&next).unwrap();
            assert_eq!(all.len(), authorities, "after {days} days, at {now}");
            assert_eq!(server.issuer, all[signer].name, "after {days} days, at {now}");
            assert_eq!(next.server != current.server, is_new, "after {days} days, at {now}");
            assert!(server.is_for(names) && server.until > now);
            assert!(
                renewed(&KeyPair::generate, now, Some(&next), names).unwrap().is_none(),
                "a second check changes nothing"
            );
            current = next;
        }
    }

    #[test]
    fn unusable_certificates_are_replaced() {
        let now = Timestamp::from_second(1_767_225_600).unwrap();
        let usual = names(&["hooks.default.svc"]);
        let good = renewed(&KeyPair::generate, now, None, &usual).unwrap().unwrap();
        let damaged = CertificateSet {
            server: CertificateAndKey { certificate: "?".to_owned(), key: String::new() },
            ..good.clone()
        };
        let bare = CertificateSet { authorities: Vec::new(), ..good.clone() };
        for (current, later) in [(&damaged, 0), (&bare, 0), (&good, 1000)] {
            let next = renewed(&KeyPair::generate, now + DAY * later, Some(current), &usual)
                .unwrap()
                .expect("it is no good");
            assert!(CertificateInfo::of_all(&next).is_ok());
            assert_ne!(next.bundle(), good.bundle());
        }
    }
}
