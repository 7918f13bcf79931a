//! CertificateSigningRequests: usages, signers, and who may approve and fill them in. What the request itself says
//! is the signer's to judge.

use api::field::{Error, ErrorList};
use api::go;
use api::name::Format;

use crate::built_in::apiextensions::custom_resource_definition::validate::ca_bundle;
use crate::built_in::core::secret::decode_base64;
use crate::validate::at::At;
use crate::validate::taken::Taken;

const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
const MAX_DOMAIN_BYTES: usize = 253;
const MAX_SIGNER_BYTES: usize = 571;

pub(super) fn check(request: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = request.field("spec");
    let pem = spec.field("request");
    if ca_bundle::labels(&decode_base64(pem.text())).first().map(String::as_str)
        != Some("CERTIFICATE REQUEST")
    {
        pem.invalid(errors, "PEM block type must be CERTIFICATE REQUEST");
    }
    let usages = spec.field("usages");
    if usages.is_empty() {
        usages.required(errors, "");
    }
    for usage in usages.items() {
        usage.one_of(errors, USAGES);
    }
    let mut taken = Taken::default();
    for usage in usages.items() {
        if !taken.add(usage.value()) {
            usage.duplicate(errors);
        }
    }
    let signer = spec.field("signerName");
    if signer.text() == "kubernetes.io/legacy-unknown" {
        signer.invalid_text(errors, "the legacy signerName is not allowed via this API version");
    } else {
        signer_name(&signer, errors);
    }
    let expiration = spec.field("expirationSeconds");
    if expiration.is_set() && expiration.int() < 600 {
        let problem = "may not specify a duration less than 600 seconds (10 minutes)";
        expiration.invalid_int(errors, problem);
    }
    conditions(request, errors);
}

/// `example.com/signer-name`.
fn signer_name(signer: &At<'_, '_>, errors: &mut ErrorList) {
    if signer.text().is_empty() {
        return signer.required(errors, "");
    }
    let [domain, path] = signer.text().split('/').collect::<Vec<_>>()[..] else {
        let problem = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return signer.invalid_text(errors, problem);
    };
    if domain.len() > MAX_DOMAIN_BYTES {
        errors.push(Error::too_long(signer.path(), MAX_DOMAIN_BYTES));
    }
    labels(signer, domain, Format::Dns1123Label, errors);
    if !domain.contains('.') {
        let problem = "should be a domain with at least two segments separated by dots";
        signer.invalid_as(errors, domain, problem);
    }
    labels(signer, path, Format::Dns1123Subdomain, errors);
    if signer.text().len() > MAX_SIGNER_BYTES {
        errors.push(Error::too_long(signer.path(), MAX_SIGNER_BYTES));
    }
}

/// The first that is wrong says it all.
fn labels(signer: &At<'_, '_>, segment: &str, format: Format, errors: &mut ErrorList) {
    let wrong = segment.split('.').map(|label| (label, format.problems(label)));
    let first = wrong.into_iter().find(|(_, problems)| !problems.is_empty());
    for (label, problem) in
        first.iter().flat_map(|(label, problems)| problems.iter().map(move |it| (label, it)))
    {
        signer.invalid_as(errors, segment, format!("validating label {}: {problem}", go::quote(label)));
    }
}

fn conditions(request: &At<'_, '_>, errors: &mut ErrorList) {
    let status = request.field("status");
    let conditions = status.field("conditions");
    let mut earlier = Taken::default();
    for condition in conditions.items() {
        let (sort, status) = (condition.field("type"), condition.field("status"));
        if sort.text().is_empty() {
            sort.required(errors, "");
        }
        let is_final = matches!(sort.text(), "Approved" | "Denied" | "Failed");
        status.required_one_of(errors, if is_final { &["True"] } else { &["False", "True", "Unknown"] });
        let opposite = match sort.text() {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !opposite.is_empty() && earlier.contains(opposite) {
            let problem = "Approved and Denied conditions are mutually exclusive";
            conditions.invalid_as(errors, sort.text(), problem);
        }
        if !earlier.add(sort.text()) {
            sort.duplicate(errors);
        }
    }
}

pub(super) fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    compare(new, old, false, false, errors);
}

pub(super) fn check_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check(new, errors);
    compare(new, old, false, true, errors);
}

pub(super) fn check_approval(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check(new, errors);
    compare(new, old, true, false, errors);
}

fn compare(new: &At<'_, '_>, old: &At<'_, '_>, may_approve: bool, may_fill: bool, errors: &mut ErrorList) {
    let (status, before) = (new.field("status"), old.field("status"));
    let conditions = status.field("conditions");
    let of = |status: &At<'_, '_>, sort: &str| {
        let conditions = status.field("conditions");
        conditions.list().iter().filter(|it| it["type"] == sort).cloned().collect::<Vec<_>>()
    };
    for sort in ["Approved", "Denied", "Failed"] {
        if of(&status, sort).len() < of(&before, sort).len() {
            let problem = format!("updates may not remove a condition of type {}", go::quote(sort));
            conditions.forbidden(errors, problem);
        }
    }
    for sort in ["Approved", "Denied"].into_iter().filter(|_| !may_approve) {
        let (now, before) = (of(&status, sort), of(&before, sort));
        if now.len() > before.len() {
            let problem = format!("updates may not add a condition of type {}", go::quote(sort));
            conditions.forbidden(errors, problem);
        } else if now.len() == before.len() && now != before {
            let problem = format!("updates may not modify a condition of type {}\n", go::quote(sort));
            conditions.forbidden(errors, problem);
        }
    }
    let certificate = status.field("certificate");
    if certificate.value() != before.field("certificate").value() {
        if !may_fill {
            certificate.forbidden(errors, "updates may not set certificate content");
        } else if !before.text_of("certificate").is_empty() {
            certificate.forbidden(errors, "updates may not modify existing certificate content");
        }
        // Kubernetes: what stands there already may be anything.
        if let Some(problem) = ca_bundle::chain_problem(certificate.text()) {
            certificate.invalid_as(errors, "<certificate data>", problem);
        }
    }
}
