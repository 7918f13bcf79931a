//! Objects from the version in which they are kept to that of a request, and back.

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

/// Objects as they are kept, in the version of the request.
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

/// One object in the version of the request.
pub(crate) async fn one_in_version(inner: &Inner, served: &Served, object: Value) -> Result<Value, Refusal> {
    Ok(in_version(inner, served, vec![object]).await?.pop().unwrap_or_default())
}

/// An object at rest in the version of the call, in the form in which states are compared.
pub(crate) async fn in_request_version(call: &Call, stored: &Stored) -> Result<Value, Refusal> {
    let mut value = one_in_version(&call.inner, &call.served, stored.value()?).await?;
    call.served.normalize(&mut value);
    Ok(value)
}

/// Whether objects can be shown in the version of the request only with the help of a webhook.
pub(crate) fn asks_webhook(served: &Served) -> bool {
    served.custom().is_some_and(|custom| matches!(custom.definition.conversion, Conversion::Webhook(_)))
}

/// One object in the version of the request, where no webhook needs to be asked.
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

/// An object in the version of the request, as it is kept.
pub(crate) async fn as_stored(inner: &Inner, served: &Served, object: Value) -> Result<Value, Refusal> {
    match (&served.kind, &served.stored) {
        (Kind::Custom(custom), Some(stored)) => {
            let converted = convert_custom(inner, custom, vec![object], &stored.version).await?;
            let mut converted = converted.into_iter().next().unwrap_or_default();
            // As clients read it in that version: with its defaults, and without nulls that its schema does not allow.
            if let Some(compiled) = custom.compiled_as(&stored.version) {
                compiled.schema.adopt(&mut converted);
            }
            Ok(converted)
        }
        _ => Ok(built_in_as_stored(served, object)),
    }
}

/// The same of a built-in kind, which nobody needs to be asked about.
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

/// Kubernetes: what is kept is brought in line with the schema of its own version before it is converted.
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

/// Converts custom objects to a version of their definition.
pub(crate) async fn convert_custom(
    inner: &Inner,
    custom: &Custom,
    objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, Refusal> {
    if objects.iter().all(|object| version_of(object) == to) {
        return Ok(objects);
    }
    let mut converted = retold(inner, custom, objects, to).await?;
    if let Some(compiled) = custom.compiled_as(to) {
        for object in &mut converted {
            compiled.schema.prune(object);
        }
    }
    Ok(converted)
}

/// The same, with whatever the schema of that version does not know.
pub(crate) async fn retold(
    inner: &Inner,
    custom: &Custom,
    objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, Refusal> {
    match &custom.definition.conversion {
        Conversion::None => {
            let api_version = join(&custom.definition.group, to);
            let retold = objects.into_iter().map(|mut object| {
                object::set_api_version(&mut object, &api_version);
                object
            });
            Ok(retold.collect())
        }
        Conversion::Webhook(webhook) => {
            crate::webhook::convert(inner, &custom.definition, webhook, objects, to).await
        }
    }
}

fn version_of(object: &Value) -> &str {
    object::api_version(object).rsplit('/').next().unwrap_or_default()
}
