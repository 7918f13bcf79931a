//! Hooks that run in the request, after its commit and before its answer.
//!
//! In Kubernetes, controllers do this a moment later. Each hook says why it does not wait for one; once our
//! own controller takes over, its hook is deleted and nothing else changes.

mod definitions;
pub(crate) mod kubernetes_service;
mod namespaces;
mod policy_status;
mod quota_status;

use crate::{
    Inner,
    call::{Call, Committed},
    fair,
    refusal::Refusal,
    request::Target,
    served::Served,
};
use futures::future::BoxFuture;
use std::sync::Arc;

type Run = for<'a> fn(&'a Call, &'a [Committed]) -> BoxFuture<'a, Result<(), Refusal>>;

/// Work that the server does after writes to some resources.
struct Hook {
    /// Whether writes to a resource run this hook. Most run none.
    concerns: fn(&Served, &Target) -> bool,
    /// Gets the commits of the request: each object before and after.
    run: Run,
    /// The log message when the hook fails.
    problem: &'static str,
}

/// In the order in which they run.
const HOOKS: [Hook; 5] = [
    // A client can use a definition as soon as it has created it.
    Hook {
        concerns: definitions::concerns,
        run: |call, commits| Box::pin(definitions::after(call, commits)),
        problem: "a definition waits",
    },
    // A client that writes a policy finds the type errors of its expressions in the status.
    Hook {
        concerns: policy_status::concerns,
        run: |call, commits| Box::pin(policy_status::after(call, commits)),
        problem: "a policy is not checked for types",
    },
    // A pod can be created in a namespace as soon as the namespace exists.
    Hook {
        concerns: namespaces::concerns,
        run: |call, commits| Box::pin(namespaces::after(call, commits)),
        problem: "a namespace lacks its default objects",
    },
    // A client that writes a flow schema finds in the status whether its priority level exists.
    Hook {
        concerns: fair::status::concerns,
        run: |call, commits| Box::pin(fair::status::after(call, commits)),
        problem: "the status of flow schemas waits",
    },
    // A quota limits the next request in its namespace, so its usage must be counted now.
    Hook {
        concerns: quota_status::concerns,
        run: |call, commits| Box::pin(quota_status::after(call, commits)),
        problem: "a quota is not counted",
    },
];

/// Whether any hook runs after writes to a resource.
pub(crate) fn concerns(served: &Served, target: &Target) -> bool {
    HOOKS.iter().any(|hook| (hook.concerns)(served, target))
}

/// Runs the hooks after a call's commits. A failure is logged; the write stays.
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

/// Runs the hooks that a server which stopped between a commit and its hooks has missed.
pub(crate) async fn catch_up(inner: &Arc<Inner>) {
    if let Err(refusal) = definitions::reconcile_all(inner).await {
        tracing::warn!(problem = %refusal, "cannot update the status of definitions");
    }
    if let Err(refusal) = namespaces::ensure_all_default_objects(inner).await {
        tracing::warn!(problem = %refusal, "namespaces lack their default objects");
    }
}
