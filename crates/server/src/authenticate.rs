//! Authentication: by a client certificate that the transport has verified, a bearer token, or as
//! anonymous.

mod account_token;
mod bootstrap_token;
pub(crate) mod jwt;
mod keys;
mod secret_token;
mod static_token;

pub(crate) use account_token::{Accounts, CREDENTIAL_ID, NODE_NAME};
pub use keys::{SigningKey, SigningKeyError, VerifyingKey};
pub use static_token::{Token, TokenFile, TokenFileError};

use crate::{Inner, refusal::Refusal};
use http::{HeaderMap, header, request::Parts};
pub(crate) use jwt::BadToken;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

// Kubernetes: the default issuer and audience of tokens.
const ISSUER: &str = "https://kubernetes.default.svc";
const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The user that sends a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// Such as the credential's id and the pod.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The transport has seen an expired certificate: the request is not anonymous, but rejected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpiredCertificate;

/// An Authorization header with a malformed bearer token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MalformedBearer;

impl MalformedBearer {
    pub(crate) fn text(&self) -> &'static str {
        "the provided Authorization header contains extra space before the bearer token, and is ignored"
    }
}

/// The user of a token, and those of the requested audiences that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authenticated {
    pub(crate) caller: Caller,
    pub(crate) audiences: Vec<String>,
}

impl Caller {
    /// A user named by a certificate or a token.
    pub fn known(name: impl Into<String>, uid: impl Into<String>, groups: Vec<String>) -> Caller {
        let mut caller = Caller { name: name.into(), uid: uid.into(), groups, extra: BTreeMap::new() };
        caller.join();
        caller
    }

    /// A service account.
    pub fn account(namespace: &str, name: &str, uid: &str) -> Caller {
        Caller::known(Caller::account_name(namespace, name), uid, Caller::account_groups(namespace))
    }

    fn anonymous() -> Caller {
        Caller::known(ANONYMOUS, "", Vec::new())
    }

    pub(crate) fn account_name(namespace: &str, name: &str) -> String {
        format!("{ACCOUNT_PREFIX}{namespace}:{name}")
    }

    pub(crate) fn account_groups(namespace: &str) -> Vec<String> {
        vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
    }

    /// Namespace and name, if the user name is that of a service account.
    pub(crate) fn account_of(name: &str) -> Option<(&str, &str)> {
        use api::name::Format::{Dns1123Label, Dns1123Subdomain};
        let (namespace, name) = name.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
        (Dns1123Label.fits(namespace) && Dns1123Subdomain.fits(name)).then_some((namespace, name))
    }

    /// Whose share of connections this caller's count for. Service accounts have one together in each namespace: who
    /// administers it can create any number.
    pub(crate) fn sharer(&self) -> &str {
        match Caller::account_of(&self.name) {
            Some((namespace, _)) => &self.name[..ACCOUNT_PREFIX.len() + namespace.len()],
            None => &self.name,
        }
    }

    /// Adds system:authenticated or system:unauthenticated.
    pub(crate) fn join(&mut self) {
        let has = |group: &str| self.groups.iter().any(|it| it == group);
        let group = match self.name == ANONYMOUS {
            true => UNAUTHENTICATED,
            false => AUTHENTICATED,
        };
        if !has(group) && !has(UNAUTHENTICATED) {
            self.groups.push(group.to_owned());
        }
    }

    /// The `UserInfo` of reviews and objects.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.clone().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }
}

#[derive(Debug)]
pub(crate) struct Authenticator {
    tokens: Vec<Token>,
    allows_anonymous: bool,
    accepts_bootstrap_tokens: bool,
    pub(crate) accounts: Accounts,
}

/// The tokens, keys and issuers that an authenticator accepts. The fields are those of [`Config`](crate::Config).
#[derive(Debug)]
pub(crate) struct Trusted {
    pub(crate) tokens: Vec<Token>,
    pub(crate) signing_key: Option<SigningKey>,
    pub(crate) verifying_keys: Vec<VerifyingKey>,
    pub(crate) issuer: Option<String>,
    pub(crate) more_issuers: Vec<String>,
    pub(crate) audiences: Vec<String>,
    pub(crate) allows_anonymous: bool,
    pub(crate) accepts_bootstrap_tokens: bool,
}

impl Authenticator {
    pub(crate) fn new(trusted: Trusted) -> Authenticator {
        let made = || SigningKey::make().expect("the system provides random numbers").0;
        let Trusted { tokens, allows_anonymous, accepts_bootstrap_tokens, .. } = trusted;
        let key = trusted.signing_key.unwrap_or_else(made);
        let issuer = trusted.issuer.unwrap_or_else(|| ISSUER.to_owned());
        let accounts =
            Accounts::new(key, trusted.verifying_keys, issuer, trusted.more_issuers, trusted.audiences);
        Authenticator { tokens, allows_anonymous, accepts_bootstrap_tokens, accounts }
    }

    /// The user of a request. Removes its credentials, so that later stages do not see them.
    pub(crate) async fn authenticate(&self, inner: &Inner, head: &mut Parts) -> Result<Arc<Caller>, Refusal> {
        let unauthorized = || Refusal::unauthorized("Unauthorized");
        let secret = bearer(&head.headers).map_err(|Ambiguous| unauthorized())?;
        let has_extra_space = secret.is_none() && has_extra_space(&head.headers);
        head.headers.remove(header::AUTHORIZATION);
        if head.extensions.get::<ExpiredCertificate>().is_some() {
            return Err(unauthorized());
        }
        let by_transport = head.extensions.remove::<Arc<Caller>>();
        let by_transport = by_transport.or_else(|| head.extensions.remove::<Caller>().map(Arc::new));
        match (by_transport, secret) {
            (Some(caller), _) => Ok(caller),
            (None, None) if !self.allows_anonymous => Err(unauthorized()),
            (None, None) => {
                if has_extra_space {
                    head.extensions.insert(MalformedBearer);
                }
                Ok(Arc::new(Caller::anonymous()))
            }
            (None, Some(secret)) => {
                let found = Box::pin(self.token(inner, &secret, &self.accounts.audiences)).await;
                found.map(|found| Arc::new(found.caller)).map_err(|_| unauthorized())
            }
        }
    }

    /// The user of a token that is meant for one of `audiences`.
    pub(crate) async fn token(
        &self,
        inner: &Inner,
        secret: &str,
        audiences: &[String],
    ) -> Result<Authenticated, BadToken> {
        if let Some(caller) = static_token::find(&self.tokens, secret) {
            // Static tokens are for this server's audiences only.
            let own = &self.accounts.audiences;
            let common: Vec<_> = own.iter().filter(|it| audiences.contains(it)).cloned().collect();
            return match common.is_empty() {
                true => Err(BadToken::NotOurs),
                false => Ok(Authenticated { caller, audiences: common }),
            };
        }
        let now = inner.world.wall();
        let store = inner.store.as_ref();
        let Accounts { keys, audiences: own, .. } = &self.accounts;
        let mut found = self.accounts.authenticate(store, secret, audiences, now.as_second()).await;
        if found == Err(BadToken::NotOurs) {
            found = secret_token::authenticate(store, keys, secret, own, audiences).await;
        }
        if found == Err(BadToken::NotOurs) && self.accepts_bootstrap_tokens {
            found = bootstrap_token::authenticate(store, secret, own, audiences, now).await;
        }
        found
    }
}

/// Whether there is a second space before the token, which makes it empty.
fn has_extra_space(headers: &HeaderMap) -> bool {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = value.trim().splitn(3, ' ');
    let [scheme, empty, rest] = [parts.next(), parts.next(), parts.next()];
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")) && empty == Some("") && rest.is_some()
}

/// Two Authorization headers: some readers take the first, others the last, so neither is accepted.
struct Ambiguous;

fn bearer(headers: &HeaderMap) -> Result<Option<String>, Ambiguous> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Ambiguous);
    }
    let value = first.to_str().unwrap_or_default().trim();
    let mut parts = value.splitn(3, ' ');
    let is_bearer = parts.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
    let secret = parts.next().filter(|secret| is_bearer && !secret.is_empty());
    Ok(secret.map(str::to_owned))
}
