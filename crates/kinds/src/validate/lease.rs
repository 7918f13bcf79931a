//! Leases, and the candidates for them.

use api::field::{Error, ErrorList};
use api::name::Format;

use super::at::At;

pub(super) fn body(lease: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = lease.field("spec");
    let duration = spec.field("leaseDurationSeconds");
    if duration.is_set() {
        duration.positive(errors);
    }
    spec.field("leaseTransitions").not_negative(errors);
    let strategy = spec.field("strategy");
    if strategy.is_set() {
        check_strategy(&strategy, errors);
    }
    let preferred = spec.field("preferredHolder");
    if !preferred.text().is_empty() && strategy.text().is_empty() {
        preferred.forbidden(errors, "may only be specified if `strategy` is defined");
    }
}

/// Kubernetes: the name of the field appears twice in the path.
fn check_strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
    let path = strategy.path().child("strategy");
    if strategy.text().contains('/') {
        errors.extend(Format::QualifiedName.check(&path, strategy.text()));
    } else if strategy.text() != "OldestEmulationVersion" {
        errors.push(Error::not_supported(&path, strategy.text(), ["OldestEmulationVersion"]));
    }
}

pub(super) fn candidate(candidate: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = candidate.field("spec");
    for field in ["leaseName", "binaryVersion"] {
        if spec.text_of(field).is_empty() {
            spec.field(field).required(errors, "");
        }
    }
    let strategy = spec.field("strategy");
    if strategy.text().is_empty() {
        strategy.required(errors, "");
        return;
    }
    if strategy.text() == "OldestEmulationVersion" && spec.text_of("emulationVersion").is_empty() {
        let problem = "must be specified when `strategy` is 'OldestEmulationVersion'";
        spec.field("emulationVersion").required(errors, problem);
    }
    check_strategy(&strategy, errors);
}

pub(super) fn candidate_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("spec").field("leaseName").immutable(errors, &old.field("spec").field("leaseName"));
}
