//! Which policies and bindings apply to a request, and with which parameters.

use super::{
    configured::{Policy, PolicyBinding},
    params,
};
use crate::{admission::facts::Facts, refusal::Refusal, served::Served};
use serde_json::Value;
use std::sync::Arc;

/// The version in which a policy sees the object; `None` where it does not apply. The error is one of the
/// policy's configuration.
pub(super) async fn of_policy(
    facts: &Facts<'_>,
    policy: &Policy,
    object: &Value,
) -> Result<Option<Arc<Served>>, String> {
    let misconfigured = |problem: String| format!("failed to configure policy: {problem}");
    let matched = policy.criteria.matches(facts, object).await;
    let Some(version) = matched.map_err(|refusal| misconfigured(refusal.to_string()))? else {
        return Ok(None);
    };
    params::check_kind(facts, policy).await.map_err(misconfigured)?;
    Ok(Some(version))
}

/// The parameters of each evaluation under a binding; none where it does not match. The error is one of the
/// binding's configuration.
pub(super) async fn of_binding(
    facts: &Facts<'_>,
    policy: &Policy,
    binding: &PolicyBinding,
    object: &Value,
) -> Result<Vec<Option<Value>>, String> {
    let misconfigured = |problem: String| format!("failed to configure binding: {problem}");
    if !matches_binding(facts, binding, object).await.map_err(|refusal| misconfigured(refusal.to_string()))? {
        return Ok(Vec::new());
    }
    params::collect(facts, policy, binding, object).await.map_err(misconfigured)
}

async fn matches_binding(
    facts: &Facts<'_>,
    binding: &PolicyBinding,
    object: &Value,
) -> Result<bool, Refusal> {
    match &binding.criteria {
        None => Ok(true),
        Some(criteria) => criteria.matches(facts, object).await.map(|version| version.is_some()),
    }
}
