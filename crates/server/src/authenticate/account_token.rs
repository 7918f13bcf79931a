//! Service account tokens: signed, for certain audiences, and valid only while the objects that they are
//! bound to exist.

use super::{
    Authenticated, Caller,
    jwt::{self, BadToken, BoundObject, Claims, LEEWAY_SECONDS},
    keys::{SigningKey, VerifyingKey},
};
use crate::stored::Stored;
use api::{go, object};
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use store::ReadStore;

// Kubernetes: keys of a caller's extra fields.
pub(crate) const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
pub(crate) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

/// Issues and verifies tokens: the key, the issuer's name, and the default audiences.
#[derive(Debug)]
pub(crate) struct Accounts {
    pub(crate) key: SigningKey,
    /// Verify tokens: that of `key`, and others.
    pub(crate) keys: Vec<VerifyingKey>,
    pub(crate) issuer: String,
    /// The issuers of accepted tokens: this one, and former ones.
    issuers: Vec<String>,
    /// The audiences that this server accepts.
    pub(crate) audiences: Vec<String>,
    /// Claims of tokens with a verified signature, by digest. Everything else is checked at each request.
    verified: Mutex<HashMap<[u8; 32], Arc<Claims>>>,
}

/// Limit on the cached tokens, about one per pod of a few hundred nodes; others are verified each time.
const MAX_VERIFIED: usize = 4096;

impl Accounts {
    pub(super) fn new(
        key: SigningKey,
        more_keys: Vec<VerifyingKey>,
        issuer: String,
        more_issuers: Vec<String>,
        audiences: Vec<String>,
    ) -> Accounts {
        let own = key.verifying_key();
        let others = more_keys.into_iter().filter(|other| other.id() != own.id());
        let keys = std::iter::once(own.clone()).chain(others).collect();
        let issuers: Vec<String> = std::iter::once(issuer.clone()).chain(more_issuers).collect();
        // Kubernetes: without --api-audiences, all issuers are audiences.
        let audiences = if audiences.is_empty() { issuers.clone() } else { audiences };
        Accounts { key, keys, issuer, issuers, audiences, verified: Mutex::default() }
    }

    pub(crate) fn sign_claims(&self, claims: &serde_json::Value) -> Option<String> {
        jwt::sign(&self.key, claims)
    }

    /// The claims of a token that this server has signed.
    fn claims(&self, token: &str) -> Result<Arc<Claims>, BadToken> {
        if token.len() > jwt::MAX_TOKEN_BYTES {
            return Err(BadToken::NotOurs);
        }
        let lock = || self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        let digest: [u8; 32] =
            digest(&SHA256, token.as_bytes()).as_ref().try_into().expect("SHA-256 has 32 bytes");
        if let Some(known) = lock().get(&digest) {
            return Ok(Arc::clone(known));
        }
        let claims: Arc<Claims> = Arc::new(jwt::verify(&self.keys, &self.issuers, token)?);
        let mut verified = lock();
        if verified.len() >= MAX_VERIFIED {
            verified.clear();
        }
        verified.insert(digest, Arc::clone(&claims));
        Ok(claims)
    }

    /// The user of a token that is meant for one of `audiences`.
    pub(super) async fn authenticate(
        &self,
        store: &dyn ReadStore,
        token: &str,
        audiences: &[String],
        now: i64,
    ) -> Result<Authenticated, BadToken> {
        let claims = self.claims(token)?;
        claims.check_times(now)?;
        let valid_for = if claims.aud.is_empty() { &self.audiences } else { &claims.aud };
        let common: Vec<String> =
            valid_for.iter().filter(|audience| audiences.contains(audience)).cloned().collect();
        if common.is_empty() {
            let (valid_for, wanted) = (go::quote_list(valid_for), go::quote_list(audiences));
            return Err(BadToken::Invalidated(format!(
                "token audiences {valid_for} is invalid for the target audiences {wanted}"
            )));
        }
        let named =
            Caller::account_name(&claims.kubernetes.namespace, &claims.kubernetes.serviceaccount.name);
        if claims.sub != named {
            return Err(BadToken::Invalidated("sub claim is invalid".to_owned()));
        }
        check_bound(store, &claims, now).await?;
        Ok(Authenticated { caller: caller(&claims), audiences: common })
    }
}

/// Whether the account and the bound objects still exist with the same UIDs.
async fn check_bound(store: &dyn ReadStore, claims: &Claims, now: i64) -> Result<(), BadToken> {
    let bound_to = &claims.kubernetes;
    let namespace = bound_to.namespace.as_str();
    let gone = || BadToken::Invalidated("service account token has been invalidated".to_owned());
    let account = &bound_to.serviceaccount;
    let key = format!("/registry/serviceaccounts/{namespace}/{}", account.name);
    let found = read(store, key).await?.ok_or_else(|| {
        BadToken::Invalidated(format!("serviceaccounts {} not found", go::quote(&account.name)))
    })?;
    if object::uid(&found) != account.uid {
        let (found, bound_to) = (object::uid(&found), &account.uid);
        return Err(BadToken::Invalidated(format!(
            "service account UID ({found}) does not match claim ({bound_to})"
        )));
    }
    if is_long_gone(&found, now) {
        let name = &account.name;
        return Err(BadToken::Invalidated(format!("service account {namespace}/{name} has been deleted")));
    }
    // The node of a pod's token is not checked: the pod is bound to it.
    let node = bound_to.node.as_ref().filter(|_| bound_to.pod.is_none());
    let objects: [(&str, String, &Option<BoundObject>); 2] = [
        ("secret", format!("/registry/secrets/{namespace}/"), &bound_to.secret),
        ("pod", format!("/registry/pods/{namespace}/"), &bound_to.pod),
    ];
    let objects =
        objects.into_iter().filter_map(|(sort, prefix, bound)| Some((sort, prefix, bound.as_ref()?)));
    let objects = objects.chain(node.map(|node| ("node", "/registry/minions/".to_owned(), node)));
    for (sort, prefix, bound) in objects {
        let found = read(store, format!("{prefix}{}", bound.name)).await?.ok_or_else(gone)?;
        if object::uid(&found) != bound.uid {
            let (found, bound_to) = (object::uid(&found), &bound.uid);
            return Err(BadToken::Invalidated(format!(
                "{sort} UID ({found}) does not match service account {sort} ref claim ({bound_to})"
            )));
        }
        if is_long_gone(&found, now) {
            return Err(gone());
        }
    }
    Ok(())
}

/// The current state of an object.
pub(super) async fn read(store: &dyn ReadStore, key: String) -> Result<Option<Value>, BadToken> {
    let read = store.get(key.into(), None).await.map_err(|error| BadToken::Invalidated(error.to_string()))?;
    let object = read.entry.map(|entry| Stored::new(entry.value, entry.revision).value()).transpose();
    object.map_err(|refusal| BadToken::Invalidated(refusal.to_string()))
}

fn is_long_gone(object: &Value, now: i64) -> bool {
    let deleted = object::deletion_timestamp(object);
    deleted.is_some_and(|moment| moment.timestamp().as_second() < now - LEEWAY_SECONDS)
}

fn caller(claims: &Claims) -> Caller {
    let bound_to = &claims.kubernetes;
    let mut caller =
        Caller::account(&bound_to.namespace, &bound_to.serviceaccount.name, &bound_to.serviceaccount.uid);
    let mut extra = |key: &str, value: &str| {
        if !value.is_empty() {
            caller.extra.insert(key.to_owned(), vec![value.to_owned()]);
        }
    };
    if let Some(pod) = &bound_to.pod {
        extra(POD_NAME, &pod.name);
        extra(POD_UID, &pod.uid);
    }
    if let Some(node) = &bound_to.node {
        extra(NODE_NAME, &node.name);
        extra(NODE_UID, &node.uid);
    }
    if !claims.jti.is_empty() {
        extra(CREDENTIAL_ID, &format!("JTI={}", claims.jti));
    }
    caller
}
