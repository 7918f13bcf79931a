//! Approved requests for the signers of Kubernetes get a certificate of the cluster's CA.

use super::{
    APPROVED, DENIED, FAILED, SigningAuthority, WORKERS, authority::Validity, has, is_true, issued, request,
    request::CertificateRequest, signer, usage,
};
use crate::{Settings, status};
use k8s_openapi::{
    ByteString,
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};
use operator::{Context, Controller, Failure, Key, Next, Timestamp, World, all};
use std::sync::Arc;

pub(crate) fn controller(settings: &Settings) -> Option<Controller> {
    let others = settings.signing_authority.clone()?;
    let kubelet_serving = settings.kubelet_serving_authority.clone().unwrap_or_else(|| Arc::clone(&others));
    let controller = Controller::new("csrsigning", all::<CertificateSigningRequest>())
        .workers(WORKERS)
        .reconcile(Authorities { kubelet_serving, others }, reconcile);
    Some(controller)
}

/// The CAs, by what they sign for.
#[derive(Clone)]
struct Authorities {
    kubelet_serving: Arc<SigningAuthority>,
    others: Arc<SigningAuthority>,
}

impl Authorities {
    fn of(&self, signer: &str) -> &SigningAuthority {
        if signer == signer::KUBELET_SERVING { &self.kubelet_serving } else { &self.others }
    }
}

/// What becomes of a request.
#[derive(Debug, PartialEq, Eq)]
enum SigningStep {
    /// Nothing: it is not approved, not for these signers, or has its certificate.
    Leave,
    Sign(Box<CertificateRequest>),
    /// It breaks a rule of its signer.
    Fail(String),
    /// It cannot be read, which no retry changes.
    Unreadable(&'static str),
}

async fn reconcile(context: Context<Authorities>, key: Key) -> Result<Next, Failure> {
    let Some(csr) = context.get::<CertificateSigningRequest>(&key)? else { return Ok(Next::Settled) };
    let mut changed = csr.status.clone().unwrap_or_default();
    match plan(&csr) {
        SigningStep::Leave => return Ok(Next::Settled),
        SigningStep::Unreadable(problem) => {
            return Err(Failure::terminal("Unreadable", format!("unable to parse csr: {problem}")));
        }
        SigningStep::Fail(message) => {
            let now = Time(context.wall());
            changed.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
                type_: FAILED.to_owned(),
                status: "True".to_owned(),
                reason: Some("SignerValidationFailure".to_owned()),
                message: Some(message),
                last_update_time: Some(now),
                last_transition_time: None,
            });
        }
        SigningStep::Sign(request) => {
            let authority = context.state().of(&csr.spec.signer_name);
            let pem = sign(authority, &csr, &request, context.world(), context.wall())?;
            changed.certificate = Some(ByteString(pem.into_bytes()));
        }
    }
    status::replace(&context.cluster(), &*csr, &changed).await?;
    Ok(Next::Settled)
}

fn plan(csr: &CertificateSigningRequest) -> SigningStep {
    let is_approved = has(csr, APPROVED) && !has(csr, DENIED);
    if !issued(csr).is_empty() || !is_approved || is_true(csr, FAILED) {
        return SigningStep::Leave;
    }
    let signer = csr.spec.signer_name.as_str();
    let request = match request::parse(&csr.spec.request.0) {
        Ok(request) => request,
        // Other signers may read it.
        Err(_) if signer::check(signer, &CertificateRequest::default(), &[]).is_none() => {
            return SigningStep::Leave;
        }
        Err(problem) => return SigningStep::Unreadable(problem),
    };
    match signer::check(signer, &request, csr.spec.usages.as_deref().unwrap_or_default()) {
        None => SigningStep::Leave,
        Some(Ok(())) => SigningStep::Sign(Box::new(request)),
        Some(Err(problem)) => SigningStep::Fail(problem),
    }
}

/// The certificate as PEM.
fn sign(
    authority: &SigningAuthority,
    csr: &CertificateSigningRequest,
    request: &CertificateRequest,
    world: &World,
    now: Timestamp,
) -> Result<String, Failure> {
    let validity = Validity::of(csr.spec.expiration_seconds, now, authority.not_after());
    let validity = validity.ok_or_else(|| {
        let message = format!("the signer has expired: NotAfter={}", authority.not_after());
        Failure::blocked("SignerExpired", message)
    })?;
    let usages = usage::parse(csr.spec.usages.as_deref().unwrap_or_default());
    let serial = (u128::from(world.draw()) << u64::BITS) | u128::from(world.draw());
    let der = authority.sign(request, &usages, validity, serial);
    let der = der.ok_or_else(|| Failure::transient("the key of the CA does not sign"))?;
    Ok(pem(&der))
}

fn pem(der: &[u8]) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD};
    const LINE: usize = 64;
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        (0..text.len()).step_by(LINE).map(|at| &text[at..text.len().min(at + LINE)]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::json;

    #[test]
    fn only_approved_requests_for_known_signers_are_signed() {
        let pem =
            CertificateParams::default().serialize_request(&KeyPair::generate().unwrap()).unwrap().pem();
        let pem = ByteString(pem.unwrap().into_bytes());
        let unreadable = ByteString(b"?".to_vec());
        let client = "kubernetes.io/kube-apiserver-client";
        let decided = |types: &[&str]| {
            let conditions: Vec<_> = types.iter().map(|it| json!({"type": it, "status": "True"})).collect();
            json!({ "conditions": conditions })
        };
        let certificate = json!({"certificate": ByteString(b"x".to_vec()), "conditions": decided(&["Approved"])["conditions"]});
        for (signer, request, usage, status, expected) in [
            (client, &pem, "client auth", decided(&["Approved"]), "sign"),
            (client, &pem, "client auth", decided(&[]), "leave"),
            (client, &pem, "client auth", decided(&["Denied"]), "leave"),
            (client, &pem, "client auth", decided(&["Approved", "Denied"]), "leave"),
            (client, &pem, "client auth", decided(&["Approved", "Failed"]), "leave"),
            (client, &pem, "client auth", certificate, "leave"),
            (client, &pem, "server auth", decided(&["Approved"]), "fail"),
            ("example.com/mine", &pem, "client auth", decided(&["Approved"]), "leave"),
            ("example.com/mine", &unreadable, "client auth", decided(&["Approved"]), "leave"),
            (client, &unreadable, "client auth", decided(&["Approved"]), "unreadable"),
        ] {
            let spec = json!({"request": request, "signerName": signer, "usages": [usage]});
            let csr = serde_json::from_value(json!({"spec": spec, "status": status})).unwrap();
            let step = match plan(&csr) {
                SigningStep::Leave => "leave",
                SigningStep::Sign(_) => "sign",
                SigningStep::Fail(_) => "fail",
                SigningStep::Unreadable(_) => "unreadable",
            };
            assert_eq!(step, expected, "{signer} {usage} {status}");
        }
    }
}
