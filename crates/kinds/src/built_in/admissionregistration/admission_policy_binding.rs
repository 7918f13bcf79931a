//! ValidatingAdmissionPolicyBinding and MutatingAdmissionPolicyBinding: where a policy holds, and with which parameters.

use api::field::ErrorList;
use api::name::{Format, NameRule};
use serde_json::Value;

use super::admission_policy::{check_match, check_mutating_operations};
use super::{GROUP, warn_of_static_name};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, TableColumn, string};
use crate::cells::row::{UNSET, text};
use crate::cells::selector::debug;
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::taken::Taken;
use crate::validate::validation::{Metadata, UpdateChecks, Validation};

pub(crate) static VALIDATING_ADMISSION_POLICY_BINDING: BuiltIn =
    BuiltIn::new(GROUP, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
        .older_versions(&["v1alpha1", "v1beta1"])
        .strategy(Strategy::PLAIN.requires_resource_version().counts_generation_of(SPEC))
        .validation(
            Validation::new(check_validating)
                .update(UpdateChecks::ONLY_AS_NEW)
                .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain)),
        )
        .warnings(warn_of_static_name)
        .columns(COLUMNS);

pub(crate) static MUTATING_ADMISSION_POLICY_BINDING: BuiltIn =
    BuiltIn::new(GROUP, "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings")
        .older_versions(&["v1alpha1", "v1beta1"])
        .strategy(Strategy::PLAIN.requires_resource_version().counts_generation_of(SPEC))
        .validation(
            Validation::new(check_mutating)
                .update(UpdateChecks::ONLY_AS_NEW)
                .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain)),
        )
        .warnings(warn_of_static_name)
        .columns(COLUMNS);

const COLUMNS: &[TableColumn] = &[
    NAME,
    string("PolicyName", Cell::Text("/spec/policyName")),
    string("ParamRef", Cell::Computed(|it| parameter(it.at("/spec/paramRef")).into())),
    AGE,
];

fn check_validating(binding: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = binding.field("spec");
    check_any(&spec, errors);
    let actions = spec.field("validationActions");
    let mut taken = Taken::default();
    for action in actions.items() {
        action.one_of(errors, &["Audit", "Deny", "Warn"]);
        if !taken.add(action.value()) {
            action.duplicate(errors);
        }
    }
    let has = |wanted: &str| actions.items().any(|action| action.text() == wanted);
    if has("Deny") && has("Warn") {
        let problem = "must not contain both Deny and Warn (repeating the same validation failure information in \
            the API response and headers serves no purpose)";
        actions.invalid(errors, problem);
    }
    if actions.is_empty() {
        actions.required(errors, "at least one validation action is required");
    }
}

fn check_mutating(binding: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = binding.field("spec");
    check_any(&spec, errors);
    check_mutating_operations(&spec, "matchResources", errors);
}

fn check_any(spec: &At<'_, '_>, errors: &mut ErrorList) {
    const ONE: &str = "name and selector are mutually exclusive";
    spec.field("policyName").required_format(errors, Format::Dns1123Subdomain);
    let reference = spec.field("paramRef");
    if reference.is_set() {
        let (name, wanted) = (reference.field("name"), reference.field("selector"));
        if !name.text().is_empty() {
            name.is_format(errors, Format::PathSegment);
            if wanted.is_set() {
                name.forbidden(errors, ONE);
            }
        }
        selector::check(&wanted, errors);
        match (name.text().is_empty(), wanted.is_set()) {
            (false, true) => wanted.forbidden(errors, ONE),
            (true, false) => reference.required(errors, "one of name or selector must be specified"),
            _ => {}
        }
        reference.field("parameterNotFoundAction").required_one_of(errors, &["Deny", "Allow"]);
    }
    let resources = spec.field("matchResources");
    if resources.is_set() {
        check_match(&resources, errors);
    }
}

fn parameter(reference: &Value) -> String {
    match (text(&reference["namespace"]), text(&reference["name"])) {
        (_, "") if reference["selector"].is_object() => debug(&reference["selector"]),
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}
