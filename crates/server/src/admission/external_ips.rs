//! DenyServiceExternalIPs: no service gets an external address that it does not have already.

use super::{Operation, Review};
use crate::refusal::Refusal;
use serde_json::Value;

pub(super) fn check(review: &Review<'_>) -> Result<(), Refusal> {
    if review.operation == Operation::Delete || !review.is_on("", "services") {
        return Ok(());
    }
    let addresses = |service: &Value| service["spec"]["externalIPs"].as_array().cloned().unwrap_or_default();
    let before = review.old.map(addresses).unwrap_or_default();
    match addresses(&review.object).iter().all(|address| before.contains(address)) {
        true => Ok(()),
        // Kubernetes: its text.
        false => Err(review.forbidden("Use of external IPs is denied by admission control")),
    }
}
