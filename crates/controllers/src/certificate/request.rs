//! Reads a certificate request in PEM: its subject, its names, and the public key that it proves to hold.

use super::subject::RequestSubject;
use x509_parser::{
    certification_request::X509CertificationRequest,
    extensions::{GeneralName, ParsedExtension},
    pem::parse_x509_pem,
    prelude::FromDer,
};

/// What a certificate is asked for. All of it comes from the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CertificateRequest {
    pub(super) subject: RequestSubject,
    pub(super) names: AlternativeNames,
    /// SubjectPublicKeyInfo, as DER.
    pub(super) public_key: Vec<u8>,
}

/// The kinds of alternative names that Kubernetes signs; requests for others are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AlternativeNames {
    pub(super) dns: Vec<String>,
    pub(super) emails: Vec<String>,
    /// 4 or 16 bytes.
    pub(super) addresses: Vec<Vec<u8>>,
    pub(super) uris: Vec<String>,
}

/// Parses a request and verifies that it is signed with the key that it names.
pub(super) fn parse(pem: &[u8]) -> Result<CertificateRequest, &'static str> {
    const NOT_PEM: &str = "PEM block type must be CERTIFICATE REQUEST";
    let (_, block) = parse_x509_pem(pem).map_err(|_| NOT_PEM)?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err(NOT_PEM);
    }
    let parsed = X509CertificationRequest::from_der(&block.contents);
    let (rest, parsed) = parsed.map_err(|_| "the request is not well-formed")?;
    if !rest.is_empty() {
        return Err("bytes follow the request");
    }
    parsed.verify_signature().map_err(|_| "unable to verify certificate request signature")?;
    let info = &parsed.certification_request_info;
    Ok(CertificateRequest {
        subject: RequestSubject::read(&info.subject)?,
        names: alternative_names(&parsed)?,
        public_key: info.subject_pki.raw.to_vec(),
    })
}

fn alternative_names(request: &X509CertificationRequest<'_>) -> Result<AlternativeNames, &'static str> {
    let mut names = AlternativeNames::default();
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(extension) = extension else { continue };
        for name in &extension.general_names {
            match name {
                GeneralName::DNSName(name) => names.dns.push((*name).to_owned()),
                GeneralName::RFC822Name(name) => names.emails.push((*name).to_owned()),
                GeneralName::URI(uri) => names.uris.push((*uri).to_owned()),
                GeneralName::IPAddress(address) if matches!(address.len(), 4 | 16) => {
                    names.addresses.push(address.to_vec());
                }
                GeneralName::IPAddress(_) | GeneralName::Invalid(..) => {
                    return Err("an alternative name is not well-formed");
                }
                _ => {}
            }
        }
    }
    Ok(names)
}

impl AlternativeNames {
    pub(super) fn is_empty(&self) -> bool {
        let AlternativeNames { dns, emails, addresses, uris } = self;
        dns.is_empty() && emails.is_empty() && addresses.is_empty() && uris.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    #[test]
    fn a_request_says_who_asks_for_which_names() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["node-1".to_owned(), "10.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "system:node:node-1");
        params.distinguished_name.push(DnType::OrganizationName, "system:nodes");
        params.subject_alt_names.push(SanType::URI("spiffe://x".try_into().unwrap()));
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = parse(pem.as_bytes()).unwrap();
        assert_eq!(request.subject.common_name(), "system:node:node-1");
        assert_eq!(request.subject.organizations(), ["system:nodes"]);
        let names = AlternativeNames {
            dns: vec!["node-1".to_owned()],
            addresses: vec![vec![10, 0, 0, 1]],
            uris: vec!["spiffe://x".to_owned()],
            emails: Vec::new(),
        };
        assert_eq!(request.names, names);
    }

    #[test]
    fn what_is_not_a_signed_request_is_refused() {
        let key = KeyPair::generate().unwrap();
        let request = CertificateParams::default().serialize_request(&key).unwrap();
        let mut forged = request.der().to_vec();
        let last = forged.len() - 1;
        forged[last] ^= 1;
        let pem = |label: &str, der: &[u8]| {
            use base64::{Engine, engine::general_purpose::STANDARD};
            format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
        };
        for (text, expected) in [
            (String::new(), "PEM block type must be CERTIFICATE REQUEST"),
            (pem("CERTIFICATE", request.der()), "PEM block type must be CERTIFICATE REQUEST"),
            (pem("CERTIFICATE REQUEST", b"text"), "the request is not well-formed"),
            (pem("CERTIFICATE REQUEST", &[request.der(), &[0][..]].concat()), "bytes follow the request"),
            (pem("CERTIFICATE REQUEST", &forged), "unable to verify certificate request signature"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), expected);
        }
    }
}
