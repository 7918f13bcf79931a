//! PersistentVolumeClaimResize: a claim may grow only if its StorageClass allows expansion.

use super::{Operation, Review};
use crate::{lookup, refusal::Refusal};
use api::quantity::Quantity;
use serde_json::Value;

pub(super) async fn check(review: &Review<'_>) -> Result<(), Refusal> {
    let Some(old) = review.old.filter(|_| review.operation == Operation::Update) else { return Ok(()) };
    if !review.is_on("", "persistentvolumeclaims") || size(&review.object) <= size(old) {
        return Ok(());
    }
    if old["status"]["phase"] != "Bound" {
        return Err(review.forbidden("Only bound persistent volume claims can be expanded"));
    }
    let (now, before) = (class(&review.object), class(old));
    let class = match !now.is_empty() && now == before {
        true => {
            lookup::object(&review.call.inner, ("storage.k8s.io", "v1", "storageclasses"), "", now).await?
        }
        false => None,
    };
    if class.is_some_and(|class| class["allowVolumeExpansion"] == true) {
        return Ok(());
    }
    Err(review.forbidden(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
         resize",
    ))
}

fn size(claim: &Value) -> Option<Quantity> {
    claim["spec"]["resources"]["requests"]["storage"].as_str()?.parse().ok()
}

fn class(claim: &Value) -> &str {
    let older = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    older.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}
