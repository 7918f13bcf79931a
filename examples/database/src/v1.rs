//! Version 1, in which databases are stored.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use operator::webhook::Hub;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub const DEFAULT_STORAGE_GIB: i32 = 10;
pub const DEFAULT_REPLICAS: i32 = 1;

/// A database.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Database",
    namespaced,
    status = "DatabaseStatus",
    shortname = "db",
    printcolumn = r#"{"name":"Engine","type":"string","jsonPath":".spec.engine"}"#,
    printcolumn = r#"{"name":"Storage","type":"integer","jsonPath":".spec.storageGib"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseSpec {
    #[x_kube(validation = Rule::new("self == oldSelf").message("an engine cannot be replaced"))]
    pub engine: Engine,
    /// How much it may hold; 10 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub storage_gib: Option<i32>,
    /// How many copies run; 1 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 9))]
    pub replicas: Option<i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Engine {
    Postgres,
    Mysql,
}

/// What is known about the database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseStatus {
    /// The generation of the object that this speaks of.
    pub observed_generation: Option<i64>,
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    pub conditions: Vec<Condition>,
}

impl Hub for Database {}

impl Engine {
    pub(crate) fn image(self) -> &'static str {
        match self {
            Engine::Postgres => "postgres:18",
            Engine::Mysql => "mysql:9",
        }
    }
}

impl DatabaseSpec {
    pub(crate) fn storage(&self) -> i32 {
        self.storage_gib.unwrap_or(DEFAULT_STORAGE_GIB)
    }

    pub(crate) fn replicas(&self) -> i32 {
        self.replicas.unwrap_or(DEFAULT_REPLICAS)
    }
}
