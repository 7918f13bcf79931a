//! Node: a machine that runs pods.

use std::collections::BTreeSet;

use api::field::{Error, ErrorList, Path};
use api::name::{self, Format, cidr_warnings};
use api::object;
use serde_json::{Value, json};

use super::GROUP;
use super::pod::validate as pod;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, UNKNOWN, items, text};
use crate::defaults::field_and_list;
use crate::defaults::member::Members;
use crate::defaults::type_defaults::TypeDefaults;
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::Strategy;
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, resource_names};

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";
const ROLE: &str = "kubernetes.io/role";

pub(crate) static NODE: BuiltIn = BuiltIn::new(GROUP, "Node", "nodes")
    .strategy(
        Strategy::PLAIN
            .takes_status()
            // Kubelets read this once; it stays in the type.
            .disabled_fields(&[&["spec", "configSource"], &["status", "config"]]),
    )
    .validation(
        Validation::new(check)
            .update(UpdateChecks::AS_NEW.compare(check_change))
            .subresources(&[("status", check_change)]),
    )
    .warnings(warn)
    .defaults(&[
        TypeDefaults::of("core.v1.NodeSpec").rule(default_pod_cidrs),
        TypeDefaults::of("core.v1.NodeStatus").rule(default_allocatable),
    ])
    .columns(&[
        NAME,
        string("Status", Cell::Computed(|it| status(it).into())),
        string("Roles", Cell::Computed(|it| roles(it).into())),
        AGE,
        string("Version", Cell::Text("/status/nodeInfo/kubeletVersion")),
        string("Internal-IP", Cell::Computed(|it| address(it, "InternalIP").into())).wide(),
        string("External-IP", Cell::Computed(|it| address(it, "ExternalIP").into())).wide(),
        string("OS-Image", Cell::Computed(|it| info(it, "osImage").into())).wide(),
        string("Kernel-Version", Cell::Computed(|it| kernel_version(it).into())).wide(),
        string("Container-Runtime", Cell::Computed(|it| info(it, "containerRuntimeVersion").into())).wide(),
    ])
    .selectable(Selectable::new(&[SelectableField::NAME, SelectableField::flag("spec.unschedulable")]));

fn check(node: &At<'_, '_>, errors: &mut ErrorList) {
    check_taints(node, errors);
    check_resources(node, errors);
    check_declared_features(node, errors);
    let spec = node.field("spec");
    check_pod_ranges(&spec.field("podCIDRs"), errors);
}

fn check_pod_ranges(ranges: &At<'_, '_>, errors: &mut ErrorList) {
    let mut unreadable = None;
    for (index, range) in ranges.items().enumerate() {
        let problems = name::legacy_cidr(range.path(), range.text());
        if !problems.is_empty() {
            unreadable.get_or_insert((index, range.text()));
        }
        errors.extend(problems);
    }
    let families: Vec<_> = ranges.items().map(|range| range.text().contains(':')).collect();
    if let Some((index, text)) = unreadable.filter(|_| families.len() > 1) {
        let cause = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid \
             CIDR address: {text})"
        );
        errors.push(Error::internal(ranges.path(), cause));
    }
    let is_one_family = matches!(families.as_slice(), [first, second] if first == second);
    if families.len() > 2 || is_one_family || families.len() > 1 && unreadable.is_some() {
        ranges.invalid(errors, "may specify no more than one CIDR for each IP family");
    }
}

/// Names in alphabetical order, each once.
fn check_declared_features(node: &At<'_, '_>, errors: &mut ErrorList) {
    const LONGEST: usize = 253;
    let status = node.field("status");
    let features = status.field("declaredFeatures");
    let mut before: Option<&str> = None;
    for feature in features.items() {
        let name = feature.text();
        match before {
            Some(before) if before == name => feature.duplicate(errors),
            Some(before) if before > name => {
                feature.invalid_text(errors, "list must be sorted alphabetically");
            }
            _ => {}
        }
        before = Some(name);
        let quoted = api::go::quote(name);
        if name.len() > LONGEST {
            let problem = format!("invalid feature name {quoted}: must be no more than {LONGEST} characters");
            feature.invalid_text(errors, problem);
        } else if !is_feature_name(name) {
            let problem = format!(
                "invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments \
                 separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric \
                 characters and slashes"
            );
            feature.invalid_text(errors, problem);
        }
    }
}

fn is_feature_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.split('/').all(|part| {
            part.starts_with(|first: char| first.is_ascii_alphabetic())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Kubernetes: the path says `metadata`.
fn check_taints(node: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = node.field("spec");
    let path = Path::new("metadata");
    let taints = At::new(spec.field("taints").value(), path.child("taints"));
    let mut earlier_taints = Taken::default();
    for taint in taints.items() {
        let (key, value, effect) = (taint.field("key"), taint.field("value"), taint.field("effect"));
        errors.extend(name::label_key(key.path(), key.text()));
        let problems = Format::LabelValue.problems(value.text());
        if !problems.is_empty() {
            value.invalid_text(errors, problems.join(";"));
        }
        pod::taint_effect(&effect, errors);
        if !earlier_taints.add((key.text(), effect.text())) {
            let mut repeated = Error::duplicate(taint.path(), internal::shown_core("Taint", &taint));
            repeated.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(repeated);
        }
    }
}

/// Kubernetes: a resource is a field of the path, not a key.
fn check_resources(node: &At<'_, '_>, errors: &mut ErrorList) {
    let status = node.field("status");
    for list in ["capacity", "allocatable"] {
        let list = status.field(list);
        for (resource, amount) in list.entries() {
            let path = list.path().child(resource);
            if let Some(amount) = amount.quantity() {
                errors.extend(resource_names::check_amount(&path, resource, &amount));
            }
        }
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    check_resources(new, errors);
    check_declared_features(new, errors);
    let status = new.field("status");
    let addresses = status.field("addresses");
    let mut taken = Taken::default();
    for address in addresses.items() {
        if !taken.add(address.value()) {
            errors.push(Error::duplicate(address.path(), internal::shown_core("NodeAddress", &address)));
        }
    }
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let (ranges, old_ranges) = (spec.field("podCIDRs"), old_spec.field("podCIDRs"));
    if !old_ranges.is_empty() {
        let problem = "node updates may not change podCIDR except from \"\" to valid";
        if ranges.list().len() != old_ranges.list().len() {
            ranges.forbidden(errors, problem);
        } else {
            for _ in ranges.list().iter().zip(old_ranges.list()).filter(|(new, old)| new != old) {
                ranges.forbidden(errors, problem);
            }
        }
    }
    let provider = old_spec.text_of("providerID");
    if !provider.is_empty() && provider != spec.text_of("providerID") {
        let problem = "node updates may not change providerID except from \"\" to valid";
        spec.field("providerID").forbidden(errors, problem);
    }
    check_taints(new, errors);
    if spec.text_of("externalID") != old_spec.text_of("externalID") {
        spec.field("externalID").forbidden(errors, "may not be updated");
    }
}

fn warn(object: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = object.field("spec");
    if spec.has("configSource") {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.text_of("externalID").is_empty() {
        let warning = "spec.externalID: this field is deprecated, and is unused by Kubernetes";
        warnings.push(warning.to_owned());
    }
    let ranges = spec.field("podCIDRs");
    warnings.extend(ranges.items().flat_map(|range| cidr_warnings(range.path(), range.text())));
}

fn default_allocatable(status: &mut Members) {
    if let Some(capacity) = status.get("capacity").filter(|_| !status.contains_key("allocatable")).cloned() {
        status.insert("allocatable".to_owned(), capacity);
    }
}

fn default_pod_cidrs(spec: &mut Members) {
    field_and_list::agree(spec, "podCIDR", "podCIDRs", |cidr| json!(cidr), Value::as_str);
}

fn status(node: &Row<'_>) -> String {
    // Kubernetes: of several conditions of one type the last one counts here.
    let ready = items(node.at("/status/conditions")).iter().rfind(|it| it["type"] == "Ready");
    let status = match ready {
        None => "Unknown",
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
    };
    if node.flag("/spec/unschedulable") { format!("{status},SchedulingDisabled") } else { status.to_owned() }
}

fn roles(node: &Row<'_>) -> String {
    let labels = object::labels(node.object).into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None => (key == ROLE).then(|| text(value)),
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { NONE.to_owned() } else { Vec::from_iter(roles).join(",") }
}

fn address<'a>(node: &Row<'a>, kind: &str) -> &'a str {
    let mut addresses = node.items("/status/addresses").iter();
    addresses.find(|it| it["type"] == kind).map_or(NONE, |it| text(&it["address"]))
}

fn info<'a>(node: &Row<'a>, member: &str) -> &'a str {
    node.text_or(&format!("/status/nodeInfo/{member}"), UNKNOWN)
}

fn kernel_version(node: &Row<'_>) -> String {
    let version = info(node, "kernelVersion");
    match node.text("/status/nodeInfo/architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}
