//! Converts between the versions of a kind, through one of them: the hub.

use super::review::read_review;
use crate::BoxError;
use api::object;
use kube::{Resource, core::ApiResource};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fmt, marker::PhantomData, sync::Arc};

pub(super) const PATH: &str = "/convert";
const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// The version to and from which all others are converted: choose the one with the most fields.
pub trait Hub: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static {}

/// A version that is not the hub. Fields that it does not have must be kept in it all the same, for
/// example in an annotation: [`super::round_trip`] and [`super::hub_round_trip`] find lost fields.
pub trait Spoke: Resource<DynamicType = ()> + Serialize + DeserializeOwned + 'static {
    /// The hub of this kind.
    type Hub: Hub;

    /// This object in the version of the hub.
    fn to_hub(self) -> Result<Self::Hub, BoxError>;

    /// An object of the hub in this version.
    fn from_hub(hub: Self::Hub) -> Result<Self, BoxError>;
}

/// All versions of one kind.
///
/// `Conversion::through::<v2::Bucket>().spoke::<v1::Bucket>()`
#[derive(Clone, Debug)]
pub struct Conversion<H> {
    erased: ErasedConversion,
    hub: PhantomData<fn() -> H>,
}

type ConvertFunction = Arc<dyn Fn(Value) -> Result<Value, BoxError> + Send + Sync>;

/// A conversion without its types.
#[derive(Clone)]
pub(super) struct ErasedConversion {
    pub(super) kind: ApiResource,
    /// By version.
    spokes: BTreeMap<String, SpokeFunctions>,
}

#[derive(Clone)]
struct SpokeFunctions {
    to_hub: ConvertFunction,
    from_hub: ConvertFunction,
}

impl Conversion<()> {
    /// Starts with the hub.
    pub fn through<H: Hub>() -> Conversion<H> {
        let erased = ErasedConversion { kind: ApiResource::erase::<H>(&()), spokes: BTreeMap::new() };
        Conversion { erased, hub: PhantomData }
    }
}

impl<H: Hub> Conversion<H> {
    /// Adds a version that is converted through the hub.
    pub fn spoke<S: Spoke<Hub = H>>(mut self) -> Conversion<H> {
        let functions = SpokeFunctions {
            to_hub: Arc::new(|value| {
                Ok(serde_json::to_value(serde_json::from_value::<S>(value)?.to_hub()?)?)
            }),
            from_hub: Arc::new(|value| {
                Ok(serde_json::to_value(S::from_hub(serde_json::from_value(value)?)?)?)
            }),
        };
        self.erased.spokes.insert(S::version(&()).into_owned(), functions);
        self
    }

    pub(super) fn erase(self) -> ErasedConversion {
        self.erased
    }
}

impl ErasedConversion {
    /// The name of the kind's CustomResourceDefinition.
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
            other => (self.spoke(other)?.to_hub)(value)?,
        };
        let mut converted = match version(wanted) {
            to if to == self.kind.version => hub,
            other => (self.spoke(other)?.from_hub)(hub)?,
        };
        keep_metadata(&mut converted, metadata);
        object::set_api_version(&mut converted, wanted);
        converted["kind"] = json!(self.kind.kind);
        Ok(converted)
    }

    fn spoke(&self, version: &str) -> Result<&SpokeFunctions, BoxError> {
        let spoke = self.spokes.get(version);
        spoke.ok_or_else(|| format!("version {version:?} of {} is not known here", self.kind.kind).into())
    }
}

/// Kubernetes: of the metadata, a conversion may change only labels and annotations.
fn keep_metadata(converted: &mut Value, mut metadata: Value) {
    for field in ["labels", "annotations"] {
        let new = converted.get_mut("metadata").and_then(|it| it.get_mut(field)).map(Value::take);
        match (new, metadata.as_object_mut()) {
            (Some(new), Some(metadata)) if !new.is_null() => drop(metadata.insert(field.to_owned(), new)),
            (_, Some(metadata)) => drop(metadata.remove(field)),
            (_, None) => {}
        }
    }
    converted["metadata"] = metadata;
}

fn version(api_version: &str) -> &str {
    api_version.rsplit('/').next().unwrap_or_default()
}

/// The response to a ConversionReview. The text of an error is for people.
pub(super) fn review(conversions: &[ErasedConversion], body: &[u8]) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct ConversionRequest {
        uid: String,
        #[serde(rename = "desiredAPIVersion")]
        wanted: String,
        objects: Vec<Value>,
    }
    let ConversionRequest { uid, wanted, objects } = read_review(body, API_VERSION, KIND)?;
    let converted: Result<Vec<Value>, String> =
        objects.into_iter().map(|object| convert(conversions, object, &wanted)).collect();
    let response = match converted {
        Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
        Err(problem) => json!({"uid": uid, "result": {"status": "Failure", "message": problem}}),
    };
    Ok(json!({"apiVersion": API_VERSION, "kind": KIND, "response": response}))
}

fn convert(conversions: &[ErasedConversion], value: Value, wanted: &str) -> Result<Value, String> {
    let (kind, name) = (object::kind(&value).to_owned(), object::name(&value).to_owned());
    let conversion = conversions.iter().find(|it| it.is_of(&value));
    let conversion = conversion.ok_or_else(|| format!("{kind} is not converted here"))?;
    conversion
        .convert(value, wanted)
        .map_err(|problem| format!("{kind} {name:?} cannot be converted to {wanted}: {problem}"))
}

impl fmt::Debug for ErasedConversion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<&String> = self.spokes.keys().collect();
        write!(out, "{} through {}: {versions:?}", self.kind.kind, self.kind.version)
    }
}
