//! Conversion between the storage version and the version of a request.

use crate::{
    Inner,
    call::Call,
    custom::Custom,
    refusal::Refusal,
    served::{Kind, Served, join},
    stored::Stored,
};
use api::object;
use kinds::definition::Conversion;
use serde_json::Value;

/// Converts stored objects to the version of the request.
pub(crate) async fn in_version(
    inner: &Inner,
    served: &Served,
    objects: Vec<Value>,
) -> Result<Vec<Value>, Refusal> {
    match (&served.kind, &served.stored) {
        (Kind::Custom(custom), Some(_)) => custom_in_version(inner, served, custom, objects).await,
        (Kind::BuiltIn { .. }, Some(stored)) if stored.of.is_some() => {
            let from = (&*stored.group, &*stored.version);
            Ok(objects.into_iter().map(|object| built_in(served, object, from, version(served))).collect())
        }
        _ => Ok(objects),
    }
}

/// Converts one object to the version of the request.
pub(crate) async fn one_in_version(inner: &Inner, served: &Served, object: Value) -> Result<Value, Refusal> {
    Ok(in_version(inner, served, vec![object]).await?.pop().unwrap_or_default())
}

/// A stored object in the version of the call, normalized for comparison.
pub(crate) async fn in_request_version(call: &Call, stored: &Stored) -> Result<Value, Refusal> {
    let mut value = one_in_version(&call.inner, &call.served, stored.value()?).await?;
    call.served.normalize(&mut value);
    Ok(value)
}

/// Whether conversion to the version of the request needs a webhook.
pub(crate) fn needs_webhook(served: &Served) -> bool {
    served.custom().is_some_and(|custom| matches!(custom.definition.conversion, Conversion::Webhook(_)))
}

/// Converts one object to the version of the request, where no webhook is needed.
pub(crate) fn in_version_at_once(served: &Served, mut object: Value) -> Value {
    match (&served.kind, &served.stored) {
        (Kind::Custom(custom), Some(_)) => {
            let to = &*served.resource.version;
            if let Some(compiled) = custom.compiled_as(version_of(&object)) {
                compiled.schema.adopt(&mut object);
            }
            if version_of(&object) != to {
                object::set_api_version(&mut object, &join(&custom.definition.group, to));
                if let Some(compiled) = custom.compiled_as(to) {
                    compiled.schema.prune(&mut object);
                }
            }
            object
        }
        (Kind::BuiltIn { .. }, Some(stored)) if stored.of.is_some() => {
            built_in(served, object, (&*stored.group, &*stored.version), version(served))
        }
        _ => object,
    }
}

/// Converts an object to the storage version.
pub(crate) async fn as_stored(inner: &Inner, served: &Served, object: Value) -> Result<Value, Refusal> {
    match (&served.kind, &served.stored) {
        (Kind::Custom(custom), Some(stored)) => {
            let converted = convert_custom(inner, custom, vec![object], &stored.version).await?;
            let mut converted = converted.into_iter().next().unwrap_or_default();
            // As clients read it in that version: defaulted, and without nulls that its schema does not
            // allow.
            if let Some(compiled) = custom.compiled_as(&stored.version) {
                compiled.schema.adopt(&mut converted);
            }
            Ok(converted)
        }
        _ => Ok(built_in_as_stored(served, object)),
    }
}

/// Converts an object of a built-in kind to the storage version, which needs no webhook.
pub(crate) fn built_in_as_stored(served: &Served, object: Value) -> Value {
    match &served.stored {
        Some(stored) if stored.of.is_some() => {
            built_in(served, object, version(served), (&stored.group, &stored.version))
        }
        _ => object,
    }
}

fn version(served: &Served) -> (&str, &str) {
    (&served.resource.group, &served.resource.version)
}

fn built_in(served: &Served, object: Value, from: (&str, &str), to: (&str, &str)) -> Value {
    kinds::convert::convert(object, from, to, &served.resource.kind)
}

/// Kubernetes: stored objects are pruned and defaulted in the storage version before conversion.
async fn custom_in_version(
    inner: &Inner,
    served: &Served,
    custom: &Custom,
    mut objects: Vec<Value>,
) -> Result<Vec<Value>, Refusal> {
    for object in &mut objects {
        if let Some(compiled) = custom.compiled_as(version_of(object)) {
            compiled.schema.adopt(object);
        }
    }
    convert_custom(inner, custom, objects, &served.resource.version).await
}

/// Converts custom objects to a version of their definition, and prunes them.
pub(crate) async fn convert_custom(
    inner: &Inner,
    custom: &Custom,
    objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, Refusal> {
    if objects.iter().all(|object| version_of(object) == to) {
        return Ok(objects);
    }
    let mut converted = convert_without_pruning(inner, custom, objects, to).await?;
    if let Some(compiled) = custom.compiled_as(to) {
        for object in &mut converted {
            compiled.schema.prune(object);
        }
    }
    Ok(converted)
}

/// Converts custom objects, and keeps fields unknown to that version's schema.
pub(crate) async fn convert_without_pruning(
    inner: &Inner,
    custom: &Custom,
    objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, Refusal> {
    match &custom.definition.conversion {
        Conversion::None => {
            let api_version = join(&custom.definition.group, to);
            let convert_without_pruning = objects.into_iter().map(|mut object| {
                object::set_api_version(&mut object, &api_version);
                object
            });
            Ok(convert_without_pruning.collect())
        }
        Conversion::Webhook(webhook) => {
            crate::webhook::convert(inner, &custom.definition, webhook, objects, to).await
        }
    }
}

fn version_of(object: &Value) -> &str {
    object::api_version(object).rsplit('/').next().unwrap_or_default()
}
