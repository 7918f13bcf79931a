//! Fault: something that goes wrong for requests, by the same engine as in tests in Rust.

use super::duration;
use crate::{Cluster, Fault, Rule, problem::Problem};
use serde_json::{Value, json};

/// Adds the fault of a spec.
pub(crate) fn inject(cluster: &Cluster, name: &str, spec: &Value) -> Result<Value, Problem> {
    let fault = with_effect(rule(spec), spec)?;
    let injected = cluster.transport.faults.inject(fault);
    cluster.kept().faults.insert(name.to_owned(), injected);
    Ok(json!({"hits": 0}))
}

fn rule(spec: &Value) -> Rule {
    let wanted = |field: &str| spec["match"][field].as_str();
    let rule = Fault::on(wanted("verb").unwrap_or("*"), wanted("resource").unwrap_or("*"));
    let narrow = |rule: Rule, field: &str, narrow: fn(Rule, &str) -> Rule| match wanted(field) {
        Some(value) => narrow(rule, value),
        None => rule,
    };
    let rule = narrow(rule, "group", Rule::in_group);
    let rule = narrow(rule, "namespace", Rule::in_namespace);
    let rule = narrow(rule, "name", Rule::named);
    let rule = narrow(rule, "user", Rule::by);
    let rule = narrow(rule, "client", Rule::by_agent);
    let rule = rule.from(spec["skip"].as_u64().unwrap_or_default() + 1);
    match spec["times"].as_u64() {
        Some(times) => rule.times(times),
        None => rule,
    }
}

fn with_effect(rule: Rule, spec: &Value) -> Result<Fault, Problem> {
    if let Some(delay) = duration(spec, "delay")? {
        return Ok(rule.delay(delay));
    }
    if let Some(lag) = duration(spec, "lagWatch")? {
        return Ok(rule.lag(lag));
    }
    if let Some(lost) = spec["lose"].as_str() {
        return Ok(if lost == "Answer" { rule.lose_answer() } else { rule.lose_request() });
    }
    if let Some(revisions) = spec["stale"]["revisions"].as_u64() {
        return Ok(rule.stale(revisions));
    }
    if let Some(ending) = spec["endWatch"].as_object() {
        let after = ending.get("after").and_then(Value::as_u64).unwrap_or_default();
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        return Ok(match ending.get("how").and_then(Value::as_str) {
            Some("Close") => rule.close_after(after),
            Some("Expire") => rule.expire_after(after),
            _ => rule.cut_after(after),
        });
    }
    let code = spec["refuse"]["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(500);
    Ok(rule.error(code, spec["refuse"]["reason"].as_str().unwrap_or_else(|| usual_reason(code))))
}

/// The reason with which Kubernetes answers this code.
fn usual_reason(code: u16) -> &'static str {
    match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "InternalError",
    }
}
