//! Admission webhooks: mutating ones are called in turn, validating ones in parallel.

mod configured;
mod exchange;

pub(super) use configured::Configurations;

use super::{
    NOT_READY, Review,
    evaluation::{self, Activation},
    facts::Facts,
    reinvocation::Reinvocation,
};
use crate::{audit_trail::Trail, live::Live, refusal::Refusal, served::Served};
use configured::Webhook;
use exchange::{Reply, WebhookFailure};
use schema::{
    decode::FieldValidation,
    patch::json::{JsonPatch, Reading},
};
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, atomic::Ordering::Relaxed};

// Kubernetes: prefixes of audit annotations.
const MUTATION: &str = "mutation.webhook.admission.k8s.io/";
const PATCH: &str = "patch.webhook.admission.k8s.io/";
const VALIDATION: &str = "validating.webhook.admission.k8s.io/";

/// Audit annotations of a webhook call.
struct WebhookAudit<'a> {
    trail: &'a Trail,
    hook: &'a Webhook,
    round: u8,
}

// Kubernetes: these fields, in this order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WebhookAnnotation<'a> {
    configuration: &'a str,
    webhook: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
}

impl WebhookAnnotation<'_> {
    fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl WebhookAudit<'_> {
    fn key(&self, prefix: &str) -> String {
        format!("{prefix}round_{}_index_{}", self.round, self.hook.ordinal.load(Relaxed))
    }

    fn mutated(&self, mutated: bool) {
        if self.trail.is_kept() {
            let annotation = WebhookAnnotation { mutated: Some(mutated), ..self.annotation() };
            self.trail.note(&self.key(MUTATION), || annotation.text());
        }
    }

    /// A patch holds object content: it is recorded only at levels that record objects.
    fn patched(&self, patch: &Value) {
        if self.trail.is_kept() {
            let annotation =
                WebhookAnnotation { patch: Some(patch), patch_type: Some("JSONPatch"), ..self.annotation() };
            self.trail.note_of_request(&self.key(PATCH), || annotation.text());
        }
    }

    fn annotation(&self) -> WebhookAnnotation<'_> {
        let Webhook { configuration, name, .. } = self.hook;
        WebhookAnnotation { configuration, webhook: name, mutated: None, patch: None, patch_type: None }
    }

    fn failed_open(&self, sort: &str) {
        if self.trail.is_kept() {
            let key = self.key(&format!("failed-open.{sort}"));
            self.trail.note(&key, || self.hook.name.clone());
        }
    }
}

/// Calls the mutating webhooks and applies their patches.
pub(super) async fn mutate(review: &mut Review<'_>, rounds: &mut Reinvocation) -> Result<(), Refusal> {
    let facts = Facts::of(review);
    let hooks = candidates(&facts, &facts.call.inner.admission.mutating_webhooks, &review.object).await?;
    if hooks.is_empty() {
        return Ok(());
    }
    // Boxed: most writes match no webhook.
    Box::pin(call_in_turn(&facts, hooks, review, rounds)).await
}

async fn call_in_turn(
    facts: &Facts<'_>,
    hooks: Vec<Arc<Webhook>>,
    review: &mut Review<'_>,
    rounds: &mut Reinvocation,
) -> Result<(), Refusal> {
    let is_second = rounds.is_second;
    rounds.webhooks.begin(is_second, &review.object);
    for hook in hooks {
        let Some(face) = version_to_call(&hook, facts, &review.object).await? else { continue };
        if !rounds.webhooks.is_due(is_second, &hook.id) {
            continue;
        }
        let before = review.object.clone();
        let audit = WebhookAudit { trail: &facts.call.trail, hook: &hook, round: u8::from(is_second) };
        let outcome = apply(&hook, facts, &face, &mut review.object, &audit).await;
        audit.mutated(before != review.object);
        match outcome {
            Ok(()) => {}
            Err(WebhookFailure::Refused(refusal)) => return Err(refusal),
            Err(WebhookFailure::Call(problem)) if hook.fails_open => {
                ignore(&hook, &problem);
                audit.failed_open(MUTATION);
            }
            Err(WebhookFailure::Call(problem)) => return Err(failed(&hook, &problem)),
        }
        if before != review.object {
            rounds.webhooks.reinvoke_earlier();
            rounds.is_wanted = true;
        }
        if hook.is_reinvocable {
            rounds.webhooks.mark_invoked(&hook.id);
        }
    }
    rounds.webhooks.end(&review.object);
    Ok(())
}

/// Calls the validating webhooks. The first of several rejections is answered.
pub(super) async fn validate(review: &Review<'_>) -> Result<(), Refusal> {
    let facts = Facts::of(review);
    let hooks = candidates(&facts, &facts.call.inner.admission.validating_webhooks, &review.object).await?;
    if hooks.is_empty() {
        return Ok(());
    }
    Box::pin(call_all(&facts, hooks, review)).await
}

async fn call_all(facts: &Facts<'_>, hooks: Vec<Arc<Webhook>>, review: &Review<'_>) -> Result<(), Refusal> {
    let mut calls = Vec::new();
    for hook in hooks {
        if let Some(face) = version_to_call(&hook, facts, &review.object).await? {
            calls.push((hook, face));
        }
    }
    let calls = calls.iter().map(|(hook, face)| async {
        match exchange::call(hook, facts, face, &review.object, exchange::WebhookKind::Validating).await {
            Ok(_) => Ok(()),
            Err(WebhookFailure::Refused(refusal)) => Err(refusal),
            Err(WebhookFailure::Call(problem)) if hook.fails_open => {
                ignore(hook, &problem);
                WebhookAudit { trail: &facts.call.trail, hook, round: 0 }.failed_open(VALIDATION);
                Ok(())
            }
            Err(WebhookFailure::Call(problem)) => Err(failed(hook, &problem)),
        }
    });
    futures::future::join_all(calls).await.into_iter().collect()
}

async fn candidates(
    facts: &Facts<'_>,
    configured: &Live<Configurations>,
    object: &Value,
) -> Result<Vec<Arc<Webhook>>, Refusal> {
    if facts.is_exempt() {
        return Ok(Vec::new());
    }
    let store = &*facts.call.inner.store;
    let found = configured.look(store, |configured| configured.candidates(facts.resource())).await;
    found?.ok_or_else(|| facts.forbidden(object, NOT_READY))
}

/// The version to call a webhook with; `None` if it does not match.
async fn version_to_call(
    hook: &Webhook,
    facts: &Facts<'_>,
    object: &Value,
) -> Result<Option<Arc<Served>>, Refusal> {
    let Some(face) = hook.criteria.matches(facts, object).await? else { return Ok(None) };
    let conditions = hook.conditions();
    if conditions.is_empty() {
        return Ok(Some(face));
    }
    let shown = facts.shown(&face, object).await?;
    let old = facts.shown(&face, facts.old.unwrap_or(&Value::Null)).await?;
    let request = Value::Object(facts.request(&face, object));
    let activation = Activation {
        object: &shown,
        old: &old,
        request: &request,
        params: None,
        namespace: &Value::Null,
        authority: Some(facts.authority()),
        variables: &[],
    };
    let inner = &facts.call.inner;
    match facts.authority().answering(inner, || evaluation::holds(conditions, &activation)).await? {
        Ok(true) => Ok(Some(face)),
        Ok(false) => Ok(None),
        Err(_) if hook.fails_open => Ok(None),
        Err(problem) => Err(facts.forbidden(object, &problem)),
    }
}

/// Calls a webhook and applies its patch.
async fn apply(
    hook: &Webhook,
    facts: &Facts<'_>,
    face: &Arc<Served>,
    object: &mut Value,
    audit: &WebhookAudit<'_>,
) -> Result<(), WebhookFailure> {
    let Reply { patch, shown } =
        exchange::call(hook, facts, face, object, exchange::WebhookKind::Mutating).await?;
    let Some(patch) = patch else { return Ok(()) };
    let undecodable = |problem: String| {
        WebhookFailure::Call(format!("received undecodable patch in webhook response: {problem}"))
    };
    let patch = schema::decode::decode_json(&patch, FieldValidation::Ignore);
    let patch = patch.map_err(|error| undecodable(error.to_string()))?.value;
    let operations =
        JsonPatch::decode(&patch, Reading::Lenient).map_err(|error| undecodable(error.to_string()))?;
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    if shown.is_null() {
        let name = api::go::quote(&hook.name);
        return Err(WebhookFailure::Refused(Refusal::internal_error(format!(
            "admission webhook {name} attempted to modify the object, which is not supported for this operation"
        ))));
    }
    audit.patched(&patch);
    let patched =
        operations.apply(shown).map_err(|error| WebhookFailure::Refused(Refusal::internal_error(error)))?;
    *object = facts.adopted(face, &patched, object).await.map_err(WebhookFailure::Refused)?;
    Ok(())
}

fn ignore(hook: &Webhook, problem: &str) {
    tracing::warn!(webhook = hook.name, problem, "webhook call failed: ignored because of its failurePolicy");
}

fn failed(hook: &Webhook, problem: &str) -> Refusal {
    Refusal::internal_error(format!("failed calling webhook {}: {problem}", api::go::quote(&hook.name)))
}
