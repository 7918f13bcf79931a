//! Decodes FlowSchemas and PriorityLevelConfigurations.

use super::{queues::Overflow, rule::FlowRule};
use crate::{live::Fold, stored::Stored};
use http::HeaderValue;
use serde::{Deserialize, Deserializer, de::DeserializeOwned};
use std::{collections::BTreeMap, sync::Arc};

// Kubernetes: these two exist even without objects.
pub(super) const EXEMPT: &str = "exempt";
pub(super) const CATCH_ALL: &str = "catch-all";

/// A FlowSchema: which requests belong to which priority level.
#[derive(Debug, Deserialize)]
pub(super) struct Schema {
    pub(super) metadata: Metadata,
    pub(super) spec: SchemaSpec,
}

#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    pub(super) name: String,
    #[serde(default = "no_uid", deserialize_with = "uid")]
    pub(super) uid: HeaderValue,
}

fn no_uid() -> HeaderValue {
    HeaderValue::from_static("")
}

/// As a header value.
fn uid<'de, D: Deserializer<'de>>(from: D) -> Result<HeaderValue, D::Error> {
    let text = String::deserialize(from)?;
    Ok(HeaderValue::try_from(text).unwrap_or_else(|_| no_uid()))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SchemaSpec {
    pub(super) priority_level_configuration: LevelReference,
    #[serde(default)]
    pub(super) matching_precedence: i32,
    #[serde(default)]
    pub(super) distinguisher_method: Option<Method>,
    #[serde(default)]
    pub(super) rules: Vec<FlowRule>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LevelReference {
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Method {
    #[serde(rename = "type")]
    pub(super) by: Distinguisher,
}

/// What distinguishes the flows of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Distinguisher {
    ByUser,
    ByNamespace,
}

/// A PriorityLevelConfiguration: its share of seats, and what happens to requests that find none.
#[derive(Debug, Deserialize)]
pub(super) struct PriorityLevel {
    pub(super) metadata: Metadata,
    spec: LevelSpec,
}

#[derive(Debug, Deserialize)]
struct LevelSpec {
    #[serde(rename = "type")]
    kind: LevelKind,
    #[serde(default)]
    limited: Option<Limited>,
    #[serde(default)]
    exempt: Option<Limited>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum LevelKind {
    Exempt,
    Limited,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Limited {
    nominal_concurrency_shares: u32,
    lendable_percent: u32,
    borrowing_limit_percent: Option<u32>,
    limit_response: LimitResponse,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LimitResponse {
    queuing: Option<Queuing>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Queuing {
    queues: u32,
    hand_size: u32,
    queue_length_limit: usize,
}

/// The objects of one of the two kinds, and a change counter.
#[derive(Debug)]
pub(super) struct View<T> {
    pub(super) objects: BTreeMap<String, Arc<T>>,
    pub(super) changes: u64,
}

impl<T> Default for View<T> {
    fn default() -> View<T> {
        View { objects: BTreeMap::new(), changes: 0 }
    }
}

impl<T: DeserializeOwned> Fold for View<T> {
    fn clear(&mut self) {
        self.changes += 1;
        self.objects.clear();
    }

    fn put(&mut self, key: &str, object: Stored) {
        self.changes += 1;
        match serde_json::from_slice(&object.json) {
            Ok(object) => drop(self.objects.insert(key.to_owned(), Arc::new(object))),
            Err(error) => {
                tracing::warn!(key, problem = %error, "cannot decode flow schema or priority level: ignored");
                self.objects.remove(key);
            }
        }
    }

    fn remove(&mut self, key: &str) {
        self.changes += 1;
        self.objects.remove(key);
    }
}

impl PriorityLevel {
    fn limits(&self) -> Option<&Limited> {
        let LevelSpec { kind, limited, exempt } = &self.spec;
        // Kubernetes: the level `exempt`, and no other, is of type Exempt.
        match (kind, self.metadata.name == EXEMPT) {
            (LevelKind::Exempt, true) => exempt.as_ref(),
            (LevelKind::Limited, false) => limited.as_ref(),
            _ => None,
        }
    }

    /// Whether the configuration is consistent; others are ignored.
    pub(super) fn is_consistent(&self) -> bool {
        self.limits().is_some()
    }

    pub(super) fn is_exempt(&self) -> bool {
        self.spec.kind == LevelKind::Exempt
    }

    pub(super) fn shares(&self) -> u32 {
        self.limits().map_or(0, |limits| limits.nominal_concurrency_shares)
    }

    pub(super) fn lendable(&self) -> u32 {
        self.limits().map_or(0, |limits| limits.lendable_percent)
    }

    pub(super) fn borrowing(&self) -> Option<u32> {
        self.limits().and_then(|limits| limits.borrowing_limit_percent)
    }

    pub(super) fn response(&self) -> Overflow {
        let queuing = self.limits().and_then(|limits| limits.limit_response.queuing.as_ref());
        match queuing {
            _ if self.is_exempt() => Overflow::Exempt,
            None => Overflow::Reject,
            Some(it) => {
                Overflow::Queue { queues: it.queues, hand: it.hand_size, length: it.queue_length_limit }
            }
        }
    }
}

/// The schemas in matching order, without those whose level is missing.
pub(super) fn in_order(
    schemas: impl Iterator<Item = Arc<Schema>>,
    is_level: impl Fn(&str) -> bool,
) -> Vec<Arc<Schema>> {
    let mut schemas: Vec<_> =
        schemas.filter(|schema| is_level(&schema.spec.priority_level_configuration.name)).collect();
    schemas.sort_by(|one, other| {
        let key = |schema: &Schema| (schema.spec.matching_precedence, schema.metadata.name.clone());
        key(one).cmp(&key(other))
    });
    let is_missing = |name: &str| !schemas.iter().any(|schema| schema.metadata.name == name);
    let (no_first, no_last) = (is_missing(EXEMPT), is_missing(CATCH_ALL));
    if no_first {
        schemas.insert(0, Arc::new(mandatory(EXEMPT)));
    }
    if no_last {
        schemas.push(Arc::new(mandatory(CATCH_ALL)));
    }
    schemas
}

/// The mandatory schema or level of that name.
pub(super) fn mandatory<T: DeserializeOwned>(name: &str) -> T {
    let wanted = |json: &'static str| {
        let text: serde_json::Value = serde_json::from_str(json).ok()?;
        (text["metadata"]["name"] == name).then(|| serde_json::from_value(text).ok()).flatten()
    };
    let all = kinds::bootstrap().filter(|(path, _)| path.starts_with("/apis/flowcontrol.apiserver.k8s.io/"));
    let found = all.map(|(_, json)| json).find_map(wanted);
    found.expect("the bootstrap objects include the mandatory ones")
}
