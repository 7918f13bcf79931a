//! Devices: what is claimed, by which classes, and what drivers publish. What selectors and attributes say is not read.

use api::field::{Error, ErrorList};
use api::name::Format;

use super::at::{At, IMMUTABLE};
use super::taken::Taken;
use super::{internal, pod, volume_source};

const MAX_REQUESTS: usize = 32;
const MAX_CONSTRAINTS: usize = 32;
const MAX_CONFIGURATIONS: usize = 32;
const MAX_SELECTORS: usize = 32;
const MAX_ALTERNATIVES: usize = 8;
const MAX_POOL_NAME: usize = 253;
const MAX_DEVICES: usize = 128;
const NO_REQUEST: &str = "must be the name of a request in the claim or the name of a request and a subrequest \
    separated by '/'";

pub(super) fn claim(claim: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = claim.field("spec");
    claimed(&spec.field("devices"), errors);
}

pub(super) fn template(template: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = template.field("spec");
    let spec = spec.field("spec");
    claimed(&spec.field("devices"), errors);
}

pub(super) fn claim_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    fixed(new, old, "io.k8s.api.resource.v1.ResourceClaimSpec", errors);
}

pub(super) fn template_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    fixed(new, old, "io.k8s.api.resource.v1.ResourceClaimTemplateSpec", errors);
}

/// Who has what was claimed, once something was allocated.
pub(super) fn claim_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (status, old_status) = (new.field("status"), old.field("status"));
    let holders = status.field("reservedFor");
    for holder in holders.items() {
        for field in ["resource", "name", "uid"] {
            if holder.text_of(field).is_empty() {
                holder.field(field).required(errors, "");
            }
        }
    }
    let (allocation, before) = (status.field("allocation"), old_status.field("allocation"));
    if !holders.is_empty() && !allocation.is_set() {
        holders.forbidden(errors, "may not be specified when `allocated` is not set");
    }
    if allocation.is_set() && before.is_set() && allocation.value() != before.value() {
        let shown = internal::shown("io.k8s.api.resource.v1.AllocationResult", allocation.value());
        allocation.invalid_as(errors, shown, IMMUTABLE);
    }
}

fn fixed(new: &At<'_, '_>, old: &At<'_, '_>, type_name: &str, errors: &mut ErrorList) {
    let spec = new.field("spec");
    if spec.value() != old.field("spec").value() {
        spec.invalid_as(errors, internal::shown(type_name, spec.value()), IMMUTABLE);
    }
}

pub(super) fn class(class: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = class.field("spec");
    selectors(&spec.field("selectors"), errors);
    let list = spec.field("config");
    if few(&list, MAX_CONFIGURATIONS, errors) {
        list.items().for_each(|it| configuration(&it, errors));
    }
}

fn claimed(devices: &At<'_, '_>, errors: &mut ErrorList) {
    let requests = devices.field("requests");
    if few(&requests, MAX_REQUESTS, errors) {
        requests.items().for_each(|it| request(&it, errors));
        unique(&requests, errors);
    }
    let known = request_names(&requests);
    let constraints = devices.field("constraints");
    if few(&constraints, MAX_CONSTRAINTS, errors) {
        for constraint in constraints.items() {
            references(&constraint.field("requests"), &known, errors);
            let attribute = ["matchAttribute", "distinctAttribute"].into_iter().find(|it| constraint.has(it));
            let Some(attribute) = attribute else {
                let problem = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple \
                    fields are set";
                constraint.required(errors, problem);
                continue;
            };
            let attribute = constraint.field(attribute);
            if !attribute.text().contains('/') {
                let problem = "a fully qualified name must be a domain and a name separated by a slash";
                attribute.invalid_text(errors, problem);
            }
        }
    }
    let list = devices.field("config");
    if few(&list, MAX_CONFIGURATIONS, errors) {
        for it in list.items() {
            references(&it.field("requests"), &known, errors);
            configuration(&it, errors);
        }
    }
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
        (false, true) => {
            if few(&alternatives, MAX_ALTERNATIVES, errors) {
                for it in alternatives.items() {
                    it.field("name").is_format(errors, Format::Dns1123Label);
                    wanted(&it, errors);
                }
                unique(&alternatives, errors);
            }
        }
    }
}

/// What sort of device, and how many.
fn wanted(request: &At<'_, '_>, errors: &mut ErrorList) {
    request.field("deviceClassName").required_format(errors, Format::Dns1123Subdomain);
    selectors(&request.field("selectors"), errors);
    let (mode, count) = (request.field("allocationMode"), request.field("count"));
    match mode.text() {
        "All" if count.int() != 0 => {
            count.invalid_int(errors, "must not be specified when allocationMode is 'All'");
        }
        "ExactCount" if count.int() <= 0 => count.invalid_int(errors, "must be greater than zero"),
        "All" | "ExactCount" => {}
        _ => mode.unsupported(errors, &["All", "ExactCount"]),
    }
}

fn selectors(selectors: &At<'_, '_>, errors: &mut ErrorList) {
    if few(selectors, MAX_SELECTORS, errors) {
        for selector in selectors.items().filter(|it| !it.has("cel")) {
            selector.field("cel").required(errors, "");
        }
    }
}

fn configuration(configuration: &At<'_, '_>, errors: &mut ErrorList) {
    let opaque = configuration.field("opaque");
    if !opaque.is_set() {
        opaque.required(errors, "");
        return;
    }
    volume_source::csi_driver_name(&opaque.field("driver"), errors);
    let parameters = opaque.field("parameters");
    match parameters.value() {
        serde_json::Value::Null => parameters.required(errors, ""),
        serde_json::Value::Object(_) => {}
        _ => parameters.invalid_as(errors, "<value omitted>", "must be a valid JSON object"),
    }
}

/// Every name by which a request, or an alternative within one, can be referred to.
fn request_names<'v>(requests: &At<'v, '_>) -> Taken<(&'v str, Option<&'v str>)> {
    let mut names = Taken::default();
    for request in requests.items() {
        let name = request.text_of("name");
        names.push((name, None));
        for alternative in request.field("firstAvailable").items() {
            names.push((name, Some(alternative.text_of("name"))));
        }
    }
    names
}

/// Names of requests, or of alternatives within them.
fn references(names: &At<'_, '_>, known: &Taken<(&str, Option<&str>)>, errors: &mut ErrorList) {
    for name in names.items() {
        let (request, alternative) = match name.text().split_once('/') {
            Some((request, alternative)) => (request, Some(alternative)),
            None => (name.text(), None),
        };
        let has_more_parts = alternative.is_some_and(|it| it.contains('/'));
        if has_more_parts || !known.contains(&(request, alternative)) {
            name.invalid_text(errors, NO_REQUEST);
        }
    }
}

fn few(list: &At<'_, '_>, most: usize, errors: &mut ErrorList) -> bool {
    let count = list.list().len();
    if count > most {
        errors.push(Error::too_many(list.path(), count, most));
    }
    count <= most
}

fn unique(list: &At<'_, '_>, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for item in list.items() {
        let name = item.text_of("name");
        if taken.contains(&name) {
            errors.push(Error::duplicate(item.path(), name));
        }
        taken.push(name);
    }
}

pub(super) fn slice(slice: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = slice.field("spec");
    volume_source::csi_driver_name(&spec.field("driver"), errors);
    let pool = spec.field("pool");
    let name = pool.field("name");
    if name.text().is_empty() {
        name.required(errors, "");
    } else {
        if name.text().len() > MAX_POOL_NAME {
            errors.push(Error::too_long(name.path(), MAX_POOL_NAME));
        }
        for part in name.text().split('/') {
            for problem in Format::Dns1123Subdomain.problems(part) {
                name.invalid_as(errors, part, problem);
            }
        }
    }
    let (count, generation) = (pool.field("resourceSliceCount"), pool.field("generation"));
    if count.int() <= 0 {
        count.invalid_int(errors, "must be greater than zero");
    }
    if generation.int() < 0 {
        generation.invalid_int(errors, "must be greater than or equal to zero");
    }
    nodes(&spec, errors);
    let devices = spec.field("devices");
    if few(&devices, MAX_DEVICES, errors) {
        devices.items().for_each(|it| it.field("name").is_format(errors, Format::Dns1123Label));
        unique(&devices, errors);
    }
}

/// From which nodes the devices can be reached: said in one way.
fn nodes(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let mut said = Vec::new();
    let name = spec.field("nodeName");
    if name.is_set() && name.text().is_empty() {
        name.invalid_text(errors, "must be either unset or set to a non-empty string");
    } else if name.is_set() {
        said.push("`nodeName`");
        name.is_format(errors, Format::Dns1123Subdomain);
    }
    let selector = spec.field("nodeSelector");
    if selector.is_set() {
        said.push("`nodeSelector`");
        pod::node_selector(&selector, errors);
    }
    for (flag, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        if spec.has(flag) && spec.flag_of(flag) {
            said.push(shown);
        } else if spec.has(flag) {
            spec.field(flag).invalid(errors, "must be either unset or set to true");
        }
    }
    let needed =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match said.len() {
        0 => spec.required(errors, needed),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", said.join(", "));
            spec.invalid_as(errors, shown, format!("{needed}, but multiple fields are set"));
        }
    }
}

pub(super) fn slice_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    spec.field("pool").field("name").immutable(errors, &old_spec.field("pool").field("name"));
    for field in ["driver", "nodeName"] {
        spec.field(field).immutable(errors, &old_spec.field(field));
    }
}
