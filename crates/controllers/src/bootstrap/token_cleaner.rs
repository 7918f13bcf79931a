//! Bootstrap tokens are deleted when they expire.

use super::{token::Expiry, tokens};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Preconditions};
use operator::{Context, Controller, Failure, Key, Next, retry};
use std::time::Duration;

pub(crate) fn controller() -> Controller {
    Controller::new("token-cleaner", tokens()).reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(secret) = context.get::<Secret>(&key)? else { return Ok(Next::Settled) };
    let (expiry, now) = (Expiry::of(&secret), context.wall());
    if !expiry.is_past(now) {
        let Expiry::At(end) = expiry else { return Ok(Next::Settled) };
        return Ok(Next::CheckAfter(Duration::try_from(end.duration_since(now)).unwrap_or_default()));
    }
    let preconditions = Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match context.namespaced::<Secret>(&key).delete(key.name(), &params).await {
        Err(error) if retry::is_missing(&error) || retry::is_conflict(&error) => Ok(Next::Settled),
        result => Ok(result.map(|_| Next::Settled)?),
    }
}
