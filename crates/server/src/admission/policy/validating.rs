//! Validating policies: expressions that must be true of a write.

use super::{
    Material, candidates,
    configured::{Binding, Policy, Validation},
    params,
};
use crate::admission::{
    Review,
    evaluation::{self, BUDGET, Evaluation, Scene},
    facts::Facts,
};
use api::status::{Cause, Reason, Status};
use expression::Value;

/// Kubernetes: a computed message that is longer is not shown.
const MAX_MESSAGE_BYTES: usize = 5 << 10;

/// Why a write is not let through.
#[derive(Debug)]
struct Denial {
    message: String,
    reason: String,
}

/// Asks the policies. Of several denials the first one is told.
pub(in crate::admission) async fn validate(review: &Review<'_>) -> Result<(), Status> {
    let facts = Facts::of(review);
    let mut denials = Vec::new();
    for (policy, bindings) in candidates(&facts, &facts.call.inner.admission.validating_policies).await? {
        let face = match policy.criteria.matches(&facts, &review.object).await {
            Ok(Some(face)) => face,
            Ok(None) => continue,
            Err(status) => {
                let problem = format!("failed to configure policy: {}", status.message);
                denials.extend(misconfigured(&policy, None, &problem));
                continue;
            }
        };
        let mut material = None;
        for binding in bindings {
            let params = match prepare(&facts, review, &policy, &binding).await {
                Ok(params) => params,
                Err(problem) => {
                    let problem = format!("failed to configure binding: {problem}");
                    denials.extend(misconfigured(&policy, Some(&binding), &problem));
                    continue;
                }
            };
            if params.is_empty() {
                continue;
            }
            let material = match &material {
                Some(material) => material,
                None => material.insert(Material::gather(&facts, &face, &review.object).await?),
            };
            for param in &params {
                let scene = material.scene(&facts, &policy, param.as_ref());
                let inner = &facts.call.inner;
                let found = facts.authority().answering(inner, || judge(&policy, &scene)).await?;
                denials.extend(found.into_iter().filter_map(|denial| act(review, &policy, &binding, denial)));
            }
        }
    }
    match denials.into_iter().next() {
        None => Ok(()),
        Some(denial) => Err(refusal(&facts, review, denial)),
    }
}

/// The runs that a binding asks for; none where it is not for this write.
async fn prepare(
    facts: &Facts<'_>,
    review: &Review<'_>,
    policy: &Policy,
    binding: &Binding,
) -> Result<Vec<Option<serde_json::Value>>, String> {
    if let Some(criteria) = &binding.criteria {
        let matched = criteria.matches(facts, &review.object).await.map_err(|status| status.message)?;
        if matched.is_none() {
            return Ok(Vec::new());
        }
    }
    params::collect(facts, policy, binding, &review.object).await
}

fn misconfigured(policy: &Policy, binding: Option<&Binding>, problem: &str) -> Option<Denial> {
    let denial = Denial { message: told(policy, binding, problem), reason: String::new() };
    (!policy.fails_open).then_some(denial)
}

fn told(policy: &Policy, binding: Option<&Binding>, problem: &str) -> String {
    let name = &policy.name;
    match binding {
        Some(binding) => format!(
            "ValidatingAdmissionPolicy '{name}' with binding '{}' denied request: {problem}",
            binding.name
        ),
        None => format!("ValidatingAdmissionPolicy '{name}' denied request: {problem}"),
    }
}

/// Does what the binding says about a denial; answers with it where it is final.
fn act(review: &Review<'_>, policy: &Policy, binding: &Binding, denial: Denial) -> Option<Denial> {
    let has = |wanted: &str| binding.actions.iter().any(|action| action == wanted);
    if has("Warn") {
        review.call.warn(format!(
            "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {}",
            policy.name, binding.name, denial.message
        ));
    }
    let message = told(policy, Some(binding), &denial.message);
    has("Deny").then_some(Denial { message, reason: denial.reason })
}

/// All that a policy has against a write.
fn judge(policy: &Policy, scene: &Scene<'_>) -> Vec<Denial> {
    let compiled = policy.compiled();
    let failed = |message: String| match policy.fails_open {
        true => Vec::new(),
        false => vec![Denial { message, reason: String::new() }],
    };
    if !compiled.conditions.is_empty() {
        // Kubernetes: conditions do not see the namespace.
        let scene = Scene { namespace: &serde_json::Value::Null, ..copy(scene) };
        match evaluation::holds(&compiled.conditions, &scene) {
            Ok(true) => {}
            Ok(false) => return Vec::new(),
            Err(problem) => return failed(problem),
        }
    }
    let evaluation = Evaluation::new(scene, BUDGET);
    let mut outcomes = Vec::new();
    for validation in &compiled.validations {
        match evaluation.run(&validation.expression) {
            Ok(outcome) => outcomes.push((validation, outcome)),
            Err(spent) => return failed(spent),
        }
    }
    let mut denials = Vec::new();
    let messages = Evaluation::new(scene, evaluation.budget());
    for (validation, outcome) in outcomes {
        match outcome {
            Ok(Value::Bool(true)) => {}
            Ok(_) => match message(validation, &messages) {
                Ok(message) => denials.push(Denial { message, reason: validation.reason.clone() }),
                Err(spent) => denials.extend(failed(format!("failed messageExpression: {spent}"))),
            },
            Err(problem) => denials.extend(failed(problem)),
        }
    }
    let annotations = Evaluation::new(scene, BUDGET);
    for annotation in &compiled.annotations {
        match annotations.run(annotation) {
            Err(spent) => return failed(spent),
            Ok(Err(problem)) => denials.extend(failed(problem)),
            Ok(Ok(_)) => {}
        }
    }
    denials
}

fn copy<'a>(scene: &Scene<'a>) -> Scene<'a> {
    Scene { ..*scene }
}

/// The computed message if it can be shown, else the fixed one, else the expression.
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

fn refusal(facts: &Facts<'_>, review: &Review<'_>, denial: Denial) -> Status {
    let mut status = facts.forbidden(&review.object, &denial.message);
    let reason = if denial.reason.is_empty() { "Invalid" } else { &denial.reason };
    status.reason = Reason::from(reason);
    status.code = match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.with_cause(Cause::new("", denial.message))
}
