//! `authorizer` in expressions: what they ask is answered by the rules of access, as of now.
//!
//! Expressions run in one go and answers may take a read of the store. So a question that has no answer yet is noted
//! and answered, and whoever asked is run again.

use crate::{
    Inner,
    authenticate::Caller,
    authorize::{self, Attributes, OnResource},
    refusal::Refusal,
};
use expression::library::authorizer::{Authorizer, Decision, Question, Resource, Subject, Target};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often an expression is run again. Kubernetes: one can pay for two questions, and a policy has many.
const MAX_ROUNDS: usize = 64;

/// What is known so far of what a caller may do.
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
    target: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Path(String),
    Resource(Resource),
}

impl Authority {
    pub(super) fn new(caller: Caller) -> Authority {
        Authority { caller, known: Mutex::default() }
    }

    /// Runs `act` until all that it asks has been answered.
    pub(super) async fn answering<T>(&self, inner: &Inner, mut act: impl FnMut() -> T) -> Result<T, Refusal> {
        let mut done = act();
        for _ in 0..MAX_ROUNDS {
            let open = std::mem::take(&mut self.known().open);
            if open.is_empty() {
                break;
            }
            for asked in open {
                let decision = self.decide(inner, &asked).await?;
                self.known().answers.push((asked, decision));
            }
            done = act();
        }
        Ok(done)
    }

    async fn decide(&self, inner: &Inner, asked: &AccessQuestion) -> Result<Decision, Refusal> {
        let caller = match &asked.subject {
            Subject::Caller => self.caller.clone(),
            Subject::ServiceAccount { namespace, name } => {
                let groups =
                    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
                Caller::known(format!("system:serviceaccount:{namespace}:{name}"), "", groups.to_vec())
            }
        };
        let verb = asked.verb.as_str();
        let attributes = match &asked.target {
            What::Path(path) => Attributes::Path { verb, path },
            What::Resource(resource) => Attributes::Resource(OnResource {
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
            Target::Path(path) => What::Path(path.to_owned()),
            Target::Resource(resource) => What::Resource(resource.clone()),
        };
        let asked =
            AccessQuestion { subject: question.subject.clone(), verb: question.verb.to_owned(), target };
        let mut known = self.known();
        if let Some((_, decision)) = known.answers.iter().find(|(it, _)| *it == asked) {
            return decision.clone();
        }
        known.open.push(asked);
        Decision::default()
    }
}
