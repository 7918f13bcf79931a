//! Nodes, and the RuntimeClasses that containers run with on them.

use api::field::{Error, ErrorList, Path};
use api::name::{self, Format};

use super::at::At;
use super::taken::Taken;
use super::{internal, metadata, pod, resource_names};

pub(super) fn body(node: &At<'_, '_>, errors: &mut ErrorList) {
    taints(node, errors);
    resources(node, errors);
    declared_features(node, errors);
    let spec = node.field("spec");
    pod_ranges(&spec.field("podCIDRs"), errors);
}

fn pod_ranges(ranges: &At<'_, '_>, errors: &mut ErrorList) {
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
fn declared_features(node: &At<'_, '_>, errors: &mut ErrorList) {
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
fn taints(node: &At<'_, '_>, errors: &mut ErrorList) {
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
fn resources(node: &At<'_, '_>, errors: &mut ErrorList) {
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

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    resources(new, errors);
    declared_features(new, errors);
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
    taints(new, errors);
    if spec.text_of("externalID") != old_spec.text_of("externalID") {
        spec.field("externalID").forbidden(errors, "may not be updated");
    }
}

pub(super) fn runtime_class(class: &At<'_, '_>, errors: &mut ErrorList) {
    class.field("handler").required_format(errors, Format::Dns1123Label);
    let overhead = class.field("overhead");
    let fixed = overhead.field("podFixed");
    pod::overhead(&At::new(fixed.value(), *overhead.path()), errors);
    let scheduling = class.field("scheduling");
    metadata::labels(&scheduling.field("nodeSelector"), errors);
    let tolerations = scheduling.field("tolerations");
    pod::tolerations(&tolerations, errors);
    let mut taken = Taken::default();
    for toleration in tolerations.items() {
        if !taken.add(toleration.value()) {
            let shown = internal::shown_core("Toleration", &toleration);
            errors.push(Error::duplicate(toleration.path(), shown));
        }
    }
}

pub(super) fn runtime_class_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("handler").immutable(errors, &old.field("handler"));
}
