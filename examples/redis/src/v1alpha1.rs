//! The kind `Redis` in its first version.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const DEFAULT_SIZE: i32 = 3;
pub const DEFAULT_VERSION: &str = "8.2";
pub const DEFAULT_MEMORY_MIB: i32 = 64;

/// A cache of several members, over which its clients spread the keys.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "cache.acme.io",
    version = "v1alpha1",
    kind = "Redis",
    plural = "redis",
    doc = "A cache of several members, over which its clients spread the keys.",
    namespaced,
    status = "RedisStatus",
    // The name becomes that of a Service, and with a number and a hash that of pods and their labels.
    validation = Rule::new("self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z][-a-z0-9]*$')")
        .message("the name must be at most 50 lower-case letters, digits and dashes, with a letter first"),
    printcolumn = r#"{"name":"Size","type":"integer","jsonPath":".spec.size"}"#,
    printcolumn = r#"{"name":"Ready","type":"integer","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.version"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct RedisSpec {
    /// How many members it has; 3 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9))]
    pub size: Option<i32>,
    /// The version of Redis; unless said, the newest one that the operator knows when the cache is created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 7), regex(pattern = r"^[0-9]{1,3}\.[0-9]{1,3}$"))]
    pub version: Option<String>,
    /// The memory of each member; 64 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 16, max = 65_536))]
    pub memory_mib: Option<i32>,
}

/// What is known about the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisStatus {
    /// The generation of the object that this speaks of.
    pub observed_generation: Option<i64>,
    /// How many members answer.
    #[serde(default)]
    pub ready: i32,
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    pub conditions: Vec<Condition>,
}

impl RedisSpec {
    pub fn size(&self) -> i32 {
        self.size.unwrap_or(DEFAULT_SIZE)
    }

    pub fn version(&self) -> &str {
        self.version.as_deref().unwrap_or(DEFAULT_VERSION)
    }

    pub fn memory_mib(&self) -> i32 {
        self.memory_mib.unwrap_or(DEFAULT_MEMORY_MIB)
    }
}
