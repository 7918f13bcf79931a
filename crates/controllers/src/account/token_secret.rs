//! Secrets of type `kubernetes.io/service-account-token` get a token of their account, and end with it.

use super::{ACCOUNT_NAME, ACCOUNT_UID, TOKEN_TYPE};
use crate::{Settings, settings::SignToken};
use k8s_openapi::{
    ByteString,
    api::core::v1::{Secret, ServiceAccount},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams, Preconditions},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View, retry};
use serde_json::{Value, json};
use std::sync::Arc;

/// The index of secrets by namespace and name of their account.
const BY_ACCOUNT: &str = "account";

pub(crate) fn controller(settings: &Settings) -> Option<Controller> {
    let state = Tokens { root_ca: settings.root_ca.clone(), sign: settings.sign_token.clone()? };
    let secrets = all::<Secret>().with_fields(&format!("type={TOKEN_TYPE}"));
    let controller = Controller::new("tokens-controller", secrets)
        .index(BY_ACCOUNT, |secret| account_name(secret).map(|it| it.to_string()).into_iter().collect())
        .watches_through(all::<ServiceAccount>(), |secrets: &View<Secret>, account: &ServiceAccount| {
            let found = secrets.indexed(BY_ACCOUNT, Key::of(account).as_str()).unwrap_or_default();
            found.iter().map(|secret| Key::of(&**secret)).collect()
        })
        .reconcile(state, reconcile);
    Some(controller)
}

struct Tokens {
    root_ca: Option<String>,
    sign: SignToken,
}

async fn reconcile(context: Context<Tokens>, key: Key) -> Result<Next, Failure> {
    let Some(secret) = context.get::<Secret>(&key)? else {
        remove_references(&context, &key).await?;
        return Ok(Next::Settled);
    };
    // Kubernetes: a secret that names no account is left alone.
    let Some(account) = account_name(&secret) else { return Ok(Next::Settled) };
    let secrets = context.namespaced::<Secret>(&key);
    match find_account(&context, &account, &secret).await? {
        None => {
            let preconditions = Preconditions { uid: secret.uid(), resource_version: None };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            match secrets.delete(key.name(), &params).await {
                Err(error) if retry::is_missing(&error) || retry::is_conflict(&error) => {}
                result => drop(result?),
            }
        }
        Some(account) => {
            let Tokens { root_ca, sign } = context.state();
            let filled = filled(&secret, &account, root_ca.as_deref(), |claims| sign(claims));
            if filled != *secret {
                secrets.replace(key.name(), &PostParams::default(), &filled).await?;
            }
        }
    }
    Ok(Next::Settled)
}

/// The account that a secret names.
fn account_name(secret: &Secret) -> Option<Key> {
    let name = secret.annotations().get(ACCOUNT_NAME).filter(|name| !name.is_empty())?;
    Some(Key::new(secret.metadata.namespace.as_deref(), name))
}

/// The account of a secret; it is read from the server before a secret is deleted for want of it.
async fn find_account(
    context: &Context<Tokens>,
    account: &Key,
    secret: &Secret,
) -> Result<Option<Arc<ServiceAccount>>, Failure> {
    let wanted = secret.annotations().get(ACCOUNT_UID);
    let is_it = |found: &ServiceAccount| {
        wanted.is_none_or(|uid| uid.is_empty() || Some(uid) == found.metadata.uid.as_ref())
    };
    if let Some(found) = context.get::<ServiceAccount>(account)?.filter(|found| is_it(found)) {
        return Ok(Some(found));
    }
    let live = context.namespaced::<ServiceAccount>(account).get_opt(account.name()).await?;
    Ok(live.filter(is_it).map(Arc::new))
}

/// The secret with all that it should hold.
fn filled(
    secret: &Secret,
    account: &ServiceAccount,
    root_ca: Option<&str>,
    sign: impl Fn(&Value) -> Option<String>,
) -> Secret {
    let mut filled = secret.clone();
    let data = filled.data.get_or_insert_default();
    if let Some(root_ca) = root_ca {
        data.insert("ca.crt".to_owned(), ByteString(root_ca.into()));
    }
    let (namespace, name) = (account.namespace().unwrap_or_default(), account.name_any());
    let is_empty = |value: Option<&ByteString>| value.is_none_or(|value| value.0.is_empty());
    if is_empty(data.get("namespace")) {
        data.insert("namespace".to_owned(), ByteString(namespace.clone().into()));
    }
    if is_empty(data.get("token"))
        && let Some(token) = sign(&claims(&namespace, &name, account, secret))
    {
        data.insert("token".to_owned(), ByteString(token.into()));
    }
    // Kubernetes: annotations are set only along with data.
    if filled.data != secret.data {
        let annotations = filled.metadata.annotations.get_or_insert_default();
        annotations.insert(ACCOUNT_NAME.to_owned(), name);
        annotations.insert(ACCOUNT_UID.to_owned(), account.uid().unwrap_or_default());
    }
    filled
}

fn claims(namespace: &str, name: &str, account: &ServiceAccount, secret: &Secret) -> Value {
    json!({
        "iss": "kubernetes/serviceaccount",
        "sub": format!("system:serviceaccount:{namespace}:{name}"),
        "kubernetes.io/serviceaccount/namespace": namespace,
        "kubernetes.io/serviceaccount/secret.name": secret.name_any(),
        "kubernetes.io/serviceaccount/service-account.name": name,
        "kubernetes.io/serviceaccount/service-account.uid": account.uid(),
    })
}

/// Takes a deleted secret out of `secrets` of the accounts in its namespace.
async fn remove_references(context: &Context<Tokens>, secret: &Key) -> Result<(), Failure> {
    let Some(namespace) = secret.namespace() else { return Ok(()) };
    let is_it = |name: Option<&String>| name.is_some_and(|name| name == secret.name());
    for account in context.view::<ServiceAccount>()?.in_namespace(namespace)? {
        let references = account.secrets.as_deref().unwrap_or_default();
        if !references.iter().any(|reference| is_it(reference.name.as_ref())) {
            continue;
        }
        let mut changed = ServiceAccount::clone(&account);
        changed.secrets.get_or_insert_default().retain(|reference| !is_it(reference.name.as_ref()));
        let accounts = context.namespaced::<ServiceAccount>(secret);
        match accounts.replace(&account.name_any(), &PostParams::default(), &changed).await {
            Err(error) if retry::is_missing(&error) => {}
            result => drop(result?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> ServiceAccount {
        let account = json!({"metadata": {"name": "bot", "namespace": "prod", "uid": "7"}});
        serde_json::from_value(account).unwrap()
    }

    fn secret(data: &[(&str, &str)]) -> Secret {
        let mut secret: Secret =
            serde_json::from_value(json!({"metadata": {"name": "t", "namespace": "prod",
            "annotations": {ACCOUNT_NAME: "bot"}}, "type": TOKEN_TYPE}))
            .unwrap();
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString((*value).into())));
        secret.data = Some(data.collect());
        secret
    }

    #[test]
    fn a_secret_is_filled_once() {
        for (before, expected) in [
            (
                &[][..],
                &[("ca.crt", "CA"), ("namespace", "prod"), ("token", "system:serviceaccount:prod:bot")][..],
            ),
            (&[("token", "t")], &[("ca.crt", "CA"), ("namespace", "prod"), ("token", "t")]),
            (
                &[("ca.crt", "old"), ("namespace", "n"), ("token", "t")],
                &[("ca.crt", "CA"), ("namespace", "n"), ("token", "t")],
            ),
        ] {
            let sign = |claims: &Value| claims["sub"].as_str().map(str::to_owned);
            let once = filled(&secret(before), &account(), Some("CA"), sign);
            assert_eq!(once.data, secret(expected).data);
            assert_eq!(once.annotations()[ACCOUNT_UID], "7");
            assert_eq!(filled(&once, &account(), Some("CA"), sign), once);
        }
    }
}
