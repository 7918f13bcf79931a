//! Mutating policies: expressions that change an object.

use super::{
    BoundPolicy, Material, candidates,
    configured::{Mutation, Policy, PolicyBinding},
    merge, selection,
};
use crate::{
    admission::{
        Review,
        evaluation::{self, Activation, BUDGET, Evaluation, Expression},
        facts::Facts,
        reinvocation::Reinvocation,
    },
    refusal::Refusal,
    served::Served,
};
use api::status::{Cause, Reason};
use expression::library::mutation::{apply_configuration, patch_operations};
use schema::patch::{
    PatchError,
    json::{JsonPatch, Reading},
};
use serde_json::Value;
use std::sync::Arc;

/// The evaluated result of a mutation.
enum EvaluatedMutation {
    Apply(Value),
    Patch(Value),
}

/// A policy that failed to evaluate or apply.
struct PolicyFailure {
    message: String,
    reason: Option<Reason>,
}

/// One evaluation of a policy.
struct Invocation {
    policy: Arc<Policy>,
    binding: Arc<PolicyBinding>,
    param: Option<Value>,
    face: Arc<Served>,
}

/// Runs the policies on the object, one after the other.
pub(in crate::admission) async fn mutate(
    review: &mut Review<'_>,
    rounds: &mut Reinvocation,
) -> Result<(), Refusal> {
    let facts = Facts::of(review);
    let policies = candidates(&facts, &facts.call.inner.admission.mutating_policies, &review.object).await?;
    if policies.is_empty() {
        return Ok(());
    }
    // Boxed: most writes match no policy.
    Box::pin(run_policies(&facts, policies, review, rounds)).await
}

async fn run_policies(
    facts: &Facts<'_>,
    policies: Vec<BoundPolicy>,
    review: &mut Review<'_>,
    rounds: &mut Reinvocation,
) -> Result<(), Refusal> {
    let mut failures = Vec::new();
    let invocations = select(facts, policies, review, &mut failures).await?;
    if !invocations.is_empty() {
        rounds.policies.begin(rounds.is_second, &review.object);
        for invocation in &invocations {
            run(facts, review, rounds, invocation, &mut failures).await?;
        }
        rounds.policies.end(&review.object);
    }
    if failures.is_empty() {
        return Ok(());
    }
    let mut refusal = facts.forbidden(&review.object, "admission request denied by policy");
    for (at, failure) in failures.into_iter().enumerate() {
        if at == 0 {
            refusal = refusal.with_message(failure.message.clone());
            if let Some(reason) = failure.reason {
                refusal = refusal.with_reason(reason, None);
            }
        }
        refusal = refusal.with_cause(Cause::new("", failure.message));
    }
    Err(refusal)
}

/// The policies to run, with their parameters.
async fn select(
    facts: &Facts<'_>,
    policies: Vec<BoundPolicy>,
    review: &Review<'_>,
    failures: &mut Vec<PolicyFailure>,
) -> Result<Vec<Invocation>, Refusal> {
    let mut found = Vec::new();
    for (policy, bindings) in policies {
        let face = match selection::of_policy(facts, &policy, &review.object).await {
            Ok(Some(face)) => face,
            Ok(None) => continue,
            Err(problem) => {
                failures.extend(failed(&policy, None, &problem, None));
                continue;
            }
        };
        for binding in bindings {
            match selection::of_binding(facts, &policy, &binding, &review.object).await {
                Ok(params) => found.extend(params.into_iter().map(|param| Invocation {
                    policy: Arc::clone(&policy),
                    binding: Arc::clone(&binding),
                    param,
                    face: Arc::clone(&face),
                })),
                Err(problem) => failures.extend(failed(&policy, Some(&binding), &problem, None)),
            }
        }
    }
    Ok(found)
}

fn failed(
    policy: &Policy,
    binding: Option<&PolicyBinding>,
    problem: &str,
    reason: Option<Reason>,
) -> Option<PolicyFailure> {
    let name = &policy.name;
    let message = match binding {
        Some(binding) => format!("policy '{name}' with binding '{}' denied request: {problem}", binding.name),
        None => format!("policy {} denied request: {problem}", api::go::quote(name)),
    };
    (!policy.fails_open).then_some(PolicyFailure { message, reason })
}

/// Applies the mutations of a policy with one parameter.
async fn run(
    facts: &Facts<'_>,
    review: &mut Review<'_>,
    rounds: &mut Reinvocation,
    invocation: &Invocation,
    failures: &mut Vec<PolicyFailure>,
) -> Result<(), Refusal> {
    let Invocation { policy, binding, param, face } = invocation;
    let (compiled, inner) = (policy.compiled(), &facts.call.inner);
    let problem = |problem: &str| failed(policy, Some(binding), problem, Some(Reason::Invalid));
    if !compiled.conditions.is_empty() {
        let material = Material::gather(facts, face, &review.object).await?;
        // Kubernetes: match conditions do not see the namespace.
        let activation =
            Activation { namespace: &Value::Null, ..material.activation(facts, policy, param.as_ref()) };
        let holds = || evaluation::holds(&compiled.conditions, &activation);
        match facts.authority().answering(inner, holds).await? {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(_) if policy.fails_open => return Ok(()),
            Err(failure) => {
                failures.extend(problem(&failure));
                return Ok(());
            }
        }
    }
    let named = |param: &Value| format!("{}/{}", api::object::namespace(param), api::object::name(param));
    let param_name = param.as_ref().map(named).unwrap_or_default();
    let id = format!("{}/{}/{param_name}", policy.name, binding.name);
    if !rounds.policies.is_due(rounds.is_second, &id) {
        return Ok(());
    }
    let before = review.object.clone();
    for mutation in compiled.mutations.iter().filter(|_| !before.is_null()) {
        let material = Material::gather(facts, face, &review.object).await?;
        let activation = material.activation(facts, policy, param.as_ref());
        let change = facts.authority().answering(inner, || evaluate(mutation, &activation)).await?;
        let made = change.and_then(|change| apply(face, &material.object, change));
        match made {
            Ok(Some(made)) => review.object = facts.adopted(face, &made, &review.object).await?,
            Ok(None) => {}
            Err(failure) => failures.extend(problem(&failure)),
        }
    }
    if before != review.object {
        rounds.policies.reinvoke_earlier();
        rounds.is_wanted = true;
    }
    if policy.is_reinvocable {
        rounds.policies.mark_invoked(&id);
    }
    Ok(())
}

fn evaluate(mutation: &Mutation, activation: &Activation<'_>) -> Result<EvaluatedMutation, String> {
    let (Mutation::Apply(expression) | Mutation::Patch(expression)) = mutation;
    if let Some(problem) = Expression::problem(expression) {
        return Err(problem.to_owned());
    }
    let evaluation = Evaluation::new(activation, BUDGET);
    let value = evaluation.run(expression)??;
    match mutation {
        Mutation::Apply(_) => apply_configuration(&value).map(EvaluatedMutation::Apply),
        Mutation::Patch(_) => patch_operations(&value).map(|all| EvaluatedMutation::Patch(Value::Array(all))),
    }
    .map_err(|error| error.to_string())
}

/// The object after the change; `None` where a `test` operation of the patch fails.
fn apply(face: &Served, object: &Value, change: EvaluatedMutation) -> Result<Option<Value>, String> {
    match change {
        EvaluatedMutation::Apply(config) => merge::merge(face, object, config).map(Some),
        EvaluatedMutation::Patch(operations) => {
            let patch = JsonPatch::decode(&operations, Reading::Lenient);
            let patch = patch.map_err(|error| format!("JSON Patch: {error}"))?;
            match patch.apply(object.clone()) {
                Ok(made) => Ok(Some(made)),
                Err(error) if is_test(&error) => Ok(None),
                Err(error) => Err(format!("JSON Patch: {error}")),
            }
        }
    }
}

fn is_test(error: &PatchError) -> bool {
    error.to_string().contains("testing value")
}
