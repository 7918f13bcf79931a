//! APIService: who serves a version of a group.

use api::field::{Error, ErrorList};
use api::name::{self, Format, NameRule};
use serde_json::{Value, json};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::built_in::core::config_map::decoded_len;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{Row, condition, text};
use crate::defaults::member::Members;
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::{Circumstances, StatusMetadata, Strategy};
use crate::validate::at::At;
use crate::validate::validation::{Metadata, Validation};

pub(crate) static API_SERVICE: BuiltIn = BuiltIn::new(GROUP, "APIService", "apiservices")
    .older_versions(&["v1beta1"])
    .strategy(
        Strategy::PLAIN
            .named(NameRule::PathSegment)
            .requires_resource_version()
            .status()
            .status_metadata(StatusMetadata::AllBut(&[
                "labels",
                "annotations",
                "finalizers",
                "ownerReferences",
            ]))
            .status_resets(&[&["spec"], &["metadata"]])
            .on_create(prepare_create),
    )
    .validation(
        Validation::new(check)
            .metadata(Metadata::WithAnyFinalizer(NameRule::PathSegment))
            .subresources(&[("status", check_status)]),
    )
    .defaults(&[TypeDefaults::of("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference")
        .values(&[("port", DefaultValue::Number(443))])])
    .columns(&[
        NAME,
        string("Service", Cell::Computed(|it| service(it.at("/spec/service")).into())),
        string("Available", Cell::Computed(|it| available(it).into())),
        AGE,
    ]);

/// An API service without a service behind it is served here, and so is available.
fn prepare_create(service: &mut Members, with: &Circumstances<'_>) {
    let spec = service.get("spec");
    if spec.is_some_and(|spec| spec.get("service").is_some()) {
        return;
    }
    let condition = json!({
        "type": "Available",
        "status": "True",
        "lastTransitionTime": with.now.to_string(),
        "reason": "Local",
        "message": "Local APIServices are always available",
    });
    service.insert("status".to_owned(), json!({"conditions": [condition]}));
}

fn check(service: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, metadata) = (service.field("spec"), service.field("metadata"));
    let (group, version) = (spec.field("group"), spec.field("version"));
    let name = metadata.field("name");
    let wanted = format!("{}.{}", version.text(), group.text());
    if !name.text().is_empty() && name.text() != wanted && Format::PathSegment.fits(name.text()) {
        let problem = format!("must be `spec.version+\".\"+spec.group`: {}", api::go::quote(&wanted));
        name.invalid_text(errors, problem);
    }
    if !group.text().is_empty() {
        group.is_format(errors, Format::Dns1123Subdomain);
    } else if version.text() != "v1" {
        group.required(errors, "only v1 may have an empty group and it better be legacy kube");
    }
    version.is_format(errors, Format::Dns1035Label);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = spec.field(field);
        if !(1..=most).contains(&priority.int()) {
            priority.invalid_int(errors, format!("must be positive and less than {most}"));
        }
    }
    let (target, bundle) = (spec.field("service"), spec.field("caBundle"));
    let insecure = spec.field("insecureSkipTLSVerify");
    let skips = spec.flag_of("insecureSkipTLSVerify");
    if !target.is_set() {
        if !bundle.text().is_empty() {
            let size = decoded_len(bundle.text());
            bundle.invalid_as(errors, format!("{size} bytes"), "local APIServices may not have a caBundle");
        }
        if skips {
            insecure.invalid(errors, "local APIServices may not have insecureSkipTLSVerify");
        }
        return;
    }
    for field in ["namespace", "name"] {
        if target.text_of(field).is_empty() {
            target.field(field).required(errors, "");
        }
    }
    let port = target.field("port");
    let problems = name::port_number_problems(port.int());
    if !problems.is_empty() {
        port.invalid_int(errors, format!("port is not valid: {}", problems.join(", ")));
    }
    if skips && !bundle.text().is_empty() {
        insecure.invalid(errors, "may not be true if caBundle is present");
    }
}

fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    let conditions = status.field("conditions");
    for condition in conditions.items() {
        let status = condition.field("status");
        if !matches!(status.text(), "True" | "False" | "Unknown") {
            errors.push(Error::not_supported(status.path(), status.text(), ["True", "False", "Unknown"]));
        }
    }
}

fn service(reference: &Value) -> String {
    if reference.is_null() {
        return "Local".to_owned();
    }
    format!("{}/{}", text(&reference["namespace"]), text(&reference["name"]))
}

fn available(service: &Row<'_>) -> String {
    let Some(condition) = condition(service.at("/status/conditions"), "Available") else {
        return "Unknown".to_owned();
    };
    match (text(&condition["status"]), text(&condition["reason"])) {
        ("True", _) => "True".to_owned(),
        (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}
