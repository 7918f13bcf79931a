//! APIServices: the groups and versions that something else serves.

use api::field::{Error, ErrorList};
use api::name::{self, Format};

use super::at::At;

pub(super) fn body(service: &At<'_, '_>, errors: &mut ErrorList) {
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
            let size = super::config_map::decoded_len(bundle.text());
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

pub(super) fn status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    let conditions = status.field("conditions");
    for condition in conditions.items() {
        let status = condition.field("status");
        if !matches!(status.text(), "True" | "False" | "Unknown") {
            errors.push(Error::not_supported(status.path(), status.text(), ["True", "False", "Unknown"]));
        }
    }
}
