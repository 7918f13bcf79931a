//! What follows a commit: hooks that run within the request that made it, after its commit and before its answer.
//!
//! In Kubernetes controllers do all of this a moment later. Each hook says why it does not wait for one; where our own
//! controller takes over, the hook leaves from here and nothing else changes.

mod definitions;
pub(crate) mod kubernetes_service;
mod namespaces;

pub(crate) use definitions::CLEANUP;

use crate::{
    Inner,
    admission::{policy_status, resource_quota},
    call::Call,
    fair,
    refusal::Refusal,
    request::Verb,
};
use futures::future::BoxFuture;
use std::sync::Arc;

/// What the server does after writes to some resources.
struct Hook {
    /// Whether a write concerns it. Most writes concern none.
    concerns: fn(&Call, Verb) -> bool,
    run: for<'a> fn(&'a Call) -> BoxFuture<'a, Result<(), Refusal>>,
    /// What the log says of a hook that failed.
    problem: &'static str,
}

/// In the order in which they run.
const HOOKS: [Hook; 5] = [
    // A client that creates a definition can use it at once.
    Hook {
        concerns: definitions::concerns,
        run: |call| Box::pin(definitions::after(call)),
        problem: "a definition waits",
    },
    // A client that writes a policy finds in its status what the expressions get wrong about types.
    Hook {
        concerns: policy_status::concerns,
        run: |call| Box::pin(policy_status::after(call)),
        problem: "a policy is not checked for types",
    },
    // A pod can be created in a namespace as soon as that is there.
    Hook {
        concerns: namespaces::concerns,
        run: |call| Box::pin(namespaces::after(call)),
        problem: "a namespace lacks its default objects",
    },
    // A client that writes a flow schema finds in its status whether the priority level is there.
    Hook {
        concerns: fair::status::concerns,
        run: |call| Box::pin(fair::status::after(call)),
        problem: "the status of flow schemas waits",
    },
    // A quota limits the next request in its namespace, and must know what is used.
    Hook {
        concerns: resource_quota::concerns,
        run: |call| Box::pin(resource_quota::after(call)),
        problem: "a quota is not counted",
    },
];

/// Runs what follows a write that was committed. A failure is logged and does not undo the write.
pub(crate) async fn after(call: &Call, verb: Verb) {
    for hook in HOOKS.iter().filter(|hook| (hook.concerns)(call, verb)) {
        if let Err(refusal) = (hook.run)(call).await {
            let (namespace, name) = (&call.target.namespace, call.name());
            tracing::warn!(namespace, name, problem = %refusal, "{}", hook.problem);
        }
    }
}

/// Catches up with what a server that was stopped between a commit and its hooks has left undone.
pub(crate) async fn catch_up(inner: &Arc<Inner>) {
    if let Err(refusal) = definitions::settle_all(inner).await {
        tracing::warn!(problem = %refusal, "definitions wait");
    }
    if let Err(refusal) = namespaces::ensure_all_default_objects(inner).await {
        tracing::warn!(problem = %refusal, "namespaces lack their default objects");
    }
}
