//! Service account tokens in Secrets: valid while the Secret holds the same text; they do not expire.

use super::{
    Authenticated, Caller,
    account_token::read,
    jwt::{self, BadToken},
    keys::VerifyingKey,
};
use api::{go, object};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use store::ReadStore;
use subtle::ConstantTimeEq;

// Kubernetes: a fixed issuer, whatever the server's own.
const ISSUER: &str = "kubernetes/serviceaccount";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// The claims of such a token.
#[derive(Debug, Deserialize)]
pub(super) struct SecretClaims {
    iss: String,
    #[serde(default)]
    sub: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace", default)]
    namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name", default)]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name", default)]
    account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid", default)]
    uid: String,
}

impl jwt::Issued for SecretClaims {
    fn issuer(&self) -> &str {
        &self.iss
    }
}

/// The user of a token. It is for this server's audiences only.
pub(super) async fn authenticate(
    store: &dyn ReadStore,
    keys: &[VerifyingKey],
    token: &str,
    own: &[String],
    audiences: &[String],
) -> Result<Authenticated, BadToken> {
    let claims: SecretClaims = jwt::verify(keys, &[ISSUER], token)?;
    let common: Vec<String> = own.iter().filter(|it| audiences.contains(it)).cloned().collect();
    if common.is_empty() {
        let (own, wanted) = (go::quote_list(own), go::quote_list(audiences));
        return Err(no(format!("token audiences {own} is invalid for the target audiences {wanted}")));
    }
    check_claims(&claims)?;
    check_secret(store, &claims, token).await?;
    check_account(store, &claims).await?;
    let caller = Caller::account(&claims.namespace, &claims.account, &claims.uid);
    Ok(Authenticated { caller, audiences: common })
}

fn no(problem: impl Into<String>) -> BadToken {
    BadToken::Invalidated(problem.into())
}

fn check_claims(claims: &SecretClaims) -> Result<(), BadToken> {
    for (name, claim) in [
        ("sub", &claims.sub),
        ("namespace", &claims.namespace),
        ("secretName", &claims.secret),
        ("serviceAccountName", &claims.account),
        ("serviceAccountUID", &claims.uid),
    ] {
        if claim.is_empty() {
            return Err(no(format!("{name} claim is missing")));
        }
    }
    match claims.sub == Caller::account_name(&claims.namespace, &claims.account) {
        true => Ok(()),
        false => Err(no("sub claim is invalid")),
    }
}

async fn check_secret(store: &dyn ReadStore, claims: &SecretClaims, token: &str) -> Result<(), BadToken> {
    let SecretClaims { namespace, secret: name, account, .. } = claims;
    let found = read(store, format!("/registry/secrets/{namespace}/{name}")).await?;
    let secret = found.filter(|secret| !object::is_deleting(secret));
    let secret = secret.ok_or_else(|| no("Token has been invalidated"))?;
    let kept = STANDARD.decode(secret["data"]["token"].as_str().unwrap_or_default()).unwrap_or_default();
    if !bool::from(kept.ct_eq(token.as_bytes())) {
        return Err(no("Token does not match server's copy"));
    }
    if secret["metadata"]["labels"][INVALID_SINCE].as_str().is_some_and(|since| !since.is_empty()) {
        return Err(no(format!(
            "the token in secret {namespace}/{name} for service account {namespace}/{account} has been marked invalid. \
             Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
             '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        )));
    }
    Ok(())
}

async fn check_account(store: &dyn ReadStore, claims: &SecretClaims) -> Result<(), BadToken> {
    let SecretClaims { namespace, account: name, uid, .. } = claims;
    let found = read(store, format!("/registry/serviceaccounts/{namespace}/{name}")).await?;
    let account = found.ok_or_else(|| no(format!("serviceaccounts {} not found", go::quote(name))))?;
    if object::is_deleting(&account) {
        return Err(no(format!("ServiceAccount {namespace}/{name} has been deleted")));
    }
    match object::uid(&account) {
        found if found == uid => Ok(()),
        found => Err(no(format!("ServiceAccount UID ({found}) does not match claim ({uid})"))),
    }
}
