//! LeaseCandidate: who would like to hold a lease. It has rules although no version of it is served.

use api::field::ErrorList;
use api::name::NameRule;

use super::GROUP;
use super::lease::check_strategy;
use crate::built_in::BuiltIn;
use crate::validate::at::At;
use crate::validate::validation::{Metadata, UpdateChecks, Validation};

pub(crate) static LEASE_CANDIDATE: BuiltIn =
    BuiltIn::new(GROUP, "LeaseCandidate", "").older_versions(&["v1alpha2", "v1beta1"]).validation(
        Validation::new(check)
            .update(UpdateChecks::BODY.compare(check_change))
            .metadata(Metadata::WithAnyFinalizer(NameRule::PathSegment)),
    );

fn check(candidate: &At<'_, '_>, errors: &mut ErrorList) {
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

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("spec").field("leaseName").immutable(errors, &old.field("spec").field("leaseName"));
}
