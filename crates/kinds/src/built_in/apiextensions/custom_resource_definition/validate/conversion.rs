//! How objects get from one version to another: not at all, or by a webhook.

use api::field::ErrorList;
use serde_json::Value;

use super::ca_bundle;
use super::leniency::Leniency;
use crate::built_in::admissionregistration::webhook_configuration::validate as webhook;
use crate::validate::at::At;

/// Versions of ConversionReview that a webhook may be asked in.
pub(super) const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

pub(super) fn check(conversion: &At<'_, '_>, leniency: &Leniency<'_>, errors: &mut ErrorList) {
    if !conversion.is_set() {
        return;
    }
    conversion.field("strategy").required_one_of(errors, &["None", "Webhook"]);
    let webhook = conversion.field("webhook");
    // Kubernetes: inside, both lie one step higher, and so do their errors.
    let up = |field: &str, shown| At::new(webhook.field(field).value(), conversion.path().child(shown));
    let client = up("clientConfig", "webhookClientConfig");
    let versions = up("conversionReviewVersions", "conversionReviewVersions");
    if conversion.text_of("strategy") == "Webhook" {
        if client.is_set() {
            webhook::client(&client, errors);
            check_ca_bundle(&client.field("caBundle"), leniency, errors);
        } else {
            client.required(errors, "required when strategy is set to Webhook");
        }
        check_review_versions(&versions, leniency, errors);
        return;
    }
    for at in [&client, &versions] {
        if at.is_set() && !at.value().as_array().is_some_and(Vec::is_empty) {
            at.forbidden(errors, "should not be set when strategy is not set to Webhook");
        }
    }
}

fn check_ca_bundle(bundle: &At<'_, '_>, leniency: &Leniency<'_>, errors: &mut ErrorList) {
    if leniency.invalid_ca_bundle {
        return;
    }
    if let Some(problem) = ca_bundle::problem(bundle.text()) {
        bundle.invalid(errors, problem);
    }
}

fn check_review_versions(versions: &At<'_, '_>, leniency: &Leniency<'_>, errors: &mut ErrorList) {
    if versions.is_empty() {
        return versions.required(errors, "");
    }
    webhook::each_version_once(versions, errors);
    if !leniency.any_review_version && !is_recognized(versions.value()) {
        let problem = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        versions.invalid(errors, problem);
    }
}

/// Whether one of them is known.
pub(super) fn is_recognized(versions: &Value) -> bool {
    let mut versions = versions.as_array().into_iter().flatten().filter_map(Value::as_str);
    versions.any(|version| REVIEW_VERSIONS.contains(&version))
}
