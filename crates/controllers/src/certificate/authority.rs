//! The certificate authority that signs certificate requests.

use super::{request::CertificateRequest, usage::Usages};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{KeyPair, SigningKey};
use std::fmt;
use x509_parser::{
    extensions::ParsedExtension,
    pem::parse_x509_pem,
    prelude::{FromDer, X509Certificate},
};
use yasna::{
    DERWriter, DERWriterSeq, Tag,
    models::{GeneralizedTime, ObjectIdentifier, UTCTime},
};

/// A CA with its key.
pub struct SigningAuthority {
    key: KeyPair,
    algorithm: &'static Algorithm,
    /// Its subject, as DER.
    name: Vec<u8>,
    key_identifier: Option<Vec<u8>>,
    not_after: Timestamp,
}

/// Why a CA cannot sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnusableAuthority {
    #[error("the CA has no certificate in PEM")]
    Certificate,
    #[error("the CA has no private key in PEM, or one of an unknown type")]
    Key,
    #[error("the private key is not that of the CA's certificate")]
    OtherKey,
}

/// A signature algorithm on the wire.
struct Algorithm {
    signs: fn(&KeyPair) -> bool,
    oid: &'static [u64],
    has_parameters: bool,
}

const ALGORITHMS: [Algorithm; 5] = [
    Algorithm {
        signs: |key| key.algorithm() == &rcgen::PKCS_ECDSA_P256_SHA256,
        oid: &[1, 2, 840, 10045, 4, 3, 2],
        has_parameters: false,
    },
    Algorithm {
        signs: |key| key.algorithm() == &rcgen::PKCS_ECDSA_P384_SHA384,
        oid: &[1, 2, 840, 10045, 4, 3, 3],
        has_parameters: false,
    },
    Algorithm {
        signs: |key| key.algorithm() == &rcgen::PKCS_ECDSA_P521_SHA512,
        oid: &[1, 2, 840, 10045, 4, 3, 4],
        has_parameters: false,
    },
    Algorithm {
        signs: |key| key.algorithm() == &rcgen::PKCS_RSA_SHA256,
        oid: &[1, 2, 840, 113_549, 1, 1, 11],
        has_parameters: true,
    },
    Algorithm {
        signs: |key| key.algorithm() == &rcgen::PKCS_ED25519,
        oid: &[1, 3, 101, 112],
        has_parameters: false,
    },
];

// Object identifiers of extensions.
const KEY_USAGE: &[u64] = &[2, 5, 29, 15];
const ALTERNATIVE_NAMES: &[u64] = &[2, 5, 29, 17];
const BASIC_CONSTRAINTS: &[u64] = &[2, 5, 29, 19];
const AUTHORITY_KEY_IDENTIFIER: &[u64] = &[2, 5, 29, 35];
const EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37];

/// From when until when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Validity {
    /// Kubernetes: `--cluster-signing-duration`, the longest.
    const LONGEST: SignedDuration = SignedDuration::from_hours(365 * 24);
    /// Kubernetes: twice what it is backdated by.
    const SHORTEST: SignedDuration = SignedDuration::from_mins(10);
    /// Kubernetes: clocks differ.
    const BACKDATED: SignedDuration = SignedDuration::from_mins(5);
    /// Kubernetes: a shorter one is not cut by the time that it is backdated by.
    const SHORT: SignedDuration = SignedDuration::from_hours(8);

    /// `None` if the CA has expired.
    pub(super) fn of(seconds: Option<i32>, now: Timestamp, ca_not_after: Timestamp) -> Option<Validity> {
        let asked = seconds.map_or(Validity::LONGEST, |seconds| SignedDuration::from_secs(seconds.into()));
        let lasts = asked.clamp(Validity::SHORTEST, Validity::LONGEST);
        let end = if lasts < Validity::SHORT { now + lasts } else { now + lasts - Validity::BACKDATED };
        let validity = Validity { not_before: now - Validity::BACKDATED, not_after: end.min(ca_not_after) };
        (now < ca_not_after).then_some(validity)
    }
}

impl SigningAuthority {
    /// Reads the certificate and the private key of a CA, both PEM.
    pub fn from_pem(certificate: &str, key: &str) -> Result<SigningAuthority, UnusableAuthority> {
        let key = KeyPair::from_pem(key).map_err(|_| UnusableAuthority::Key)?;
        let algorithm = ALGORITHMS.iter().find(|it| (it.signs)(&key)).ok_or(UnusableAuthority::Key)?;
        let (_, block) =
            parse_x509_pem(certificate.as_bytes()).map_err(|_| UnusableAuthority::Certificate)?;
        let (_, ca) =
            X509Certificate::from_der(&block.contents).map_err(|_| UnusableAuthority::Certificate)?;
        if *ca.public_key().subject_public_key.data != *key.public_key_raw() {
            return Err(UnusableAuthority::OtherKey);
        }
        let key_identifier = ca.extensions().iter().find_map(|it| match it.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(identifier) => Some(identifier.0.to_vec()),
            _ => None,
        });
        let not_after = Timestamp::from_second(ca.validity().not_after.timestamp());
        Ok(SigningAuthority {
            algorithm,
            name: ca.subject().as_raw().to_vec(),
            key_identifier,
            not_after: not_after.map_err(|_| UnusableAuthority::Certificate)?,
            key,
        })
    }

    pub(super) fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// A certificate as DER. `None` if the key does not sign.
    pub(super) fn sign(
        &self,
        request: &CertificateRequest,
        usages: &Usages,
        validity: Validity,
        serial: u128,
    ) -> Option<Vec<u8>> {
        let body = yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                const VERSION_3: u8 = 2;
                writer.next().write_tagged(Tag::context(0), |writer| writer.write_u8(VERSION_3));
                writer.next().write_bigint_bytes(&serial.to_be_bytes(), true);
                self.algorithm.write(writer.next());
                writer.next().write_der(&self.name);
                writer.next().write_sequence(|writer| {
                    write_time(writer.next(), validity.not_before);
                    write_time(writer.next(), validity.not_after);
                });
                request.subject.write(writer.next());
                writer.next().write_der(&request.public_key);
                writer.next().write_tagged(Tag::context(3), |writer| {
                    writer.write_sequence(|writer| self.write_extensions(writer, request, usages));
                });
            });
        });
        let signature = self.key.sign(&body).ok()?;
        Some(yasna::construct_der(|writer| {
            writer.write_sequence(|writer| {
                writer.next().write_der(&body);
                self.algorithm.write(writer.next());
                writer.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        }))
    }

    /// Extensions that the request asks for are ignored, except alternative names.
    fn write_extensions(&self, writer: &mut DERWriterSeq<'_>, request: &CertificateRequest, usages: &Usages) {
        if usages.bits != 0 {
            let (bytes, length) = (usages.bits.to_be_bytes(), u16::BITS - usages.bits.trailing_zeros());
            let length = length as usize;
            let bytes = &bytes[..length.div_ceil(8)];
            write_extension(writer, KEY_USAGE, true, |writer| writer.write_bitvec_bytes(bytes, length));
        }
        if !usages.extended.is_empty() {
            write_extension(writer, EXTENDED_KEY_USAGE, false, |writer| {
                writer.write_sequence(|writer| {
                    for oid in &usages.extended {
                        writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
                    }
                });
            });
        }
        // Empty: no CA.
        write_extension(writer, BASIC_CONSTRAINTS, true, |writer| writer.write_sequence(|_| {}));
        if let Some(identifier) = &self.key_identifier {
            write_extension(writer, AUTHORITY_KEY_IDENTIFIER, false, |writer| {
                writer.write_sequence(|writer| {
                    let tag = Tag::context(0);
                    writer.next().write_tagged_implicit(tag, |writer| writer.write_bytes(identifier));
                });
            });
        }
        if !request.names.is_empty() {
            let is_critical = request.subject.is_empty();
            write_extension(writer, ALTERNATIVE_NAMES, is_critical, |writer| {
                writer.write_sequence(|writer| write_names(writer, request));
            });
        }
    }
}

impl Algorithm {
    fn write(&self, writer: DERWriter<'_>) {
        writer.write_sequence(|writer| {
            writer.next().write_oid(&ObjectIdentifier::from_slice(self.oid));
            if self.has_parameters {
                writer.next().write_null();
            }
        });
    }
}

fn write_names(writer: &mut DERWriterSeq<'_>, request: &CertificateRequest) {
    let names = &request.names;
    let texts = names.dns.iter().map(|it| (2, it.as_bytes()));
    let texts = texts.chain(names.emails.iter().map(|it| (1, it.as_bytes())));
    let texts = texts.chain(names.addresses.iter().map(|it| (7, it.as_slice())));
    for (tag, text) in texts.chain(names.uris.iter().map(|it| (6, it.as_bytes()))) {
        writer.next().write_tagged_implicit(Tag::context(tag), |writer| writer.write_bytes(text));
    }
}

fn write_extension(
    writer: &mut DERWriterSeq<'_>,
    oid: &[u64],
    is_critical: bool,
    value: impl FnOnce(DERWriter<'_>),
) {
    writer.next().write_sequence(|writer| {
        writer.next().write_oid(&ObjectIdentifier::from_slice(oid));
        if is_critical {
            writer.next().write_bool(true);
        }
        writer.next().write_bytes(&yasna::construct_der(value));
    });
}

/// X.509: years from 2050 on have four digits.
fn write_time(writer: DERWriter<'_>, at: Timestamp) {
    let at = at.to_zoned(TimeZone::UTC);
    let short = at.strftime("%y%m%d%H%M%SZ").to_string();
    match UTCTime::parse(short.as_bytes()).filter(|_| (1950..2050).contains(&at.year())) {
        Some(time) => writer.write_utctime(&time),
        None => {
            let long = at.strftime("%Y%m%d%H%M%SZ").to_string();
            let time = GeneralizedTime::parse(long.as_bytes()).expect("a time in UTC with whole seconds");
            writer.write_generalized_time(&time);
        }
    }
}

impl fmt::Debug for SigningAuthority {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SigningAuthority").field("not_after", &self.not_after).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
