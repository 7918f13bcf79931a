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
    call::{Call, Committed},
    fair,
    refusal::Refusal,
    request::Target,
    served::Served,
};
use futures::future::BoxFuture;
use std::sync::Arc;

/// What the server does after writes to some resources.
struct Hook {
    /// Whether writes to a resource concern it. Most concern none.
    concerns: fn(&Served, &Target) -> bool,
    /// Is told what a request has committed: each object before and after.
    run: for<'a> fn(&'a Call, &'a [Committed]) -> BoxFuture<'a, Result<(), Refusal>>,
    /// What the log says of a hook that failed.
    problem: &'static str,
}

/// In the order in which they run.
const HOOKS: [Hook; 5] = [
    // A client that creates a definition can use it at once.
    Hook {
        concerns: definitions::concerns,
        run: |call, commits| Box::pin(definitions::after(call, commits)),
        problem: "a definition waits",
    },
    // A client that writes a policy finds in its status what the expressions get wrong about types.
    Hook {
        concerns: policy_status::concerns,
        run: |call, commits| Box::pin(policy_status::after(call, commits)),
        problem: "a policy is not checked for types",
    },
    // A pod can be created in a namespace as soon as that is there.
    Hook {
        concerns: namespaces::concerns,
        run: |call, commits| Box::pin(namespaces::after(call, commits)),
        problem: "a namespace lacks its default objects",
    },
    // A client that writes a flow schema finds in its status whether the priority level is there.
    Hook {
        concerns: fair::status::concerns,
        run: |call, commits| Box::pin(fair::status::after(call, commits)),
        problem: "the status of flow schemas waits",
    },
    // A quota limits the next request in its namespace, and must know what is used.
    Hook {
        concerns: resource_quota::concerns,
        run: |call, commits| Box::pin(resource_quota::after(call, commits)),
        problem: "a quota is not counted",
    },
];

/// Whether any hook wants to know of writes to a resource.
pub(crate) fn concerns(served: &Served, target: &Target) -> bool {
    HOOKS.iter().any(|hook| (hook.concerns)(served, target))
}

/// Runs what follows the commits of a call. A failure is logged and does not undo the write.
pub(crate) async fn after(call: &Call) {
    let commits = call.take_commits();
    if commits.is_empty() {
        return;
    }
    for hook in HOOKS.iter().filter(|hook| (hook.concerns)(&call.served, &call.target)) {
        if let Err(refusal) = (hook.run)(call, &commits).await {
            tracing::warn!(problem = %refusal, "{}", hook.problem);
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
