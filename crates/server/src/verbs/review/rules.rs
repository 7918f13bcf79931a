//! SelfSubjectRulesReview: all rules that apply to the caller in a namespace.

use crate::{
    authorize::{self, AuthorizationMode, RoleRef, Rule},
    call::Call,
    refusal::Refusal,
};
use serde_json::{Value, json};

pub(super) async fn of_caller(call: &Call, review: &Value) -> Result<Value, Refusal> {
    let namespace = review["spec"]["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(Refusal::bad_request("no namespace on request"));
    }
    let (inner, caller) = (&call.inner, call.caller());
    let has = |mode| inner.authorizer.modes.contains(&mode);
    let (mut rules, missing) = match has(AuthorizationMode::Rbac) {
        true => inner.authorizer.rbac.rules_for(inner.store.as_ref(), caller, namespace).await?,
        false => Default::default(),
    };
    if has(AuthorizationMode::AlwaysAllow) {
        rules.extend(Rule::everything());
    }
    let is_node = has(AuthorizationMode::Node) && authorize::node_identity(caller).is_some();
    let mut problems = Vec::new();
    if is_node {
        problems.push("node authorizer does not support user rule resolution".to_owned());
    }
    if !missing.is_empty() {
        problems.push(RoleRef::in_one(&missing, RoleRef::missing));
    }
    let about_resources = rules.iter().filter(|rule| !rule.resources.is_empty()).map(of_resource);
    let about_paths = rules.iter().filter(|rule| !rule.paths.is_empty()).map(of_path);
    let mut status = json!({
        "resourceRules": about_resources.collect::<Vec<_>>(),
        "nonResourceRules": about_paths.collect::<Vec<_>>(),
        "incomplete": is_node,
    });
    match &problems[..] {
        [] => {}
        [only] => status["evaluationError"] = only.clone().into(),
        several => status["evaluationError"] = format!("[{}]", several.join(", ")).into(),
    }
    // Kubernetes: the spec of the answer is empty.
    Ok(json!({
        "kind": call.served.resource.kind, "apiVersion": call.served.api_version(),
        "metadata": {}, "spec": {}, "status": status,
    }))
}

fn of_resource(rule: &Rule) -> Value {
    json!(Rule { paths: Vec::new(), ..rule.clone() })
}

fn of_path(rule: &Rule) -> Value {
    json!(Rule { verbs: rule.verbs.clone(), paths: rule.paths.clone(), ..Rule::default() })
}
