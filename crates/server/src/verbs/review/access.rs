//! SubjectAccessReview, its local form and SelfSubjectAccessReview.

use crate::{
    authenticate::Caller,
    authorize::{self, Attributes, OnResource},
    call::Call,
    refusal::Refusal,
};
use api::{
    field_selector,
    label_selector::{LabelSelector, LabelSelectorRequirement, Selector},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub(super) async fn decide(call: &Call, mut review: Value) -> Result<Value, Refusal> {
    let spec = &review["spec"];
    let subject = match &*call.served.resource.kind {
        "SelfSubjectAccessReview" => call.caller().clone(),
        _ => subject(spec),
    };
    let mut problems = Vec::new();
    let on = &spec["resourceAttributes"];
    let fields = fields(&on["fieldSelector"], &mut problems);
    check_labels(&on["labelSelector"], &mut problems);
    let attributes = if on.is_null() {
        let path = &spec["nonResourceAttributes"];
        Attributes::Path { verb: text(&path["verb"]), path: text(&path["path"]) }
    } else {
        Attributes::Resource(OnResource {
            verb: text(&on["verb"]),
            group: text(&on["group"]),
            resource: text(&on["resource"]),
            subresource: text(&on["subresource"]),
            namespace: text(&on["namespace"]),
            name: text(&on["name"]),
            fields: Some(&fields),
        })
    };
    let decision = authorize::allows(&call.inner, &subject, &attributes).await?;
    let mut status = json!({"allowed": decision.is_allowed});
    if !decision.reason.is_empty() {
        status["reason"] = decision.reason.into();
    }
    if !problems.is_empty() {
        status["evaluationError"] = problems.join("; ").into();
    }
    review["status"] = status;
    Ok(review)
}

/// The user of the review, only in the groups that it names.
fn subject(spec: &Value) -> Caller {
    let extra = spec["extra"].as_object().into_iter().flatten();
    Caller {
        name: text(&spec["user"]).to_owned(),
        uid: text(&spec["uid"]).to_owned(),
        groups: texts(&spec["groups"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect::<BTreeMap<_, _>>(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Reports requirements of a selector that could not be parsed.
fn report(field: &str, lost: usize, kept: usize, problems: &mut Vec<String>) {
    if lost > 0 {
        let partially = if kept > 0 { "partially " } else { "" };
        problems.push(format!("spec.resourceAttributes.{field} {partially}ignored due to parse error"));
    }
}

/// The requirements that can be parsed. Fewer requirements ask for more access, so nothing is allowed by
/// mistake.
fn fields(selector: &Value, problems: &mut Vec<String>) -> field_selector::FieldSelector {
    if let Some(raw) = selector["rawSelector"].as_str().filter(|raw| !raw.is_empty()) {
        return raw.parse().unwrap_or_else(|_| {
            report("fieldSelector", 1, 0, problems);
            field_selector::FieldSelector::default()
        });
    }
    let requirements = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    let terms: Vec<String> = requirements.iter().filter_map(field_term).collect();
    report("fieldSelector", requirements.len() - terms.len(), terms.len(), problems);
    terms.join(",").parse().unwrap_or_default()
}

fn field_term(requirement: &Value) -> Option<String> {
    let operator = match text(&requirement["operator"]) {
        "In" => "=",
        "NotIn" => "!=",
        _ => return None,
    };
    match &texts(&requirement["values"])[..] {
        [value] => Some(format!("{}{operator}{}", text(&requirement["key"]), field_selector::escape(value))),
        _ => None,
    }
}

/// Kubernetes: no authorizer here decides by labels, but parse errors are reported.
fn check_labels(selector: &Value, problems: &mut Vec<String>) {
    if let Some(raw) = selector["rawSelector"].as_str().filter(|raw| !raw.is_empty()) {
        report("labelSelector", usize::from(raw.parse::<Selector>().is_err()), 0, problems);
        return;
    }
    let requirements = selector["requirements"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_read = |requirement: &&Value| {
        let requirement = LabelSelectorRequirement::deserialize(*requirement);
        let alone =
            requirement.map(|it| LabelSelector { match_expressions: vec![it], ..LabelSelector::default() });
        alone.is_ok_and(|selector| selector.to_selector().is_ok())
    };
    let kept = requirements.iter().filter(is_read).count();
    report("labelSelector", requirements.len() - kept, kept, problems);
}
