//! Verifies the certificate of a webhook, with Go's error texts.

use std::{fmt, sync::Arc};
use tokio_rustls::rustls::{
    self, CertificateError, DigitallySignedStruct, OtherError, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
};

/// Why a certificate is rejected.
#[derive(Debug)]
pub(super) struct CertificateProblem(String);

impl fmt::Display for CertificateProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "tls: failed to verify certificate: x509: {}", self.0)
    }
}

impl std::error::Error for CertificateProblem {}

/// Accepts certificates that a CA has signed, and the CA certificate itself.
#[derive(Debug)]
pub(crate) struct Trust {
    signed: Arc<WebPkiServerVerifier>,
    authorities: Vec<CertificateDer<'static>>,
}

impl Trust {
    pub(crate) fn new(
        roots: RootCertStore,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Result<Trust, String> {
        let signed = WebPkiServerVerifier::builder(Arc::new(roots)).build();
        let signed = signed.map_err(|error| format!("unable to load root certificates: {error}"))?;
        Ok(Trust { signed, authorities })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        // Kubernetes: Go checks time and name first. It accepts a server certificate that is itself a given
        // CA, as made by `openssl req -x509`; rustls rejects any CA as a server certificate.
        let own = in_time(shown, now)
            .and_then(|()| ParsedCertificate::try_from(shown))
            .and_then(|parsed| verify_server_name(&parsed, name));
        let verified = own.and_then(|()| match self.authorities.iter().any(|known| known == shown) {
            true => Ok(ServerCertVerified::assertion()),
            false => self.signed.verify_server_cert(shown, between, name, stapled, now),
        });
        verified.map_err(|error| match error {
            rustls::Error::InvalidCertificate(bad) => {
                let cause = CertificateProblem(problem(&bad, shown, name, now));
                rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(cause))))
            }
            other => other,
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

fn parse<'a>(shown: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, rustls::Error> {
    let parsed = x509_parser::parse_x509_certificate(shown);
    let bad = |_| rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
    parsed.map(|(_, certificate)| certificate).map_err(bad)
}

fn in_time(shown: &CertificateDer<'_>, now: UnixTime) -> Result<(), rustls::Error> {
    let certificate = parse(shown)?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let valid = certificate.validity();
    match (valid.not_before.timestamp()..=valid.not_after.timestamp()).contains(&now) {
        true => Ok(()),
        false => Err(rustls::Error::InvalidCertificate(CertificateError::Expired)),
    }
}

// Kubernetes: the texts of Go's crypto/x509.
fn problem(
    bad: &CertificateError,
    shown: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> String {
    use CertificateError as E;
    match (bad, parse(shown)) {
        (
            E::Expired | E::ExpiredContext { .. } | E::NotValidYet | E::NotValidYetContext { .. },
            Ok(certificate),
        ) => untimely(&certificate, now),
        (E::NotValidForName | E::NotValidForNameContext { .. }, Ok(certificate)) => {
            misnamed(&certificate, name)
        }
        (E::UnknownIssuer | E::Other(_), _) => "certificate signed by unknown authority".to_owned(),
        (other, _) => format!("certificate is not good: {other:?}"),
    }
}

fn untimely(certificate: &X509Certificate<'_>, now: UnixTime) -> String {
    let at = |seconds: i64| match jiff::Timestamp::from_second(seconds) {
        Ok(time) => time.to_string(),
        Err(_) => seconds.to_string(),
    };
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let (from, until) =
        (certificate.validity().not_before.timestamp(), certificate.validity().not_after.timestamp());
    let (side, bound) = if now < from { ("before", from) } else { ("after", until) };
    format!("certificate has expired or is not yet valid: current time {} is {side} {}", at(now), at(bound))
}

fn misnamed(certificate: &X509Certificate<'_>, name: &ServerName<'_>) -> String {
    let names = certificate.extensions().iter().find_map(|it| match it.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    });
    let names = || names.into_iter().flatten();
    let wanted = name.to_str();
    let valid: Vec<String> = match name {
        ServerName::IpAddress(_) => names().filter_map(address).collect(),
        _ => names()
            .filter_map(|it| match it {
                GeneralName::DNSName(name) => Some((*name).to_owned()),
                _ => None,
            })
            .collect(),
    };
    match (name, valid.is_empty()) {
        (ServerName::IpAddress(_), true) => {
            format!("cannot validate certificate for {wanted} because it doesn't contain any IP SANs")
        }
        (_, true) => {
            format!("certificate is not valid for any names, but wanted to match {wanted}")
        }
        (_, false) => format!("certificate is valid for {}, not {wanted}", valid.join(", ")),
    }
}

fn address(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::IPAddress(bytes) => match **bytes {
            [a, b, c, d] => Some(std::net::Ipv4Addr::new(a, b, c, d).to_string()),
            ref long => {
                let long = <[u8; 16]>::try_from(long).ok()?;
                Some(std::net::Ipv6Addr::from(long).to_string())
            }
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, SanType};
    use std::time::Duration;

    const NOON: Duration = Duration::from_secs(1_800_000_000);

    fn made(change: impl FnOnce(&mut CertificateParams)) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["hooks.example.com".to_owned()]).unwrap();
        params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        change(&mut params);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn a_ca_is_accepted_as_server_certificate_and_errors_have_gos_texts() {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let known = made(|_| {});
        let late = made(|params| {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        });
        let nameless = made(|params| params.subject_alt_names.clear());
        let all = vec![known.clone(), late.clone(), nameless.clone()];
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(all.clone());
        let trust = Trust::new(roots, all).unwrap();
        let unknown = made(|_| {});
        for (shown, name, expected) in [
            (&known, "127.0.0.1", ""),
            (&known, "hooks.example.com", ""),
            (&known, "127.0.0.2", "certificate is valid for 127.0.0.1, not 127.0.0.2"),
            (&known, "other", "certificate is valid for hooks.example.com, not other"),
            (&nameless, "other", "certificate is not valid for any names, but wanted to match other"),
            (
                &nameless,
                "127.0.0.1",
                "cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
            ),
            (
                &late,
                "127.0.0.1",
                "certificate has expired or is not yet valid: current time 2027-01-15T08:00:00Z is after 2021-01-01T00:00:00Z",
            ),
            (&unknown, "127.0.0.1", "certificate signed by unknown authority"),
            (&unknown, "other", "certificate is valid for hooks.example.com, not other"),
        ] {
            let name = ServerName::try_from(name).unwrap();
            let found = trust.verify_server_cert(shown, &[], &name, &[], UnixTime::since_unix_epoch(NOON));
            let found = match found {
                Ok(_) => String::new(),
                Err(rustls::Error::InvalidCertificate(CertificateError::Other(cause))) => {
                    cause.0.to_string().replace("tls: failed to verify certificate: x509: ", "")
                }
                Err(other) => format!("{other:?}"),
            };
            assert_eq!(found, expected);
        }
    }
}
