//! Claims and their templates: which devices are asked for, and under which conditions.

use api::field::ErrorList;
use api::name::{self, Format};

use super::super::at::{At, IMMUTABLE};
use super::super::{internal, metadata};
use super::{MAX_CONFIGURATIONS, configuration, each, each_named, each_once, names, selector};

pub(super) const MAX_REQUESTS: usize = 32;
const MAX_CONSTRAINTS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;

pub(in super::super) fn claim(claim: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = claim.field("spec");
    claimed(&spec.field("devices"), errors);
}

pub(in super::super) fn template(template: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = template.field("spec");
    metadata::template(&spec.field("metadata"), errors);
    let claim = spec.field("spec");
    claimed(&claim.field("devices"), errors);
}

pub(in super::super) fn claim_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    fixed(new, old, "io.k8s.api.resource.v1.ResourceClaimSpec", errors);
}

pub(in super::super) fn template_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    fixed(new, old, "io.k8s.api.resource.v1.ResourceClaimTemplateSpec", errors);
}

fn fixed(new: &At<'_, '_>, old: &At<'_, '_>, type_name: &str, errors: &mut ErrorList) {
    let spec = new.field("spec");
    if !spec.is_same(&old.field("spec")) {
        spec.invalid_as(errors, internal::shown(type_name, spec.value()), IMMUTABLE);
    }
}

fn claimed(devices: &At<'_, '_>, errors: &mut ErrorList) {
    let requests = devices.field("requests");
    each_named(&requests, "name", MAX_REQUESTS, errors, request);
    each(&devices.field("constraints"), MAX_CONSTRAINTS, errors, |constraint, errors| {
        references(&constraint.field("requests"), &requests, errors);
        let attribute = ["matchAttribute", "distinctAttribute"].into_iter().find(|it| constraint.has(it));
        match attribute {
            Some(attribute) => names::fully_qualified(&constraint.field(attribute), errors),
            None => constraint.required(
                errors,
                "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set",
            ),
        }
    });
    each(&devices.field("config"), MAX_CONFIGURATIONS, errors, |it, errors| {
        references(&it.field("requests"), &requests, errors);
        configuration(it, errors);
    });
}

/// Names of requests, each once.
pub(super) fn references(list: &At<'_, '_>, requests: &At<'_, '_>, errors: &mut ErrorList) {
    each_once(list, MAX_REQUESTS, errors, |name, errors| names::request_reference(name, requests, errors));
}

fn request(request: &At<'_, '_>, errors: &mut ErrorList) {
    let (exactly, alternatives) = (request.field("exactly"), request.field("firstAvailable"));
    request.field("name").is_format(errors, Format::Dns1123Label);
    match (exactly.is_set(), !alternatives.is_empty()) {
        (false, false) => {
            request.required(errors, "exactly one of `exactly` or `firstAvailable` is required");
        }
        (true, true) => {
            let problem =
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            request.invalid_as(errors, api::field::BadValue::verbatim("null"), problem);
        }
        (true, false) => wanted(&exactly, errors),
        (false, true) => each_named(&alternatives, "name", MAX_ALTERNATIVES, errors, |it, errors| {
            it.field("name").is_format(errors, Format::Dns1123Label);
            wanted(it, errors);
        }),
    }
}

/// What sort of device, and how many.
fn wanted(request: &At<'_, '_>, errors: &mut ErrorList) {
    request.field("deviceClassName").required_format(errors, Format::Dns1123Subdomain);
    selector::check_all(&request.field("selectors"), errors);
    let (mode, count) = (request.field("allocationMode"), request.field("count"));
    match mode.text() {
        "All" if count.int() != 0 => {
            count.invalid_int(errors, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count.int() <= 0 => count.invalid_int(errors, "must be greater than zero"),
        "All" | "ExactCount" => {}
        _ => mode.unsupported(errors, &["All", "ExactCount"]),
    }
    request.field("tolerations").items().for_each(|it| toleration(&it, errors));
}

pub(super) const TAINT_EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

fn toleration(toleration: &At<'_, '_>, errors: &mut ErrorList) {
    let (key, value) = (toleration.field("key"), toleration.field("value"));
    if !key.text().is_empty() {
        errors.extend(name::label_key(key.path(), key.text()));
    }
    match toleration.text_of("operator") {
        "Exists" if !value.text().is_empty() => {
            value.invalid_text(errors, "must be empty for operator `Exists`");
        }
        "Exists" => {}
        "Equal" => value.is_format(errors, Format::LabelValue),
        "" => toleration.field("operator").required(errors, ""),
        _ => toleration.field("operator").unsupported(errors, &["Equal", "Exists"]),
    }
    if !toleration.text_of("effect").is_empty() {
        toleration.field("effect").one_of(errors, &TAINT_EFFECTS);
    }
}
