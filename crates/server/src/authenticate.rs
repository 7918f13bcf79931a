//! Who asks: a client certificate that the transport has checked, a bearer token, or nobody.

mod account_token;
pub(crate) mod jwt;
mod keys;
mod openid;
mod secret_token;
mod static_token;

pub(crate) use account_token::{Accounts, CREDENTIAL_ID, NODE_NAME};
pub use keys::{SigningKey, SigningKeyError};
pub(crate) use openid::documents;
pub use static_token::{Token, TokenFile, TokenFileError};

use crate::{Inner, refusal::Refusal};
use http::{HeaderMap, header, request::Parts};
pub(crate) use jwt::BadToken;
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::Arc};

// Kubernetes: where nothing else is said, tokens are from and for the server under this name.
const ISSUER: &str = "https://kubernetes.default.svc";
const ANONYMOUS: &str = "system:anonymous";
const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The one who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// What else is known: which credential, from which pod.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The transport has seen a certificate that is good no longer: nobody, and nobody else either.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpiredCertificate;

/// The caller means to say who they are, and does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MalformedBearer;

impl MalformedBearer {
    pub(crate) fn text(&self) -> &'static str {
        "the provided Authorization header contains extra space before the bearer token, and is ignored"
    }
}

/// Whom a token stands for, and for which of the audiences that were asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authenticated {
    pub(crate) caller: Caller,
    pub(crate) audiences: Vec<String>,
}

impl Caller {
    /// Somebody whom a certificate or a token names.
    pub fn known(name: impl Into<String>, uid: impl Into<String>, groups: Vec<String>) -> Caller {
        let mut caller = Caller { name: name.into(), uid: uid.into(), groups, extra: BTreeMap::new() };
        caller.join();
        caller
    }

    /// A service account, as a token would name it.
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

    /// Namespace and name of a service account, if that is what the user name is.
    pub(crate) fn account_of(name: &str) -> Option<(&str, &str)> {
        use api::name::Format::{Dns1123Label, Dns1123Subdomain};
        let (namespace, name) = name.strip_prefix(ACCOUNT_PREFIX)?.split_once(':')?;
        (Dns1123Label.fits(namespace) && Dns1123Subdomain.fits(name)).then_some((namespace, name))
    }

    /// Everybody belongs to one of two groups: those who have shown who they are, and the others.
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

    /// As reviews and objects carry it.
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
    pub(crate) accounts: Accounts,
}

impl Authenticator {
    pub(crate) fn new(tokens: Vec<Token>, key: Option<SigningKey>, issuer: Option<String>) -> Authenticator {
        let made = || SigningKey::make().expect("the system gives random numbers").0;
        let issuer = issuer.unwrap_or_else(|| ISSUER.to_owned());
        Authenticator { tokens, accounts: Accounts::new(key.unwrap_or_else(made), issuer) }
    }

    /// Whom a request is from. Its credentials go no further.
    pub(crate) async fn authenticate(&self, inner: &Inner, head: &mut Parts) -> Result<Arc<Caller>, Refusal> {
        let unauthorized = || Refusal::unauthorized("Unauthorized");
        let secret = bearer(&head.headers).map_err(|Ambiguous| unauthorized())?;
        let is_spaced = secret.is_none() && is_spaced(&head.headers);
        head.headers.remove(header::AUTHORIZATION);
        if head.extensions.get::<ExpiredCertificate>().is_some() {
            return Err(unauthorized());
        }
        let by_transport = head.extensions.remove::<Arc<Caller>>();
        let by_transport = by_transport.or_else(|| head.extensions.remove::<Caller>().map(Arc::new));
        match (by_transport, secret) {
            (Some(caller), _) => Ok(caller),
            (None, None) => {
                if is_spaced {
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

    /// Whom a token stands for, if it is meant for one of `audiences`.
    pub(crate) async fn token(
        &self,
        inner: &Inner,
        secret: &str,
        audiences: &[String],
    ) -> Result<Authenticated, BadToken> {
        if let Some(caller) = static_token::find(&self.tokens, secret) {
            // Static tokens are for this server alone.
            let own = &self.accounts.audiences;
            let common: Vec<_> = own.iter().filter(|it| audiences.contains(it)).cloned().collect();
            return match common.is_empty() {
                true => Err(BadToken::NotOurs),
                false => Ok(Authenticated { caller, audiences: common }),
            };
        }
        let now = inner.world.wall().as_second();
        let store = inner.store.as_ref();
        match self.accounts.authenticate(store, secret, audiences, now).await {
            Err(BadToken::NotOurs) => {
                let Accounts { key, audiences: own, .. } = &self.accounts;
                secret_token::authenticate(store, key, secret, own, audiences).await
            }
            found => found,
        }
    }
}

/// Whether there is one space too many before the token, so that there is none.
fn is_spaced(headers: &HeaderMap) -> bool {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = value.trim().splitn(3, ' ');
    let [scheme, empty, rest] = [parts.next(), parts.next(), parts.next()];
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer")) && empty == Some("") && rest.is_some()
}

/// Two headers that say who asks: one reader believes the first, another the last, so nobody is believed.
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
