//! Lease: who holds a name, and until when.

use api::field::{Error, ErrorList};
use api::name::{Format, NameRule};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::validation::{Metadata, UpdateChecks, Validation};

pub(crate) static LEASE: BuiltIn = BuiltIn::new(GROUP, "Lease", "leases")
    .older_versions(&["v1beta1"])
    .strategy(
        Strategy::PLAIN
            .allow_create_on_update()
            .requires_resource_version()
            .disabled_fields(&[&["spec", "strategy"], &["spec", "preferredHolder"]]),
    )
    .validation(
        Validation::new(check)
            .update(UpdateChecks::BODY)
            .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain)),
    )
    .columns(&[NAME, string("Holder", Cell::Text("/spec/holderIdentity")), AGE]);

fn check(lease: &At<'_, '_>, errors: &mut ErrorList) {
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
pub(crate) fn check_strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
    let path = strategy.path().child("strategy");
    if strategy.text().contains('/') {
        errors.extend(Format::QualifiedName.check(&path, strategy.text()));
    } else if strategy.text() != "OldestEmulationVersion" {
        errors.push(Error::not_supported(&path, strategy.text(), ["OldestEmulationVersion"]));
    }
}
