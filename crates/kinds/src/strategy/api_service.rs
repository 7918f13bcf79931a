//! An API service without a service behind it is served here, and so is available.

use serde_json::json;

use super::Circumstances;
use crate::defaults::member::Members;

pub(super) fn create(service: &mut Members, with: &Circumstances<'_>) {
    let spec = service.get("spec");
    if spec.is_some_and(|spec| spec.get("service").is_some()) {
        return;
    }
    let condition = json!({
        "type": "Available",
        "status": "True",
        "lastTransitionTime": with.now.to_string(),
        "reason": "Local",
        "message": "Local APIServices are always available",
    });
    service.insert("status".to_owned(), json!({"conditions": [condition]}));
}
