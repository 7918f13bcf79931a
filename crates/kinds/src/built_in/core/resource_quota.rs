//! ResourceQuota: what all objects of a namespace may ask for together.

use api::field::{BadValue, ErrorList};
use serde_json::{Map, Value};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{Row, quantity};
use crate::strategy::Strategy;
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, resource_names};

pub(crate) static RESOURCE_QUOTA: BuiltIn = BuiltIn::new(GROUP, "ResourceQuota", "resourcequotas")
    .strategy(Strategy::PLAIN.return_deleted_object().status())
    .validation(
        Validation::new(check)
            .update(UpdateChecks::CHANGE.compare(check_change))
            .subresources(&[("status", check_status)]),
    )
    .warnings(warn)
    .columns(&[
        NAME,
        string("Request", Cell::Computed(|it| used_of_hard(it, false).into())),
        string("Limit", Cell::Computed(|it| used_of_hard(it, true).into())),
        AGE,
    ]);

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

fn check(quota: &At<'_, '_>, errors: &mut ErrorList) {
    check_spec(&quota.field("spec"), errors);
    check_amounts(&quota.field("status"), &["hard", "used"], errors);
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (now, before) = (new.field("spec"), old.field("spec"));
    check_spec(&now, errors);
    let (scopes, old_scopes) = (now.field("scopes"), before.field("scopes"));
    let is_within = |one: &[Value], other: &[Value]| {
        let other: Taken<&Value> = other.iter().collect();
        one.iter().all(|scope| other.contains(&scope))
    };
    if !is_within(scopes.list(), old_scopes.list()) || !is_within(old_scopes.list(), scopes.list()) {
        scopes.invalid(errors, IMMUTABLE);
    }
}

fn check_status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    check_amounts(&new.field("status"), &["hard", "used"], errors);
}

fn check_amounts(at: &At<'_, '_>, fields: &[&str], errors: &mut ErrorList) {
    for list in fields.iter().map(|field| at.field(field)) {
        for (name, amount) in list.entries() {
            errors.extend(resource_names::check_for_quota(amount.path(), name));
            if let Some(quantity) = amount.quantity() {
                errors.extend(resource_names::check_amount(amount.path(), name, &quantity));
            }
        }
    }
}

fn check_spec(spec: &At<'_, '_>, errors: &mut ErrorList) {
    check_amounts(spec, &["hard"], errors);
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
    check_scope_selector(spec, &hard, errors);
}

fn check_scope_selector(spec: &At<'_, '_>, hard: &At<'_, '_>, errors: &mut ErrorList) {
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

/// Kubernetes: resources that begin with `limits.` have a column of their own.
fn used_of_hard(quota: &Row<'_>, of_limits: bool) -> String {
    let (hard, used) = (quota.at("/status/hard"), quota.at("/status/used"));
    let names = hard.as_object().into_iter().flat_map(Map::keys);
    let mut names: Vec<_> = names.filter(|name| name.starts_with("limits.") == of_limits).collect();
    names.sort_unstable();
    let shown = names
        .iter()
        .map(|name| format!("{name}: {}/{}", quantity(&used[name.as_str()]), quantity(&hard[name.as_str()])));
    shown.collect::<Vec<_>>().join(", ")
}

/// Kubernetes: a new quota should not allow more requests than limits.
fn warn(quota: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if old.is_some() {
        return;
    }
    let spec = quota.field("spec");
    let hard = spec.field("hard");
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let names = [format!("requests.{resource}"), resource.to_owned()];
        let names = if matches!(resource, "cpu" | "memory") { &names[..] } else { &names[..1] };
        let Some(name) = names.iter().find(|name| hard.has(name)) else { continue };
        let (request, limit_name) = (hard.field(name), format!("limits.{resource}"));
        let limit = hard.field(&limit_name);
        if let (Some(request), Some(limit)) = (request.quantity(), limit.quantity())
            && request > limit
        {
            warnings
                .push(format!("ResourceQuota {name} ({request}) should be less than {limit_name} ({limit})"));
        }
    }
}
