//! Requests are deleted an hour after the decision, and after a day without one.

use super::{APPROVED, DENIED, FAILED, conditions, issued};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::DeleteParams;
use operator::{Context, Controller, Failure, Key, Next, all, retry};
use x509_parser::pem::parse_x509_pem;

// Kubernetes: how long requests are kept.
const DECIDED: SignedDuration = SignedDuration::from_hours(1);
const PENDING: SignedDuration = SignedDuration::from_hours(24);

pub(crate) fn controller() -> Controller {
    Controller::new("csrcleaner", all::<CertificateSigningRequest>()).reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(csr) = context.get::<CertificateSigningRequest>(&key)? else { return Ok(Next::Settled) };
    let Some(due) = due(&csr) else { return Ok(Next::Settled) };
    let left = due.duration_since(context.wall());
    if let Some(left) = std::time::Duration::try_from(left).ok().filter(|left| !left.is_zero()) {
        return Ok(Next::CheckAfter(left));
    }
    match context.cluster::<CertificateSigningRequest>().delete(key.name(), &DeleteParams::default()).await {
        Err(error) if !retry::is_missing(&error) => Err(error.into()),
        _ => Ok(Next::Settled),
    }
}

/// When a request is to be deleted.
fn due(csr: &CertificateSigningRequest) -> Option<Timestamp> {
    let conditions = conditions(csr);
    let is_issued = !issued(csr).is_empty();
    let after_condition = conditions.iter().filter_map(|condition| {
        let kept = match condition.type_.as_str() {
            APPROVED if !is_issued => PENDING,
            APPROVED | DENIED | FAILED => DECIDED,
            _ => return None,
        };
        later(condition.last_update_time.as_ref()?.0, kept)
    });
    let created = csr.metadata.creation_timestamp.as_ref().filter(|_| conditions.is_empty());
    let is_approved = conditions.iter().any(|condition| condition.type_ == APPROVED);
    let expires = if is_approved { expiry(issued(csr)) } else { None };
    after_condition.chain(created.and_then(|created| later(created.0, PENDING))).chain(expires).min()
}

/// `None` beyond the end of time: clients choose the times of conditions.
fn later(time: Timestamp, by: SignedDuration) -> Option<Timestamp> {
    time.checked_add(by).ok()
}

/// When a certificate in PEM expires.
fn expiry(certificate: &[u8]) -> Option<Timestamp> {
    let (_, block) = parse_x509_pem(certificate).ok()?;
    let certificate = block.parse_x509().ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use rcgen::{CertificateParams, KeyPair};
    use serde_json::json;

    #[test]
    fn a_request_is_kept_for_an_hour_or_a_day() {
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2026, 1, 2);
        let expired = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        for (decision, certificate, expected) in [
            (None, None, Some("2026-01-02T10:00:00Z")),
            (Some("Approved"), None, Some("2026-01-03T10:00:00Z")),
            (Some("Approved"), Some("?"), Some("2026-01-02T11:00:00Z")),
            (Some("Approved"), Some(expired.as_str()), Some("2026-01-02T00:00:00Z")),
            (Some("Denied"), None, Some("2026-01-02T11:00:00Z")),
            (Some("Failed"), None, Some("2026-01-02T11:00:00Z")),
            (Some("Seen"), None, None),
        ] {
            let conditions: Vec<_> = decision
                .iter()
                .map(|it| json!({"type": it, "status": "True", "lastUpdateTime": "2026-01-02T10:00:00Z"}))
                .collect();
            let certificate = certificate.map(|it| ByteString(it.as_bytes().to_vec()));
            let csr = json!({"metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"},
                "spec": {"request": ByteString(Vec::new()), "signerName": "a.io/b"},
                "status": {"conditions": conditions, "certificate": certificate}});
            let csr = serde_json::from_value(csr).unwrap();
            assert_eq!(due(&csr).map(|due| due.to_string()).as_deref(), expected, "{decision:?}");
        }
    }
}
