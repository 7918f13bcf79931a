//! The parameter objects of a binding: the policy is evaluated once for each.

use super::configured::{Policy, PolicyBinding};
use crate::{
    admission::{
        facts::Facts,
        matching::{matches, selector},
    },
    convert,
    served::{Served, join},
    stored::Stored,
};
use serde_json::Value;
use std::sync::Arc;
use store::Range;

/// Whether the policy's paramKind is served; the error is a configuration error.
pub(super) async fn check_kind(facts: &Facts<'_>, policy: &Policy) -> Result<(), String> {
    let Some((api_version, kind)) = &policy.param_kind else { return Ok(()) };
    served(facts, api_version, kind).await.map(drop)
}

/// One entry per evaluation; a single `None` where the policy takes no parameters. The error is a
/// configuration error.
pub(super) async fn collect(
    facts: &Facts<'_>,
    policy: &Policy,
    binding: &PolicyBinding,
    object: &Value,
) -> Result<Vec<Option<Value>>, String> {
    let reference = &binding.param_ref;
    let Some((api_version, kind)) = &policy.param_kind else { return Ok(vec![None]) };
    if !reference.is_object() {
        return Ok(vec![None]);
    }
    let served = served(facts, api_version, kind).await?;
    let text = |name: &str| reference[name].as_str().unwrap_or_default();
    let namespace = match (served.is_namespaced(), text("namespace"), facts.namespace(object)) {
        (false, "", _) => "",
        (false, ..) => {
            return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned());
        }
        (true, "", "") => {
            let problem =
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(problem.to_owned());
        }
        (true, "", own) => own,
        (true, named, _) => named,
    };
    let found = match text("name") {
        "" => all(facts, &served, namespace, &reference["selector"]).await?,
        name => one(facts, &served, namespace, name).await?.into_iter().collect(),
    };
    if found.is_empty() && reference["parameterNotFoundAction"] == "Deny" {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    Ok(found.into_iter().map(Some).collect())
}

async fn served(facts: &Facts<'_>, api_version: &str, kind: &str) -> Result<Arc<Served>, String> {
    find(facts, api_version, kind).await?.ok_or_else(|| {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    })
}

async fn find(facts: &Facts<'_>, api_version: &str, kind: &str) -> Result<Option<Arc<Served>>, String> {
    let inner = &facts.call.inner;
    let is_it = |it: &&kinds::resources::Resource| {
        it.storage.is_some() && it.kind == kind && join(&it.group, &it.version) == api_version
    };
    if let Some(it) = kinds::resources().iter().find(is_it) {
        return Ok(inner.registry.find(&it.group, &it.version, &it.name).cloned());
    }
    let customs = inner.registry.customs(&*inner.store).await.map_err(|refusal| refusal.to_string())?;
    let named = customs.all().find(|it| it.resource.kind == kind && it.api_version() == api_version);
    let Some(resource) = named.map(|it| &it.resource) else { return Ok(None) };
    let found =
        inner.registry.served(&*inner.store, &resource.group, &resource.version, &resource.name).await;
    found.map_err(|refusal| refusal.to_string())
}

async fn one(
    facts: &Facts<'_>,
    served: &Served,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, String> {
    let inner = &facts.call.inner;
    let read = inner.store.get(served.key(namespace, name).into(), None).await;
    let Some(entry) = read.map_err(|error| error.to_string())?.entry else { return Ok(None) };
    let value = Stored::new(entry.value, entry.revision).value().map_err(|refusal| refusal.to_string())?;
    convert::one_in_version(inner, served, value).await.map(Some).map_err(|refusal| refusal.to_string())
}

async fn all(
    facts: &Facts<'_>,
    served: &Served,
    namespace: &str,
    wanted: &Value,
) -> Result<Vec<Value>, String> {
    let inner = &facts.call.inner;
    let page = inner.store.range(Range::prefix(served.prefix(namespace))).await;
    let entries = page.map_err(|error| error.to_string())?.entries;
    let wanted = selector(wanted);
    let values = entries.into_iter().map(|entry| Stored::new(entry.value, entry.revision).value());
    let values: Vec<Value> = values.collect::<Result<_, _>>().map_err(|refusal| refusal.to_string())?;
    let values = values.into_iter().filter(|value| matches(&wanted, value)).collect();
    convert::in_version(inner, served, values).await.map_err(|refusal| refusal.to_string())
}
