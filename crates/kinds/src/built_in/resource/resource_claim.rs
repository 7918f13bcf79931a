//! ResourceClaim: the devices that pods ask for, and those that they got.

mod status;

use api::field::{BadValue, ErrorList};
use api::name::{self, Format};

use super::{GROUP, MAX_CONFIGURATIONS, configuration, device_selector, each, each_unique, names};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::Row;
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::TypeDefaults;
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::internal;
use crate::validate::validation::{UpdateChecks, Validation};

pub(super) const MAX_REQUESTS: usize = 32;
const MAX_CONSTRAINTS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
pub(super) const TAINT_EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];
const EXACT: &str = "ExactCount";

pub(crate) static RESOURCE_CLAIM: BuiltIn = BuiltIn::new(GROUP, "ResourceClaim", "resourceclaims")
    .older_versions(&["v1beta1", "v1beta2"])
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .status()
            .status_metadata(StatusMetadata::Little)
            .on_status(status::prepare_status),
    )
    .validation(
        Validation::new(check)
            .update(UpdateChecks::METADATA.compare(check_change))
            .subresources(&[("status", status::check_status)]),
    )
    .defaults(&[
        TypeDefaults::of("resource.v1.DeviceSubRequest").rule(default_count),
        TypeDefaults::of("resource.v1.ExactDeviceRequest").rule(default_count),
    ])
    .columns(&[NAME, string("State", Cell::Computed(|it| state(it).into())), AGE]);

fn check(claim: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = claim.field("spec");
    check_devices(&spec.field("devices"), errors);
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check_unchanged(new, old, "io.k8s.api.resource.v1.ResourceClaimSpec", errors);
}

pub(super) fn check_unchanged(new: &At<'_, '_>, old: &At<'_, '_>, type_name: &str, errors: &mut ErrorList) {
    let spec = new.field("spec");
    if !spec.is_same(&old.field("spec")) {
        spec.invalid_as(errors, internal::shown(type_name, spec.value()), IMMUTABLE);
    }
}

pub(super) fn check_devices(devices: &At<'_, '_>, errors: &mut ErrorList) {
    let requests = devices.field("requests");
    each_unique(&requests, |it| it.text_of("name"), MAX_REQUESTS, errors, check_request);
    each(&devices.field("constraints"), MAX_CONSTRAINTS, errors, |constraint, errors| {
        check_references(&constraint.field("requests"), &requests, errors);
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
        check_references(&it.field("requests"), &requests, errors);
        configuration(it, errors);
    });
}

/// Names of requests, each once.
pub(super) fn check_references(list: &At<'_, '_>, requests: &At<'_, '_>, errors: &mut ErrorList) {
    each_unique(
        list,
        |it| it.text(),
        MAX_REQUESTS,
        errors,
        |name, errors| names::request_reference(name, requests, errors),
    );
}

fn check_request(request: &At<'_, '_>, errors: &mut ErrorList) {
    let (exactly, alternatives) = (request.field("exactly"), request.field("firstAvailable"));
    request.field("name").is_format(errors, Format::Dns1123Label);
    match (exactly.is_set(), !alternatives.is_empty()) {
        (false, false) => {
            request.required(errors, "exactly one of `exactly` or `firstAvailable` is required");
        }
        (true, true) => {
            let problem =
                "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            request.invalid_as(errors, BadValue::verbatim("null"), problem);
        }
        (true, false) => check_wanted(&exactly, errors),
        (false, true) => each_unique(
            &alternatives,
            |it| it.text_of("name"),
            MAX_ALTERNATIVES,
            errors,
            |it, errors| {
                it.field("name").is_format(errors, Format::Dns1123Label);
                check_wanted(it, errors);
            },
        ),
    }
}

/// What sort of device, and how many.
fn check_wanted(request: &At<'_, '_>, errors: &mut ErrorList) {
    request.field("deviceClassName").required_format(errors, Format::Dns1123Subdomain);
    device_selector::check_all(&request.field("selectors"), errors);
    let (mode, count) = (request.field("allocationMode"), request.field("count"));
    match mode.text() {
        "All" if count.int() != 0 => {
            count.invalid_int(errors, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count.int() <= 0 => count.invalid_int(errors, "must be greater than zero"),
        "All" | "ExactCount" => {}
        _ => mode.unsupported(errors, &["All", "ExactCount"]),
    }
    request.field("tolerations").items().for_each(|it| check_toleration(&it, errors));
}

fn check_toleration(toleration: &At<'_, '_>, errors: &mut ErrorList) {
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

/// A request asks for one device where it does not say how many.
fn default_count(request: &mut Members) {
    member::default_to(request, "allocationMode", EXACT);
    if member::text(request, "allocationMode") == EXACT && member::integer(request, "count") == 0 {
        request.insert("count".to_owned(), 1.into());
    }
}

fn state(claim: &Row<'_>) -> String {
    let is_allocated = claim.at("/status/allocation").is_object();
    let is_reserved = !claim.items("/status/reservedFor").is_empty();
    let states = [
        ("deleted", claim.is_deleting()),
        ("pending", !is_allocated && !claim.is_deleting()),
        ("allocated", is_allocated),
        ("reserved", is_allocated && is_reserved),
    ];
    let states: Vec<_> = states.iter().filter(|(_, holds)| *holds).map(|(state, _)| *state).collect();
    states.join(",")
}
