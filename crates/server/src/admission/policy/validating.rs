//! Validating policies: expressions that must be true for a request.

use super::{
    BoundPolicy, Material, candidates,
    configured::{Policy, PolicyBinding, Validation},
    selection,
};
use crate::admission::{
    Review,
    evaluation::{self, Activation, BUDGET, Evaluation},
    facts::Facts,
};
use crate::refusal::Refusal;
use api::status::{Cause, Reason};
use expression::Value;
use std::collections::BTreeMap;

/// Kubernetes: longer computed messages are not used.
const MAX_MESSAGE_BYTES: usize = 5 << 10;
/// Kubernetes: audit annotations are truncated to this.
const MAX_ANNOTATION_BYTES: usize = 10 << 10;
// Kubernetes: the audit annotation of a failed validation.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// A failed validation or evaluation.
#[derive(Debug)]
struct Denial {
    message: String,
    reason: String,
    /// The index of the failed validation.
    at: usize,
}

/// The result of a policy's evaluation.
#[derive(Debug, Default)]
struct Verdict {
    denials: Vec<Denial>,
    /// Keys and values of audit annotations.
    annotations: Vec<(String, String)>,
}

// Kubernetes: the audit annotation of a denial.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct ValidationFailure<'a> {
    message: &'a str,
    policy: &'a str,
    binding: &'a str,
    expression_index: usize,
    validation_actions: &'a [String],
}

/// Evaluates the matching policies. The first of several denials is answered.
pub(in crate::admission) async fn validate(review: &Review<'_>) -> Result<(), Refusal> {
    let facts = Facts::of(review);
    let policies =
        candidates(&facts, &facts.call.inner.admission.validating_policies, &review.object).await?;
    if policies.is_empty() {
        return Ok(());
    }
    // Boxed: most writes match no policy.
    Box::pin(run_policies(&facts, policies, review)).await
}

async fn run_policies(
    facts: &Facts<'_>,
    policies: Vec<BoundPolicy>,
    review: &Review<'_>,
) -> Result<(), Refusal> {
    let mut denials = Vec::new();
    for (policy, bindings) in policies {
        let face = match selection::of_policy(facts, &policy, &review.object).await {
            Ok(Some(face)) => face,
            Ok(None) => continue,
            Err(problem) => {
                denials.extend(misconfigured(&policy, None, &problem));
                continue;
            }
        };
        let mut material = None;
        let mut notes = BTreeMap::new();
        for binding in bindings {
            let params = match selection::of_binding(facts, &policy, &binding, &review.object).await {
                Ok(params) => params,
                Err(problem) => {
                    denials.extend(misconfigured(&policy, Some(&binding), &problem));
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            let material = match &material {
                Some(material) => material,
                None => material.insert(Material::gather(facts, &face, &review.object).await?),
            };
            for param in &params {
                let activation = material.activation(facts, &policy, param.as_ref());
                let inner = &facts.call.inner;
                let found = facts.authority().answering(inner, || evaluate(&policy, &activation)).await?;
                collect(&mut notes, found.annotations);
                let found = found.denials.into_iter();
                denials.extend(found.filter_map(|denial| act(review, &policy, &binding, denial)));
            }
        }
        for (key, values) in notes {
            review.call.trail.note_from_plugin(&policy.name, &key, || values.join(", "));
        }
    }
    match denials.into_iter().next() {
        None => Ok(()),
        Some(denial) => Err(refusal(facts, review, denial)),
    }
}

/// The same annotation of several bindings is kept once.
fn collect(notes: &mut BTreeMap<String, Vec<String>>, found: Vec<(String, String)>) {
    for (key, mut value) in found {
        crate::audit::cut(&mut value, MAX_ANNOTATION_BYTES);
        let values = notes.entry(key).or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
}

fn misconfigured(policy: &Policy, binding: Option<&PolicyBinding>, problem: &str) -> Option<Denial> {
    let denial = Denial { message: message_of(policy, binding, problem), reason: String::new(), at: 0 };
    (!policy.fails_open).then_some(denial)
}

fn message_of(policy: &Policy, binding: Option<&PolicyBinding>, problem: &str) -> String {
    let name = &policy.name;
    match binding {
        Some(binding) => format!(
            "ValidatingAdmissionPolicy '{name}' with binding '{}' denied request: {problem}",
            binding.name
        ),
        None => format!("ValidatingAdmissionPolicy '{name}' denied request: {problem}"),
    }
}

/// Carries out the binding's validationActions; returns the denial where they include Deny.
fn act(review: &Review<'_>, policy: &Policy, binding: &PolicyBinding, denial: Denial) -> Option<Denial> {
    let has = |wanted: &str| binding.actions.iter().any(|action| action == wanted);
    if has("Warn") {
        review.call.warn(format!(
            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
            policy.name, binding.name, denial.message
        ));
    }
    if has("Audit") {
        review.call.trail.note(FAILURE, || {
            let failure = ValidationFailure {
                message: &denial.message,
                policy: &policy.name,
                binding: &binding.name,
                expression_index: denial.at,
                validation_actions: &binding.actions,
            };
            serde_json::to_string(&[failure]).unwrap_or_default()
        });
    }
    let message = message_of(policy, Some(binding), &denial.message);
    has("Deny").then_some(Denial { message, ..denial })
}

/// Evaluates all validations and audit annotations of a policy.
fn evaluate(policy: &Policy, activation: &Activation<'_>) -> Verdict {
    let compiled = policy.compiled();
    let denial = |message: String, at: usize| {
        (!policy.fails_open).then_some(Denial { message, reason: String::new(), at })
    };
    let failed = |message: String| {
        let denials = denial(message, 0).into_iter().collect();
        Verdict { denials, ..Verdict::default() }
    };
    if !compiled.conditions.is_empty() {
        // Kubernetes: match conditions do not see the namespace.
        let activation = Activation { namespace: &serde_json::Value::Null, ..copy(activation) };
        match evaluation::holds(&compiled.conditions, &activation) {
            Ok(true) => {}
            Ok(false) => return Verdict::default(),
            Err(problem) => return failed(problem),
        }
    }
    let evaluation = Evaluation::new(activation, BUDGET);
    let mut outcomes = Vec::new();
    for validation in &compiled.validations {
        match evaluation.run(&validation.expression) {
            Ok(outcome) => outcomes.push((validation, outcome)),
            Err(spent) => return failed(spent),
        }
    }
    let mut verdict = Verdict::default();
    let messages = Evaluation::new(activation, evaluation.budget());
    for (at, (validation, outcome)) in outcomes.into_iter().enumerate() {
        let found = match outcome {
            Ok(Value::Bool(true)) => None,
            Ok(_) => match message(validation, &messages) {
                Ok(message) => Some(Denial { message, reason: validation.reason.clone(), at }),
                Err(spent) => denial(format!("failed messageExpression: {spent}"), at),
            },
            Err(problem) => denial(problem, at),
        };
        verdict.denials.extend(found);
    }
    let annotations = Evaluation::new(activation, BUDGET);
    for annotation in &compiled.annotations {
        match annotations.run(annotation) {
            Err(spent) => return failed(spent),
            Ok(Err(problem)) => verdict.denials.extend(denial(problem, 0)),
            Ok(Ok(Value::String(text))) if !text.trim().is_empty() => {
                verdict.annotations.push((annotation.name.clone(), text.trim().to_owned()));
            }
            Ok(Ok(_)) => {}
        }
    }
    verdict
}

fn copy<'a>(activation: &Activation<'a>) -> Activation<'a> {
    Activation { ..*activation }
}

/// The messageExpression's value if it is usable, else the message, else the expression.
fn message(validation: &Validation, messages: &Evaluation<'_>) -> Result<String, String> {
    if let Some(expression) = &validation.message_expression
        && let Ok(Value::String(text)) = messages.run(expression)?
    {
        let text = text.trim();
        if !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n') {
            return Ok(text.to_owned());
        }
    }
    match validation.message.as_str() {
        "" => Ok(format!("failed expression: {}", validation.expression.source.trim())),
        message => Ok(message.to_owned()),
    }
}

fn refusal(facts: &Facts<'_>, review: &Review<'_>, denial: Denial) -> Refusal {
    let reason = if denial.reason.is_empty() { "Invalid" } else { &denial.reason };
    let code = match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    let refusal = facts.forbidden(&review.object, &denial.message);
    refusal.with_reason(Reason::from(reason), Some(code)).with_cause(Cause::new("", denial.message))
}
