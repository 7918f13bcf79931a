//! ResourceClaimTemplate: the claims that pods get each for itself.

use api::field::ErrorList;

use super::GROUP;
use super::resource_claim::{check_devices, check_unchanged};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, NAME};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::metadata;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static RESOURCE_CLAIM_TEMPLATE: BuiltIn =
    BuiltIn::new(GROUP, "ResourceClaimTemplate", "resourceclaimtemplates")
        .older_versions(&["v1beta1", "v1beta2"])
        .strategy(Strategy::PLAIN.return_deleted_object())
        .validation(Validation::new(check).update(UpdateChecks::AS_NEW.compare(check_change)))
        .columns(&[NAME, AGE]);

fn check(template: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = template.field("spec");
    metadata::template(&spec.field("metadata"), errors);
    let claim = spec.field("spec");
    check_devices(&claim.field("devices"), errors);
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check_unchanged(new, old, "io.k8s.api.resource.v1.ResourceClaimTemplateSpec", errors);
}
