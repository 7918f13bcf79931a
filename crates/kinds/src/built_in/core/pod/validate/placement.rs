//! Where a pod may run: node selectors, affinity, tolerations and topology spread.

use std::collections::HashMap;

use api::field::{Error, ErrorList};
use api::name::{self, Format};
use serde_json::Value;

use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::taken::Taken;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn affinity(affinity: &At<'_, '_>, errors: &mut ErrorList) {
    let nodes = affinity.field("nodeAffinity");
    let required = nodes.field(REQUIRED);
    if required.is_set() {
        node_selector(&required, errors);
    }
    let preferred = nodes.field(PREFERRED);
    for term in preferred.items() {
        weight(&term, errors);
        node_term(&term.field("preference"), false, errors);
    }
    for field in ["podAffinity", "podAntiAffinity"] {
        let pods = affinity.field(field);
        let required = pods.field(REQUIRED);
        for term in required.items() {
            pod_term(&term, errors);
        }
        let preferred = pods.field(PREFERRED);
        for term in preferred.items() {
            weight(&term, errors);
            pod_term(&term.field("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &At<'_, '_>, errors: &mut ErrorList) {
    let weight = term.field("weight");
    if !(1..=100).contains(&weight.int()) {
        weight.invalid_int(errors, "must be in the range 1-100");
    }
}

pub(crate) fn node_selector(selector: &At<'_, '_>, errors: &mut ErrorList) {
    let terms = selector.field("nodeSelectorTerms");
    if terms.is_empty() {
        terms.required(errors, "must have at least one node selector term");
    }
    for term in terms.items() {
        node_term(&term, true, errors);
    }
}

fn node_term(term: &At<'_, '_>, check_values: bool, errors: &mut ErrorList) {
    let expressions = term.field("matchExpressions");
    for expression in expressions.items() {
        node_expression(&expression, check_values, errors);
    }
    let fields = term.field("matchFields");
    for field in fields.items() {
        node_field(&field, errors);
    }
}

fn node_expression(expression: &At<'_, '_>, check_values: bool, errors: &mut ErrorList) {
    let (operator, values) = (expression.field("operator"), expression.field("values"));
    match (operator.text(), values.list().len()) {
        ("In" | "NotIn", 0) => {
            values.required(errors, "must be specified when `operator` is 'In' or 'NotIn'")
        }
        ("Exists" | "DoesNotExist", 1..) => {
            let problem = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            values.forbidden(errors, problem);
        }
        ("Gt" | "Lt", count) if count != 1 => {
            values.required(errors, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        ("In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt", _) => {}
        _ => operator.invalid_text(errors, "not a valid selector operator"),
    }
    label_key(&expression.field("key"), errors);
    for value in values.items().filter(|_| check_values) {
        value.is_format(errors, Format::LabelValue);
    }
}

fn node_field(field: &At<'_, '_>, errors: &mut ErrorList) {
    let (operator, values, key) = (field.field("operator"), field.field("values"), field.field("key"));
    match operator.text() {
        "In" | "NotIn" if values.list().len() != 1 => {
            let problem = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            values.required(errors, problem);
        }
        "In" | "NotIn" => {}
        _ => operator.invalid_text(errors, "not a valid selector operator"),
    }
    if key.text() != "metadata.name" {
        key.invalid_text(errors, "not a valid field selector key");
        return;
    }
    for value in values.items() {
        value.is_format(errors, Format::Dns1123Subdomain);
    }
}

fn label_key(key: &At<'_, '_>, errors: &mut ErrorList) {
    errors.extend(name::label_key(key.path(), key.text()));
}

fn pod_term(term: &At<'_, '_>, errors: &mut ErrorList) {
    selector::check(&term.field("labelSelector"), errors);
    selector::check(&term.field("namespaceSelector"), errors);
    let namespaces = term.field("namespaces");
    for namespace in namespaces.items() {
        errors.extend(Format::Dns1123Label.check(&term.path().child("namespace"), namespace.text()));
    }
    label_keys(term, errors);
    let topology = term.field("topologyKey");
    if topology.text().is_empty() {
        topology.required(errors, "can not be empty");
    }
    label_key(&topology, errors);
}

/// Labels of the pod itself that its selector takes up.
fn label_keys(at: &At<'_, '_>, errors: &mut ErrorList) {
    let selector = at.field("labelSelector");
    let (same, other) = (at.field("matchLabelKeys"), at.field("mismatchLabelKeys"));
    for keys in [&same, &other] {
        if !keys.is_empty() && !selector.is_set() {
            keys.forbidden(errors, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            label_key(&key, errors);
        }
    }
    let others = other.items().map(|other| other.text()).collect::<Taken<_>>();
    for key in same.items().filter(|key| others.contains(key.text())) {
        key.invalid_text(errors, "exists in both matchLabelKeys and mismatchLabelKeys");
    }
}

pub(super) fn spread(constraints: &At<'_, '_>, errors: &mut ErrorList) {
    let key = |constraint: &Value| {
        let text = |field: &str| constraint.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("topologyKey"), text("whenUnsatisfiable"))
    };
    // Kubernetes: of two that are the same, the first is the wrong one.
    let mut later = HashMap::<_, usize>::new();
    constraints.list().iter().for_each(|it| *later.entry(key(it)).or_default() += 1);
    for constraint in constraints.items() {
        let skew = constraint.field("maxSkew");
        if skew.int() <= 0 {
            skew.invalid_int(errors, "must be greater than zero");
        }
        let (topology, when) = (constraint.field("topologyKey"), constraint.field("whenUnsatisfiable"));
        if topology.text().is_empty() {
            topology.required(errors, "can not be empty");
        }
        when.one_of(errors, &["DoNotSchedule", "ScheduleAnyway"]);
        let count = later.entry(key(constraint.value())).or_default();
        *count = count.saturating_sub(1);
        if *count > 0 {
            let path = constraint.path().child("{topologyKey, whenUnsatisfiable}");
            errors.push(Error::duplicate(&path, format!("{{{}, {}}}", topology.text(), when.text())));
        }
        let domains = constraint.field("minDomains");
        if domains.is_set() && domains.int() <= 0 {
            domains.invalid_int(errors, "must be greater than zero");
        }
        if domains.is_set() && when.text() != "DoNotSchedule" {
            let problem =
                format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}", when.text());
            domains.invalid_int(errors, problem);
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.field(policy).optional_one_of(errors, &["Honor", "Ignore"]);
        }
        label_keys(&constraint, errors);
        selector::check(&constraint.field("labelSelector"), errors);
    }
}

pub(crate) fn tolerations(tolerations: &At<'_, '_>, errors: &mut ErrorList) {
    for toleration in tolerations.items() {
        let (key, operator) = (toleration.field("key"), toleration.field("operator"));
        let (effect, value) = (toleration.field("effect"), toleration.text_of("value"));
        if !key.text().is_empty() {
            label_key(&key, errors);
        }
        if key.text().is_empty() && operator.text() != "Exists" {
            let problem =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            operator.invalid_text(errors, problem);
        }
        if toleration.has("tolerationSeconds") && effect.text() != "NoExecute" {
            effect.invalid_text(errors, "effect must be 'NoExecute' when `tolerationSeconds` is set");
        }
        match operator.text() {
            "Equal" | "" => {
                let problems = Format::LabelValue.problems(value);
                if !problems.is_empty() {
                    operator.invalid_as(errors, value, problems.join(";"));
                }
            }
            "Exists" if !value.is_empty() => {
                operator.invalid_as(errors, value, "value must be empty when `operator` is 'Exists'");
            }
            "Exists" => {}
            "Lt" | "Gt" => operator.unsupported(errors, &["Equal", "Exists", "Lt", "Gt"]),
            _ => operator.unsupported(errors, &["Equal", "Exists"]),
        }
        if !effect.text().is_empty() {
            taint_effect(&effect, errors);
        }
    }
}

pub(crate) fn taint_effect(effect: &At<'_, '_>, errors: &mut ErrorList) {
    effect.required_one_of(errors, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
}
