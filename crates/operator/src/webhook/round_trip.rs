//! Converts there and back, and finds the field that was lost.

use super::Spoke;
use crate::BoxError;
use kube::Resource;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// An object is not the same after a conversion there and back.
#[derive(Debug, thiserror::Error)]
pub enum RoundTripError {
    /// A field differs.
    #[error("{way}: {field} was {before} and is now {after}")]
    Field {
        /// From which version to which and back.
        way: String,
        /// The path of the field.
        field: String,
        /// Its value before.
        before: Value,
        /// Its value after.
        after: Value,
    },
    /// A conversion failed.
    #[error("{way} fails")]
    Failed {
        /// From which version to which.
        way: String,
        /// Why.
        #[source]
        source: BoxError,
    },
}

/// Converts a version to the hub and back. For tests with generated objects; the error names the first
/// field that differs.
pub fn round_trip<S: Spoke>(spoke: S) -> Result<(), RoundTripError> {
    trip(&way::<S, S::Hub>(), spoke, |spoke| S::from_hub(spoke.to_hub()?))
}

/// Converts a hub to a version and back: fields that the version does not have must be kept in it too.
pub fn hub_round_trip<S: Spoke>(hub: S::Hub) -> Result<(), RoundTripError> {
    trip(&way::<S::Hub, S>(), hub, |hub| S::from_hub(hub)?.to_hub())
}

fn trip<K>(
    way: &str,
    object: K,
    there_and_back: impl FnOnce(K) -> Result<K, BoxError>,
) -> Result<(), RoundTripError>
where
    K: Serialize + DeserializeOwned,
{
    let failed = |source: BoxError| RoundTripError::Failed { way: way.to_owned(), source };
    let before = serde_json::to_value(&object).map_err(|error| failed(error.into()))?;
    let back = there_and_back(object).map_err(failed)?;
    let after = serde_json::to_value(back).map_err(|error| failed(error.into()))?;
    match difference(String::new(), &before, &after) {
        None => Ok(()),
        Some((field, before, after)) => {
            Err(RoundTripError::Field { way: way.to_owned(), field, before, after })
        }
    }
}

fn way<A: Resource<DynamicType = ()>, B: Resource<DynamicType = ()>>() -> String {
    let (there, back) = (B::version(&()), A::version(&()));
    format!("{} {back} → {there} → {back}", A::kind(&()))
}

/// The first place where two values differ.
fn difference(path: String, before: &Value, after: &Value) -> Option<(String, Value, Value)> {
    match (before, after) {
        (before, after) if before == after => None,
        (Value::Object(before), Value::Object(after)) => {
            let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
            names.into_iter().find_map(|name| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let at = |map: &Map<String, Value>| map.get(name).cloned().unwrap_or_default();
                difference(path, &at(before), &at(after))
            })
        }
        (Value::Array(before), Value::Array(after)) => (0..before.len().max(after.len())).find_map(|index| {
            let at = |list: &[Value]| list.get(index).cloned().unwrap_or_default();
            difference(format!("{path}[{index}]"), &at(before), &at(after))
        }),
        (before, after) => Some((path, before.clone(), after.clone())),
    }
}
