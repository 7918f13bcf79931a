//! Signed certificates, as another parser reads them.

use super::{super::usage, *};
use crate::certificate::request;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, SignatureAlgorithm};
use x509_parser::extensions::GeneralName;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A CA with a key of this algorithm, and its certificate.
fn authority(algorithm: &'static SignatureAlgorithm) -> (SigningAuthority, String) {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "the CA");
    let certificate = params.self_signed(&key).unwrap().pem();
    (SigningAuthority::from_pem(&certificate, &key.serialize_pem()).unwrap(), certificate)
}

fn request() -> CertificateRequest {
    let mut params = CertificateParams::new(vec!["node-1".to_owned(), "10.0.0.1".to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "jane");
    params.distinguished_name.push(DnType::OrganizationName, "devs");
    // Extensions of a request are not signed.
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    request::parse(pem.as_bytes()).unwrap()
}

#[test]
fn certificates_are_signed_with_every_type_of_key() {
    let usages = ["client auth", "digital signature", "key encipherment"].map(str::to_owned);
    let now = at("2026-01-01T00:00:00Z");
    for algorithm in [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ECDSA_P521_SHA512,
        &rcgen::PKCS_ED25519,
        &rcgen::PKCS_RSA_SHA256,
    ] {
        let (authority, ca) = authority(algorithm);
        let validity = Validity::of(Some(3600), now, authority.not_after()).unwrap();
        let der = authority.sign(&request(), &usage::parse(&usages), validity, 7 << 120).unwrap();
        let (rest, signed) = X509Certificate::from_der(&der).unwrap();
        assert!(rest.is_empty());
        let ca = parse_x509_pem(ca.as_bytes()).unwrap().1;
        let ca = ca.parse_x509().unwrap();
        // The parser does not know P-521.
        if algorithm != &rcgen::PKCS_ECDSA_P521_SHA512 {
            signed.verify_signature(Some(ca.public_key())).unwrap();
        }
        assert_eq!(signed.issuer(), ca.subject());
        assert_eq!(signed.subject().to_string(), "O=devs, CN=jane");
        assert_eq!(signed.serial.to_bytes_be(), (7_u128 << 120).to_be_bytes());
        assert!(!signed.is_ca());
        let usage = signed.key_usage().unwrap().unwrap().value;
        assert!(usage.digital_signature() && usage.key_encipherment() && !usage.key_cert_sign());
        let extended = signed.extended_key_usage().unwrap().unwrap().value;
        assert!(extended.client_auth && !extended.server_auth);
        let names = signed.subject_alternative_name().unwrap().unwrap();
        let expected = [GeneralName::DNSName("node-1"), GeneralName::IPAddress(&[10, 0, 0, 1])];
        assert_eq!((names.critical, &names.value.general_names[..]), (false, &expected[..]));
        assert_eq!(signed.validity().not_before.timestamp(), now.as_second() - 300);
        assert_eq!(signed.validity().not_after.timestamp(), now.as_second() + 3600);
    }
}

#[test]
fn the_duration_is_as_asked_for_within_a_year_and_the_life_of_the_ca() {
    let (now, never) = (at("2026-01-01T00:00:00Z"), at("2060-01-01T00:00:00Z"));
    for (seconds, ca_end, expected) in [
        (None, never, Some("2026-12-31T23:55:00Z")),
        (Some(i32::MAX), never, Some("2026-12-31T23:55:00Z")),
        (Some(86_400), never, Some("2026-01-01T23:55:00Z")),
        // Less than 8 hours are not cut.
        (Some(3600), never, Some("2026-01-01T01:00:00Z")),
        (Some(1), never, Some("2026-01-01T00:10:00Z")),
        (None, at("2026-02-01T00:00:00Z"), Some("2026-02-01T00:00:00Z")),
        (None, now, None),
    ] {
        let validity = Validity::of(seconds, now, ca_end);
        assert_eq!(validity.map(|it| it.not_after.to_string()).as_deref(), expected, "{seconds:?}");
        assert!(validity.is_none_or(|it| it.not_before == at("2025-12-31T23:55:00Z")));
    }
}

#[test]
fn years_after_2049_are_written_with_four_digits() {
    let (authority, _) = authority(&rcgen::PKCS_ECDSA_P256_SHA256);
    for (now, end) in
        [("2048-06-01T00:00:00Z", 2049), ("2049-06-01T00:00:00Z", 2050), ("2060-06-01T00:00:00Z", 2061)]
    {
        let validity = Validity::of(None, at(now), authority.not_after()).unwrap();
        let der = authority.sign(&request(), &Usages::default(), validity, 1).unwrap();
        let (_, signed) = X509Certificate::from_der(&der).unwrap();
        assert_eq!(signed.validity().not_after.to_datetime().year(), end);
    }
}

#[test]
fn a_key_must_be_that_of_the_certificate() {
    let (_, certificate) = authority(&rcgen::PKCS_ECDSA_P256_SHA256);
    let other = KeyPair::generate().unwrap().serialize_pem();
    for (certificate, key, expected) in [
        (certificate.as_str(), other.as_str(), UnusableAuthority::OtherKey),
        (certificate.as_str(), "", UnusableAuthority::Key),
        ("", other.as_str(), UnusableAuthority::Certificate),
    ] {
        assert_eq!(SigningAuthority::from_pem(certificate, key).unwrap_err(), expected);
    }
}
