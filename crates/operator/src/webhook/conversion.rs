//! Versions of one type, converted through the one that all others know: the hub.

use crate::BoxError;
use api::object;
use kube::{Resource, core::ApiResource};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, marker::PhantomData, sync::Arc};

pub(super) const PATH: &str = "/convert";
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// The version that every other can be converted to and from: choose the richest.
pub trait Hub: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static {}

/// A version that is not the hub. What it cannot say must be kept in it all the same, in an
/// annotation for example: [`super::round_trip`] and [`super::hub_round_trip`] find what is lost.
pub trait Spoke: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static {
    type Hub: Hub;

    fn to_hub(self) -> Result<Self::Hub, BoxError>;
    fn from_hub(hub: Self::Hub) -> Result<Self, BoxError>;
}

/// All versions of one kind.
///
/// `Conversion::through::<v2::Bucket>().spoke::<v1::Bucket>()`
#[derive(Clone, Debug)]
pub struct Conversion<H> {
    erased: Erased,
    hub: PhantomData<fn() -> H>,
}

type Step = Arc<dyn Fn(Value) -> Result<Value, BoxError> + Send + Sync>;

/// The same without types.
#[derive(Clone)]
pub(super) struct Erased {
    pub(super) kind: ApiResource,
    /// By version.
    spokes: BTreeMap<String, Steps>,
}

#[derive(Clone)]
struct Steps {
    to_hub: Step,
    from_hub: Step,
}

impl Conversion<()> {
    /// Begins with the hub.
    pub fn through<H: Hub>() -> Conversion<H> {
        let erased = Erased { kind: ApiResource::erase::<H>(&()), spokes: BTreeMap::new() };
        Conversion { erased, hub: PhantomData }
    }
}

impl<H: Hub> Conversion<H> {
    pub fn spoke<S: Spoke<Hub = H>>(mut self) -> Conversion<H> {
        let steps = Steps {
            to_hub: Arc::new(|value| {
                Ok(serde_json::to_value(serde_json::from_value::<S>(value)?.to_hub()?)?)
            }),
            from_hub: Arc::new(|value| {
                Ok(serde_json::to_value(S::from_hub(serde_json::from_value(value)?)?)?)
            }),
        };
        self.erased.spokes.insert(S::version(&()).into_owned(), steps);
        self
    }

    pub(super) fn erase(self) -> Erased {
        self.erased
    }
}

impl Erased {
    /// The name of the kind's definition.
    pub(super) fn definition(&self) -> String {
        format!("{}.{}", self.kind.plural, self.kind.group)
    }

    fn is_of(&self, value: &Value) -> bool {
        let group = object::api_version(value).split_once('/').map_or("", |(group, _)| group);
        group == self.kind.group && object::kind(value) == self.kind.kind
    }

    /// The same object in another version.
    fn convert(&self, value: Value, wanted: &str) -> Result<Value, BoxError> {
        if object::api_version(&value) == wanted {
            return Ok(value);
        }
        let from = version(object::api_version(&value)).to_owned();
        let metadata = value.get("metadata").cloned().unwrap_or_default();
        let hub = match &*from {
            hub if hub == self.kind.version => value,
            other => (self.steps(other)?.to_hub)(value)?,
        };
        let mut converted = match version(wanted) {
            to if to == self.kind.version => hub,
            other => (self.steps(other)?.from_hub)(hub)?,
        };
        keep_identity(&mut converted, metadata);
        object::set_api_version(&mut converted, wanted);
        converted["kind"] = json!(self.kind.kind);
        Ok(converted)
    }

    fn steps(&self, version: &str) -> Result<&Steps, BoxError> {
        let steps = self.spokes.get(version);
        steps.ok_or_else(|| format!("version {version:?} of {} is not known here", self.kind.kind).into())
    }
}

/// Kubernetes: conversion changes labels and annotations at the most, never who an object is.
fn keep_identity(converted: &mut Value, mut metadata: Value) {
    for field in ["labels", "annotations"] {
        let said = converted.get_mut("metadata").and_then(|it| it.get_mut(field)).map(Value::take);
        match (said, metadata.as_object_mut()) {
            (Some(said), Some(metadata)) if !said.is_null() => drop(metadata.insert(field.to_owned(), said)),
            (_, Some(metadata)) => drop(metadata.remove(field)),
            (_, None) => {}
        }
    }
    converted["metadata"] = metadata;
}

fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// Answers a review. The text of an error is for people.
pub(super) fn review(conversions: &[Erased], body: &[u8]) -> Result<Value, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ConversionReview {
        api_version: String,
        kind: String,
        request: Option<Asked>,
    }
    #[derive(Deserialize)]
    struct Asked {
        uid: String,
        #[serde(rename = "desiredAPIVersion")]
        wanted: String,
        objects: Vec<Value>,
    }
    let review: ConversionReview =
        serde_json::from_slice(body).map_err(|error| format!("this is no {KIND}: {error}"))?;
    if (review.api_version.as_str(), review.kind.as_str()) != (API_VERSION, KIND) {
        return Err(format!(
            "expected a {KIND} of {API_VERSION}, got a {} of {}",
            review.kind, review.api_version
        ));
    }
    let Asked { uid, wanted, objects } =
        review.request.ok_or_else(|| format!("the {KIND} holds no request"))?;
    let converted: Result<Vec<Value>, String> =
        objects.into_iter().map(|object| convert(conversions, object, &wanted)).collect();
    let response = match converted {
        Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
        Err(problem) => json!({"uid": uid, "result": {"status": "Failure", "message": problem}}),
    };
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}))
}

fn convert(conversions: &[Erased], value: Value, wanted: &str) -> Result<Value, String> {
    let (kind, name) = (object::kind(&value).to_owned(), object::name(&value).to_owned());
    let conversion = conversions.iter().find(|it| it.is_of(&value));
    let conversion = conversion.ok_or_else(|| format!("{kind} is not converted here"))?;
    conversion
        .convert(value, wanted)
        .map_err(|problem| format!("{kind} {name:?} cannot be converted to {wanted}: {problem}"))
}

impl fmt::Debug for Erased {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<&String> = self.spokes.keys().collect();
        write!(out, "{} through {}: {versions:?}", self.kind.kind, self.kind.version)
    }
}
