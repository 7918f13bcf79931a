//! What an autoscaler scales, by which metrics, and how fast.

use api::field::{Error, ErrorList};
use api::kind::GroupVersionKind;
use api::name::Format;

use crate::validate::at::At;
use crate::validate::resource_names;

const MAX_PERIOD_SECONDS: i64 = 1800;
const MAX_WINDOW_SECONDS: i64 = 3600;

/// Field and type of each sort of metric, in the order of the checks.
const METRICS: [(&str, &str); 5] = [
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

pub(super) fn check(autoscaler: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = autoscaler.field("spec");
    let (min, max) = (spec.field("minReplicas"), spec.field("maxReplicas"));
    if min.is_set() && min.int() < 1 {
        min.invalid_int(errors, "must be greater than or equal to 1");
    }
    if max.int() == 0 {
        max.required(errors, "must be set and greater than 0");
    } else if max.int() < 0 {
        max.invalid_int(errors, "must be greater than or equal to 1");
    }
    if min.is_set() && max.int() < min.int() {
        max.invalid_int(errors, "must be greater than or equal to `minReplicas`");
    }
    let target = spec.field("scaleTargetRef");
    check_reference(&target, target.text_of("kind") == "ReplicationController", errors);
    let metrics = spec.field("metrics");
    let counts_outside = |it: At<'_, '_>| matches!(it.text_of("type"), "Object" | "External");
    for it in metrics.items() {
        check_metric(&it, errors);
    }
    if min.is_set() && min.int() == 0 && !metrics.items().any(counts_outside) {
        let problem =
            "must specify at least one Object or External metric to support scaling to zero replicas";
        metrics.forbidden(errors, problem);
    }
    let behavior = spec.field("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        let rules = behavior.field(direction);
        if rules.is_set() {
            check_scaling_rules(&rules, errors);
        }
    }
}

/// What an update leaves as it was is not asked again.
pub(super) fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let mut found = ErrorList::new();
    check(new, &mut found);
    let target = |at: &At<'_, '_>| {
        let spec = at.field("spec");
        let target = spec.field("scaleTargetRef");
        (target.text_of("apiVersion").to_owned(), target.text_of("kind").to_owned())
    };
    let is_same = target(new) == target(old);
    errors.extend(found.into_iter().filter(|it| !(is_same && it.field == "spec.scaleTargetRef.apiVersion")));
}

pub(super) fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    let status = new.field("status");
    for field in ["currentReplicas", "desiredReplicas"] {
        status.field(field).not_negative(errors);
    }
}

/// Only one kind of the core group can be scaled, but any can be measured.
fn check_reference(at: &At<'_, '_>, may_be_core: bool, errors: &mut ErrorList) {
    at.field("kind").required_format(errors, Format::PathSegment);
    at.field("name").required_format(errors, Format::PathSegment);
    let version = at.field("apiVersion");
    match GroupVersionKind::parse(version.text(), at.text_of("kind")) {
        Err(problem) => version.invalid_text(errors, problem.to_string()),
        Ok(kind) if kind.group.is_empty() && !may_be_core => {
            version.invalid_text(errors, "apiVersion must specify API group");
        }
        Ok(_) => {}
    }
}

fn check_metric(metric: &At<'_, '_>, errors: &mut ErrorList) {
    let known = ["ContainerResource", "External", "Object", "Pods", "Resource"];
    let sort = metric.field("type");
    if sort.text().is_empty() {
        sort.required(errors, "must specify a metric source type");
    }
    sort.one_of(errors, &known);
    let present: Vec<_> = METRICS.iter().filter(|(field, _)| metric.has(field)).collect();
    if let [(field, _), ..] = present.as_slice() {
        check_source(&metric.field(field), field, errors);
    }
    let expected = METRICS.iter().find(|(_, of)| *of == sort.text()).map(|(field, _)| *field);
    match expected {
        Some(field) if !metric.has(field) => {
            metric.field(field).required(errors, "must populate information for the given metric source");
        }
        Some(_) => {}
        None => sort.unsupported(errors, &known),
    }
    if present.len() != 1 {
        for (field, _) in present.iter().filter(|(field, _)| Some(*field) != expected) {
            metric.field(field).forbidden(errors, "must populate the given metric source only");
        }
    }
}

fn check_source(source: &At<'_, '_>, sort: &str, errors: &mut ErrorList) {
    let at_target = source.field("target");
    if sort == "object" {
        check_reference(&source.field("describedObject"), true, errors);
    }
    match sort {
        "object" | "external" | "pods" => {
            let metric = source.field("metric");
            let name = metric.field("name");
            if name.text().is_empty() {
                name.required(errors, "must specify a metric name");
            } else {
                name.is_format(errors, Format::PathSegment);
            }
        }
        _ => check_resource_name(source, sort, errors),
    }
    check_target(&at_target, errors);
    let has = |field: &str| at_target.has(field);
    let (value, average, utilization) = (has("value"), has("averageValue"), has("averageUtilization"));
    let require = |field: &str, problem: &str, errors: &mut ErrorList| {
        at_target.field(field).required(errors, problem);
    };
    match sort {
        "object" if !value && !average => {
            require("averageValue", "must set either a target value or averageValue", errors);
        }
        "external" if !value && !average => {
            let problem = "must set either a target value for metric or a per-pod target";
            require("averageValue", problem, errors);
        }
        "external" if value && average => {
            let problem = "may not set both a target value for metric and a per-pod target";
            at_target.field("value").forbidden(errors, problem);
        }
        "pods" if !average => require("averageValue", "must specify a positive target averageValue", errors),
        "resource" | "containerResource" if !utilization && !average => {
            let problem = "must set either a target raw value or a target utilization";
            require("averageUtilization", problem, errors);
        }
        "resource" | "containerResource" if utilization && average => {
            let problem = "may not set both a target raw value and a target utilization";
            at_target.field("averageValue").forbidden(errors, problem);
        }
        _ => {}
    }
}

fn check_resource_name(source: &At<'_, '_>, sort: &str, errors: &mut ErrorList) {
    let (name, container) = (source.field("name"), source.field("container"));
    if name.text().is_empty() {
        name.required(errors, "must specify a resource name");
    } else if sort == "containerResource" {
        errors.extend(resource_names::check_for_container(name.path(), name.text()));
    }
    if sort == "containerResource" && container.text().is_empty() {
        container.required(errors, "must specify a container");
    } else if sort == "containerResource" {
        container.is_format(errors, Format::Dns1123Label);
    }
}

fn check_target(target: &At<'_, '_>, errors: &mut ErrorList) {
    let sort = target.field("type");
    if sort.text().is_empty() {
        sort.required(errors, "must specify a metric target type");
    }
    if !matches!(sort.text(), "Utilization" | "Value" | "AverageValue") {
        sort.invalid_text(errors, "must be either Utilization, Value, or AverageValue");
    }
    for field in ["value", "averageValue"] {
        let amount = target.field(field);
        if amount.quantity().is_some_and(|amount| amount.is_zero() || amount.is_negative()) {
            amount.invalid_text(errors, "must be positive");
        }
    }
    let utilization = target.field("averageUtilization");
    if utilization.is_set() {
        utilization.positive(errors);
    }
}

fn check_scaling_rules(rules: &At<'_, '_>, errors: &mut ErrorList) {
    let window = rules.field("stabilizationWindowSeconds");
    if window.int() < 0 {
        window.invalid_int(errors, "must be greater than or equal to zero");
    }
    if window.int() > MAX_WINDOW_SECONDS {
        window.invalid_int(errors, format!("must be less than or equal to {MAX_WINDOW_SECONDS}"));
    }
    rules.field("selectPolicy").optional_one_of(errors, &["Disabled", "Max", "Min"]);
    let policies = rules.field("policies");
    if policies.is_empty() {
        policies.required(errors, "must specify at least one Policy");
    }
    for policy in policies.items() {
        policy.field("type").one_of(errors, &["Percent", "Pods"]);
        for field in ["value", "periodSeconds"] {
            if policy.int_of(field) <= 0 {
                policy.field(field).invalid_int(errors, "must be greater than zero");
            }
        }
        let period = policy.field("periodSeconds");
        if period.int() > MAX_PERIOD_SECONDS {
            period.invalid_int(errors, format!("must be less than or equal to {MAX_PERIOD_SECONDS}"));
        }
    }
    let tolerance = rules.field("tolerance");
    if tolerance.quantity().is_some_and(|tolerance| tolerance.is_negative()) {
        errors.push(Error::invalid(tolerance.path(), tolerance.text(), "must be greater than or equal to 0"));
    }
}
