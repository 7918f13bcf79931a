//! ResourceQuotas and LimitRanges: how much a namespace may hold, and how much one object in it.

use api::field::{BadValue, Error, ErrorList, Path};
use api::name::Format;
use api::quantity::Quantity;
use serde_json::Value;

use super::at::{At, IMMUTABLE};
use super::taken::Taken;
use super::{internal, resource_names};

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "VolumeAttributesClass",
    "CrossNamespacePodAffinity",
];
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];
const COMPUTE: [&str; 6] =
    ["cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

pub(super) fn body(quota: &At<'_, '_>, errors: &mut ErrorList) {
    spec(&quota.field("spec"), errors);
    amounts(&quota.field("status"), &["hard", "used"], errors);
}

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (now, before) = (new.field("spec"), old.field("spec"));
    spec(&now, errors);
    let (scopes, old_scopes) = (now.field("scopes"), before.field("scopes"));
    let is_within = |one: &[Value], other: &[Value]| {
        let other: Taken<&Value> = other.iter().collect();
        one.iter().all(|scope| other.contains(&scope))
    };
    if !is_within(scopes.list(), old_scopes.list()) || !is_within(old_scopes.list(), scopes.list()) {
        scopes.invalid(errors, IMMUTABLE);
    }
}

pub(super) fn status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    amounts(&new.field("status"), &["hard", "used"], errors);
}

fn amounts(at: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
    for list in fields.iter().map(|field| at.field(field)) {
        for (name, amount) in list.entries() {
            errors.extend(resource_names::check_for_quota(amount.path(), name));
            if let Some(quantity) = amount.quantity() {
                errors.extend(resource_names::check_amount(amount.path(), name, &quantity));
            }
        }
    }
}

fn spec(spec: &At<'_, '_>, errors: &mut ErrorList) {
    amounts(spec, &["hard"], errors);
    let scopes = spec.field("scopes");
    let hard = spec.field("hard");
    let mut seen = Taken::default();
    for scope in scopes.items() {
        if errors.is_full() {
            break;
        }
        if !SCOPES.contains(&scope.text()) {
            scopes.invalid(errors, "unsupported scope");
        } else if !seen.add(scope.text()) && errors.is_empty() {
            // It suits every resource: so it did before.
            continue;
        }
        for _ in hard.entries().filter(|(name, _)| !may_scope(scope.text(), name)) {
            scopes.invalid(errors, "unsupported scope applied to resource");
        }
    }
    let has = |wanted: &str| scopes.items().any(|scope| scope.text() == wanted);
    for _ in CONFLICTS.iter().filter(|pair| pair.iter().all(|scope| has(scope))) {
        scopes.invalid(errors, "conflicting scopes");
    }
    scope_selector(spec, &hard, errors);
}

fn scope_selector(spec: &At<'_, '_>, hard: &At<'_, '_>, errors: &mut ErrorList) {
    const EXISTS: &str = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
        ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or \
        ResourceQuotaScopeCrossNamespacePodAffinity";
    let selector = spec.field("scopeSelector");
    let expressions = selector.field("matchExpressions");
    // Kubernetes: the errors name the list, never the entry.
    for it in expressions.items() {
        if errors.is_full() {
            break;
        }
        let (scope, operator) = (it.text_of("scopeName"), it.text_of("operator"));
        if !SCOPES.contains(&scope) {
            expressions.field("scopeName").invalid_as(errors, BadValue::json(scope), "unsupported scope");
        }
        for _ in hard.entries().filter(|(name, _)| !may_scope(scope, name)) {
            let shown = internal::shown_core("ScopeSelector", &selector);
            expressions.invalid_as(errors, shown, "unsupported scope applied to resource");
        }
        if !matches!(scope, "PriorityClass" | "VolumeAttributesClass")
            && SCOPES.contains(&scope)
            && operator != "Exists"
        {
            expressions.field("operator").invalid_as(errors, BadValue::json(operator), EXISTS);
        }
        let values = it.field("values");
        match (operator, values.is_empty()) {
            ("In" | "NotIn", true) => {
                let problem =
                    "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                expressions.field("values").required(errors, problem);
            }
            ("Exists" | "DoesNotExist", false) => {
                let problem =
                    "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                expressions.field("values").invalid_as(errors, values.value(), problem);
            }
            ("In" | "NotIn" | "Exists" | "DoesNotExist", _) => {}
            _ => {
                let problem = "not a valid selector operator";
                expressions.field("operator").invalid_as(errors, BadValue::json(operator), problem);
            }
        }
    }
    let has = |wanted: &str| expressions.items().any(|it| it.text_of("scopeName") == wanted);
    for _ in CONFLICTS.iter().filter(|pair| pair.iter().all(|scope| has(scope))) {
        expressions.invalid_as(errors, spec.field("scopes").value(), "conflicting scopes");
    }
}

/// Whether a scope means something for a resource.
fn may_scope(scope: &str, name: &str) -> bool {
    if !resource_names::is_standard_quota(name) {
        return true;
    }
    match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        scope if SCOPES.contains(&scope) => name == "pods" || COMPUTE.contains(&name),
        _ => true,
    }
}

pub(super) fn limit_range(range: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = range.field("spec");
    let limits = spec.field("limits");
    let mut taken = Taken::default();
    for limit in limits.items() {
        let sort = limit.field("type");
        sort.is_format(errors, Format::QualifiedName);
        let is_known = matches!(sort.text(), "Pod" | "Container" | "PersistentVolumeClaim");
        if Format::QualifiedName.fits(sort.text()) && !sort.text().contains('/') && !is_known {
            sort.invalid_text(errors, "must be a standard limit type or fully qualified");
        }
        if !taken.add(sort.text()) {
            sort.duplicate(errors);
        }
        limit_names(&limit, sort.text(), errors);
        limit_amounts(&limit, errors);
    }
}

fn limit_names(limit: &At<'_, '_>, sort: &str, errors: &mut ErrorList) {
    for field in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        let list = limit.field(field);
        if sort == "Pod" && field.starts_with("default") {
            if !list.is_empty() {
                list.forbidden(errors, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        for (name, amount) in list.entries() {
            let check: fn(&Path<'_>, &str) -> ErrorList = if matches!(sort, "Pod" | "Container") {
                resource_names::check_for_container
            } else {
                resource_names::check
            };
            errors.extend(check(amount.path(), name));
        }
    }
    let has_storage = |field: &str| limit.field(field).has("storage");
    if sort == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let problem = "either minimum or maximum storage value is required, but neither was provided";
        limit.field("limits").required(errors, problem);
    }
}

fn limit_amounts(limit: &At<'_, '_>, errors: &mut ErrorList) {
    let lists = ["min", "max", "default", "defaultRequest", "maxLimitRequestRatio"].map(|it| limit.field(it));
    let mut names: Vec<_> = lists.iter().flat_map(|list| list.entries().map(|(name, _)| name)).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let [min, max, default, request, ratio] = lists.map(|list| list.field(name).quantity());
        let mut complain = |field: &str, shown: &Quantity, problem: String| {
            let list = limit.field(field);
            errors.push(Error::invalid(&list.path().key(name), BadValue::from(shown.to_string()), problem));
        };
        // The field, both sides of `<=`, which of them is shown, and the words in between.
        for (field, low, high, shows_low, low_name, high_name) in [
            ("min", &min, &max, true, "min value", "max value"),
            ("defaultRequest", &min, &request, false, "min value", "default request value"),
            ("defaultRequest", &request, &max, true, "default request value", "max value"),
            ("defaultRequest", &request, &default, true, "default request value", "default limit value"),
            ("default", &min, &default, true, "min value", "default value"),
            ("default", &default, &max, false, "default value", "max value"),
        ] {
            if let (Some(low), Some(high)) = (low, high)
                && low > high
            {
                let shown = if shows_low { low } else { high };
                complain(field, shown, format!("{low_name} {low} is greater than {high_name} {high}"));
            }
        }
        if let Some(ratio) = &ratio {
            if ratio.cmp_i64(1).is_lt() {
                complain("maxLimitRequestRatio", ratio, format!("ratio {ratio} is less than 1"));
            }
            if let (Some(min), Some(max)) = (&min, &max) {
                let most = max.approximate() / min.approximate();
                if ratio.approximate() > most {
                    let problem = format!("ratio {ratio} is greater than max/min = {most:.6}");
                    complain("maxLimitRequestRatio", ratio, problem);
                }
            }
        }
        if let (Some(default), Some(request)) = (&default, &request)
            && !resource_names::may_overcommit(name)
            && default != request
        {
            let problem =
                format!("default value {default} must equal to defaultRequest value {request} in {name}");
            complain("defaultRequest", request, problem);
        }
    }
}
