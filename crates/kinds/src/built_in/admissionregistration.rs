//! The kinds of `admissionregistration.k8s.io`.

pub(crate) mod admission_policy;
pub(crate) mod admission_policy_binding;
pub(crate) mod webhook_configuration;

use crate::validate::at::At;
use serde_json::Value;

const GROUP: &str = "admissionregistration.k8s.io";

// Kubernetes: names of configurations that are read from files.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Warns of a name that only configurations from files may have.
fn warn_of_static_name(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    if api::object::name(object.value()).ends_with(STATIC_SUFFIX) {
        warnings.push(format!(
            "metadata.name: names ending with \"{STATIC_SUFFIX}\" are reserved for static manifest-based \
             configurations and cannot be managed via the API"
        ));
    }
}
