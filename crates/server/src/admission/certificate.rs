//! CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest: who
//! may approve and sign for a signer, and which subjects are never signed.

use super::{AdmissionPlugin as P, Operation, Review};
use crate::{
    authorize::{self, Attributes, OnResource},
    refusal::Refusal,
};
use api::{go, object};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use x509_parser::{
    asn1_rs::{Any, Class, Tag},
    certification_request::X509CertificationRequest,
    pem::parse_x509_pem,
    prelude::FromDer,
    x509::AttributeTypeAndValue,
};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";
const BUNDLES: &str = "clustertrustbundles";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// The subject of a certificate request.
#[derive(Debug, Default)]
pub(super) struct CertificateSubject {
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
}

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    if review.call.served.is(GROUP, REQUESTS) {
        match (review.call.target.subresource.as_str(), review.operation, review.old) {
            ("approval", Operation::Update, Some(old)) if review.runs(P::CertificateApproval) => {
                demand(review, "approve", signer(old), "approve requests with").await?;
            }
            ("status", Operation::Update, Some(old))
                if review.runs(P::CertificateSigning) && is_signed(&review.object, old) =>
            {
                demand(review, "sign", signer(old), "sign requests with").await?;
            }
            ("", Operation::Create, _) if review.runs(P::CertificateSubjectRestriction) => {
                check_subject(review)?
            }
            _ => {}
        }
    }
    let is_claim = match (review.operation, review.old) {
        _ if !review.runs(P::ClusterTrustBundleAttest) => false,
        (Operation::Create, _) => true,
        (Operation::Update, Some(old)) => without_links(&review.object) != without_links(old),
        _ => false,
    };
    if review.call.served.is(GROUP, BUNDLES) && is_claim && !signer(&review.object).is_empty() {
        demand(review, "attest", signer(&review.object), "attest for").await?;
    }
    Ok(())
}

fn signer(object: &Value) -> &str {
    object["spec"]["signerName"].as_str().unwrap_or_default()
}

fn is_signed(new: &Value, old: &Value) -> bool {
    ["certificate", "conditions"].iter().any(|field| new["status"][field] != old["status"][field])
}

/// Kubernetes: changes by the garbage collector are always allowed.
fn without_links(object: &Value) -> Value {
    let mut object = object.clone();
    for field in ["ownerReferences", "finalizers", "managedFields", "resourceVersion", "generation"] {
        object::metadata_mut(&mut object).remove(field);
    }
    object
}

/// Requires a verb on the signer or on all signers of its domain.
async fn demand(review: &Review<'_>, verb: &str, signer: &str, what: &str) -> Result<(), Refusal> {
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    for name in [signer, &domain] {
        let wanted = OnResource { verb, group: GROUP, resource: "signers", name, ..OnResource::default() };
        let caller = review.call.caller();
        if authorize::allows(&review.call.inner, caller, &Attributes::Resource(wanted)).await?.is_allowed {
            return Ok(());
        }
    }
    Err(review.forbidden(format!("user not permitted to {what} signerName {}", go::quote(signer))))
}

/// Rejects client certificates for system:masters.
fn check_subject(review: &Review<'_>) -> Result<(), Refusal> {
    if signer(&review.object) != CLIENT_SIGNER {
        return Ok(());
    }
    let subject = subject(&review.object);
    let subject = subject.map_err(|problem| review.forbidden(format!("failed to parse CSR: {problem}")))?;
    if subject.organizations.iter().any(|group| group == authorize::MASTERS) {
        let text = format!("use of {CLIENT_SIGNER} signer with system:masters group is not allowed");
        return Err(review.forbidden(text));
    }
    Ok(())
}

/// Parses the subject of a request.
pub(super) fn subject(request: &Value) -> Result<CertificateSubject, &'static str> {
    const NOT_PEM: &str = "PEM block type must be CERTIFICATE REQUEST";
    let text = request["spec"]["request"].as_str().unwrap_or_default();
    let text = STANDARD.decode(text).map_err(|_| NOT_PEM)?;
    let (_, pem) = parse_x509_pem(&text).map_err(|_| NOT_PEM)?;
    if pem.label != "CERTIFICATE REQUEST" {
        return Err(NOT_PEM);
    }
    let parsed = X509CertificationRequest::from_der(&pem.contents);
    let (rest, parsed) = parsed.map_err(|_| "asn1: structure error: the request is not well-formed")?;
    if !rest.is_empty() {
        return Err("asn1: syntax error: trailing data");
    }
    let name = &parsed.certification_request_info.subject;
    if name.iter_attributes().any(has_padded_oid) {
        return Err("asn1: structure error: base 128 integer is not minimally encoded");
    }
    let text = |attribute: &AttributeTypeAndValue<'_>| text_of(attribute.attr_value());
    let common_names: Vec<_> = name.iter_common_name().map(text).collect::<Result<_, _>>()?;
    Ok(CertificateSubject {
        common_name: common_names.last().cloned().unwrap_or_default(),
        organizations: name.iter_organization().map(text).collect::<Result<_, _>>()?,
    })
}

/// Whether an OID is encoded with leading zeros: this parser would not recognise it, a signer might.
fn has_padded_oid(attribute: &AttributeTypeAndValue<'_>) -> bool {
    let bytes = attribute.attr_type().as_bytes();
    let starts = std::iter::once(true).chain(bytes.iter().map(|byte| byte & 0x80 == 0));
    starts.zip(bytes).any(|(is_start, byte)| is_start && *byte == 0x80)
}

/// The text of a name, in each string type that Go reads. A signer might read a type that this parser does
/// not.
fn text_of(value: &Any<'_>) -> Result<String, &'static str> {
    const UNREADABLE: &str = "asn1: syntax error: the subject holds a text that cannot be read";
    if value.header.is_constructed() || value.class() != Class::Universal {
        return Err(UNREADABLE);
    }
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::NumericString | Tag::Ia5String | Tag::T61String => {
            std::str::from_utf8(value.data).map(str::to_owned).map_err(|_| UNREADABLE)
        }
        Tag::BmpString => {
            let (units, rest) = value.data.as_chunks::<2>();
            let mut units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
            // Go: strips a trailing NUL.
            units.pop_if(|last| *last == 0);
            String::from_utf16(&units).ok().filter(|_| rest.is_empty()).ok_or(UNREADABLE)
        }
        _ => Err(UNREADABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair};
    use serde_json::json;

    /// A request with the organization `orgn`, with some bytes replaced.
    fn with_organization(tag: u8, content: &[u8]) -> Value {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "me");
        params.distinguished_name.push(DnType::OrganizationName, "o".repeat(content.len()));
        let request = params.serialize_request(&KeyPair::generate().unwrap()).unwrap();
        let mut der = request.der().to_vec();
        let text = "o".repeat(content.len());
        let at = der.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        der[at..at + content.len()].copy_from_slice(content);
        der[at - 2] = tag;
        as_request(&der)
    }

    fn as_request(der: &[u8]) -> Value {
        let pem = format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
            STANDARD.encode(der)
        );
        json!({"spec": {"request": STANDARD.encode(pem)}})
    }

    #[test]
    fn organizations_in_unknown_string_types_are_rejected() {
        let plain = b"system:masters".to_vec();
        let wide: Vec<u8> = plain.iter().flat_map(|byte| [0, *byte]).collect();
        let ended = [wide.as_slice(), &[0, 0]].concat();
        let wider: Vec<u8> = plain.iter().flat_map(|byte| [0, 0, 0, *byte]).collect();
        for (what, tag, content, is_read) in [
            ("UTF8String", 12, &plain, true),
            ("NumericString", 18, &plain, true),
            ("PrintableString", 19, &plain, true),
            ("T61String", 20, &plain, true),
            ("VideotexString", 21, &plain, false),
            ("IA5String", 22, &plain, true),
            ("GraphicString", 25, &plain, false),
            ("VisibleString", 26, &plain, false),
            ("GeneralString", 27, &plain, false),
            ("UniversalString", 28, &wider, false),
            ("BMPString", 30, &wide, true),
            ("BMPString that ends in zero", 30, &ended, true),
            ("BMPString of odd length", 30, &wide[1..].to_vec(), false),
            ("OctetString", 4, &plain, false),
            ("UTF8String in pieces", 0x2c, &plain, false),
            ("an unknown string type", 0x8c, &plain, false),
            ("UTF8String that is none", 12, &vec![0xff; 14], false),
        ] {
            let found = subject(&with_organization(tag, content)).map(|subject| subject.organizations);
            match is_read {
                true => assert_eq!(found, Ok(vec!["system:masters".to_owned()]), "{what}"),
                false => assert!(found.is_err(), "{what}: {found:?}"),
            }
        }
    }

    #[test]
    fn ambiguously_encoded_requests_are_rejected() {
        let request = with_organization(12, b"devs");
        let text = STANDARD.decode(request["spec"]["request"].as_str().unwrap()).unwrap();
        let (_, pem) = parse_x509_pem(&text).unwrap();
        assert!(subject(&request).is_ok());
        let more = [pem.contents.as_slice(), b"\0\0"].concat();
        assert!(subject(&as_request(&more)).is_err(), "bytes behind the request");
        // Same length, other encoding: 2.5.4.10 becomes 2.4.10 with a leading zero before the last number.
        let mut odd = pem.contents.clone();
        let at = odd.windows(5).position(|it| it == [0x06, 0x03, 0x55, 0x04, 0x0a]).unwrap();
        odd[at + 3] = 0x80;
        assert!(subject(&as_request(&odd)).is_err(), "a number with leading zeros");
    }
}
