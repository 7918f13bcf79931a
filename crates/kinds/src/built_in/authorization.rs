//! The kinds of `authorization.k8s.io`: questions about access that are answered and never stored.

use api::field::{BadValue, Error, ErrorList};
use api::name::Format;

use crate::built_in::BuiltIn;
use crate::validate::at::At;
use crate::validate::internal;
use crate::validate::validation::{Metadata, Validation};

const GROUP: &str = "authorization.k8s.io";

pub(crate) static SUBJECT_ACCESS_REVIEW: BuiltIn =
    BuiltIn::new(GROUP, "SubjectAccessReview", "subjectaccessreviews")
        .older_versions(&["v1beta1"])
        .validation(Validation::new(check_subject_review).metadata(Metadata::Unchecked));

pub(crate) static SELF_SUBJECT_ACCESS_REVIEW: BuiltIn =
    BuiltIn::new(GROUP, "SelfSubjectAccessReview", "selfsubjectaccessreviews")
        .older_versions(&["v1beta1"])
        .validation(Validation::new(check_self_review).metadata(Metadata::Unchecked));

pub(crate) static LOCAL_SUBJECT_ACCESS_REVIEW: BuiltIn =
    BuiltIn::new(GROUP, "LocalSubjectAccessReview", "localsubjectaccessreviews")
        .older_versions(&["v1beta1"])
        .validation(Validation::new(check_local_review).metadata(Metadata::Unchecked));

pub(crate) static SELF_SUBJECT_RULES_REVIEW: BuiltIn =
    BuiltIn::new(GROUP, "SelfSubjectRulesReview", "selfsubjectrulesreviews")
        .older_versions(&["v1beta1"])
        .validation(Validation::METADATA.metadata(Metadata::Unchecked));

fn check_subject_review(review: &At<'_, '_>, errors: &mut ErrorList) {
    check_access(review, true, errors);
    check_empty_metadata(review, &[], errors);
}

fn check_self_review(review: &At<'_, '_>, errors: &mut ErrorList) {
    check_access(review, false, errors);
    check_empty_metadata(review, &[], errors);
}

fn check_local_review(review: &At<'_, '_>, errors: &mut ErrorList) {
    check_access(review, true, errors);
    check_empty_metadata(review, &["namespace"], errors);
    let spec = review.field("spec");
    let (resource, path) = (spec.field("resourceAttributes"), spec.field("nonResourceAttributes"));
    let namespace = resource.field("namespace");
    if resource.is_set() && namespace.text() != api::object::namespace(review.value()) {
        namespace.invalid_text(errors, "must match metadata.namespace");
    }
    if path.is_set() {
        path.invalid_as(errors, shown_path(&path), "disallowed on this kind of request");
    }
}

fn shown_path(at: &At<'_, '_>) -> BadValue {
    internal::shown("io.k8s.api.authorization.v1.NonResourceAttributes", at.value())
}

fn check_access(review: &At<'_, '_>, has_subject: bool, errors: &mut ErrorList) {
    let spec = review.field("spec");
    let (resource, path) = (spec.field("resourceAttributes"), spec.field("nonResourceAttributes"));
    match (resource.is_set(), path.is_set()) {
        (true, true) => {
            let problem = "cannot be specified in combination with resourceAttributes";
            path.invalid_as(errors, shown_path(&path), problem);
        }
        (false, false) => {
            let problem = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            resource.invalid(errors, problem);
        }
        _ => {}
    }
    if has_subject && spec.text_of("user").is_empty() && spec.field("groups").is_empty() {
        spec.field("user").invalid_text(errors, "at least one of user or group must be specified");
    }
    for (name, is_label) in [("fieldSelector", false), ("labelSelector", true)] {
        let selector = resource.field(name);
        if selector.is_set() {
            check_selector(&selector, is_label, errors);
        }
    }
}

fn check_selector(selector: &At<'_, '_>, is_label: bool, errors: &mut ErrorList) {
    let (raw, requirements) = (selector.field("rawSelector"), selector.field("requirements"));
    match (raw.text().is_empty(), requirements.is_empty()) {
        (false, false) => raw.invalid_text(errors, "may not specified at the same time as requirements"),
        (true, true) => {
            let path = selector.path();
            let problem = format!("when {path} is specified, requirements or rawSelector is required");
            requirements.required(errors, &problem);
        }
        _ => {}
    }
    for requirement in requirements.items() {
        check_requirement(&requirement, is_label, errors);
    }
}

/// An operator that is not known may be one of tomorrow's.
fn check_requirement(requirement: &At<'_, '_>, is_label: bool, errors: &mut ErrorList) {
    let (key, values) = (requirement.field("key"), requirement.field("values"));
    if !is_label && key.text().is_empty() {
        key.required(errors, "must be specified");
    }
    match requirement.text_of("operator") {
        "In" | "NotIn" if values.is_empty() => {
            values.required(errors, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let problem = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(Error::forbidden(values.path(), problem));
        }
        _ => {}
    }
    if is_label {
        key.is_format(errors, Format::QualifiedName);
        for value in values.items() {
            value.is_format(errors, Format::LabelValue);
        }
    }
}

fn check_empty_metadata(review: &At<'_, '_>, allowed: &[&str], errors: &mut ErrorList) {
    let metadata = review.field("metadata");
    let is_surplus = |field: &str| field != "managedFields" && !allowed.contains(&field);
    if metadata.entries().any(|(field, _)| is_surplus(field)) {
        let except = if allowed.is_empty() { "" } else { " except for namespace" };
        metadata.invalid_as(errors, internal::shown_metadata(&metadata), format!("must be empty{except}"));
    }
}
