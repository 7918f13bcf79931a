//! Admission policies: CEL expressions that validate or change an object within the server.
//!
//! | file | content |
//! |---|---|
//! | `configured` | policies and their bindings → candidates for a resource, compiled when first needed |
//! | `selection` | the policies and bindings that apply to a request |
//! | `params` | the objects that a binding passes to its policy |
//! | `validating` | decisions: deny, warn |
//! | `mutating` | changes: a configuration to apply, or a patch |

mod configured;
mod merge;
mod mutating;
mod params;
mod selection;
mod validating;

pub(super) use configured::Policies;
pub(super) use mutating::mutate;
pub(super) use validating::validate;

use super::{NOT_READY, evaluation::Activation, facts::Facts};
use crate::{live::Live, refusal::Refusal, served::Served};
use configured::{Policy, PolicyBinding};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A policy and its bindings.
type BoundPolicy = (Arc<Policy>, Vec<Arc<PolicyBinding>>);

/// The inputs of a policy's expressions.
#[derive(Debug)]
struct Material {
    object: Value,
    old: Value,
    request: Value,
    namespace: Value,
}

impl Material {
    async fn gather(facts: &Facts<'_>, face: &Arc<Served>, object: &Value) -> Result<Material, Refusal> {
        Ok(Material {
            object: facts.shown(face, object).await?,
            old: facts.shown(face, facts.old.unwrap_or(&Value::Null)).await?,
            request: Value::Object(facts.request(face, object)),
            namespace: namespace(facts, object).await?,
        })
    }

    fn activation<'a>(
        &'a self,
        facts: &'a Facts<'_>,
        policy: &'a Policy,
        params: Option<&'a Value>,
    ) -> Activation<'a> {
        Activation {
            object: &self.object,
            old: &self.old,
            request: &self.request,
            params,
            namespace: &self.namespace,
            authority: Some(facts.authority()),
            variables: &policy.compiled().variables,
        }
    }
}

/// Kubernetes: the metadata of a namespace that expressions see.
const NAMESPACE_METADATA: [&str; 12] = [
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

async fn namespace(facts: &Facts<'_>, object: &Value) -> Result<Value, Refusal> {
    // Kubernetes: `namespaceObject` is null for a Namespace.
    if facts.is_namespace() {
        return Ok(Value::Null);
    }
    let Some(stored) = facts.stored_namespace(object).await? else { return Ok(Value::Null) };
    let metadata = stored["metadata"].as_object().into_iter().flatten();
    let metadata = metadata.filter(|(name, _)| NAMESPACE_METADATA.contains(&name.as_str()));
    let metadata: Map<String, Value> = metadata.map(|(name, value)| (name.clone(), value.clone())).collect();
    Ok(serde_json::json!({"metadata": metadata, "spec": stored["spec"], "status": stored["status"]}))
}

async fn candidates(
    facts: &Facts<'_>,
    policies: &Live<Policies>,
    object: &Value,
) -> Result<Vec<BoundPolicy>, Refusal> {
    if facts.is_exempt() {
        return Ok(Vec::new());
    }
    let store = &*facts.call.inner.store;
    let found = policies.look(store, |policies| policies.candidates(facts.resource())).await;
    found?.ok_or_else(|| facts.forbidden(object, NOT_READY))
}
