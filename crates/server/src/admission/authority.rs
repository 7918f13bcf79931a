//! `authorizer` in expressions: answered by the authorizers.
//!
//! Expressions are synchronous and an answer may need a read of the store. So an unanswered question is
//! noted and answered, and the expression runs again.

use crate::{
    Inner,
    authenticate::Caller,
    authorize::{self, Attributes, OnResource},
    refusal::Refusal,
};
use expression::library::authorizer::{Authorizer, Decision, Question, Resource, Subject, Target};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Limit on the runs of an expression. Kubernetes: the cost budget allows two questions, and a policy has
/// many expressions.
const MAX_ROUNDS: usize = 64;

/// The answers known so far for a caller.
#[derive(Debug)]
pub(super) struct Authority {
    caller: Caller,
    known: Mutex<Decisions>,
}

#[derive(Debug, Default)]
struct Decisions {
    answers: Vec<(AccessQuestion, Decision)>,
    open: Vec<AccessQuestion>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AccessQuestion {
    subject: Subject,
    verb: String,
    target: AccessTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum AccessTarget {
    Path(String),
    Resource(Resource),
}

impl Authority {
    pub(super) fn new(caller: Caller) -> Authority {
        Authority { caller, known: Mutex::default() }
    }

    /// Runs `act` until all its questions are answered.
    pub(super) async fn answering<T>(&self, inner: &Inner, mut act: impl FnMut() -> T) -> Result<T, Refusal> {
        let mut done = act();
        for _ in 0..MAX_ROUNDS {
            let open = std::mem::take(&mut self.known().open);
            if open.is_empty() {
                break;
            }
            for question in open {
                let decision = self.decide(inner, &question).await?;
                self.known().answers.push((question, decision));
            }
            done = act();
        }
        Ok(done)
    }

    async fn decide(&self, inner: &Inner, question: &AccessQuestion) -> Result<Decision, Refusal> {
        let caller = match &question.subject {
            Subject::Caller => self.caller.clone(),
            Subject::ServiceAccount { namespace, name } => {
                let groups =
                    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
                Caller::known(format!("system:serviceaccount:{namespace}:{name}"), "", groups.to_vec())
            }
        };
        let verb = question.verb.as_str();
        let attributes = match &question.target {
            AccessTarget::Path(path) => Attributes::Path { verb, path },
            AccessTarget::Resource(resource) => Attributes::Resource(OnResource {
                verb,
                group: &resource.group,
                resource: &resource.resource,
                subresource: &resource.subresource,
                namespace: &resource.namespace,
                name: &resource.name,
                fields: None,
            }),
        };
        let decision = authorize::allows(inner, &caller, &attributes).await?;
        Ok(Decision { allowed: decision.is_allowed, reason: decision.reason, error: None })
    }

    fn known(&self) -> MutexGuard<'_, Decisions> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Authorizer for Authority {
    fn authorize(&self, question: &Question<'_>) -> Decision {
        let target = match question.target {
            Target::Path(path) => AccessTarget::Path(path.to_owned()),
            Target::Resource(resource) => AccessTarget::Resource(resource.clone()),
        };
        let question =
            AccessQuestion { subject: question.subject.clone(), verb: question.verb.to_owned(), target };
        let mut known = self.known();
        if let Some((_, decision)) = known.answers.iter().find(|(it, _)| *it == question) {
            return decision.clone();
        }
        known.open.push(question);
        Decision::default()
    }
}
