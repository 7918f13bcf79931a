//! Version 1 beta 1: storage is a text, and there are no replicas.

use crate::v1;
use kube::{CustomResource, KubeSchema};
use operator::{BoxError, webhook::Spoke};
use serde::{Deserialize, Serialize};

/// Keeps what this version has no field for.
const REPLICAS: &str = "database.example.com/replicas";
const UNIT: &str = "Gi";

/// A database.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "example.com",
    version = "v1beta1",
    kind = "Database",
    namespaced,
    status = "v1::DatabaseStatus",
    shortname = "db"
)]
pub struct OldDatabaseSpec {
    pub engine: v1::Engine,
    /// How much it may hold: `10Gi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[1-9][0-9]*Gi$"))]
    pub storage: Option<String>,
}

impl Spoke for Database {
    type Hub = v1::Database;

    fn to_hub(mut self) -> Result<v1::Database, BoxError> {
        let annotations = self.metadata.annotations.as_mut();
        let replicas = annotations.and_then(|annotations| annotations.remove(REPLICAS));
        self.metadata.annotations = self.metadata.annotations.filter(|annotations| !annotations.is_empty());
        let storage = self.spec.storage.as_deref().map(|text| text.trim_end_matches(UNIT).parse());
        Ok(v1::Database {
            metadata: self.metadata,
            spec: v1::DatabaseSpec {
                engine: self.spec.engine,
                storage_gib: storage.transpose()?,
                replicas: replicas.map(|text| text.parse()).transpose()?,
            },
            status: self.status,
        })
    }

    fn from_hub(mut hub: v1::Database) -> Result<Database, BoxError> {
        if let Some(replicas) = hub.spec.replicas {
            let annotations = hub.metadata.annotations.get_or_insert_default();
            annotations.insert(REPLICAS.to_owned(), replicas.to_string());
        }
        let storage = hub.spec.storage_gib.map(|storage| format!("{storage}{UNIT}"));
        let spec = OldDatabaseSpec { engine: hub.spec.engine, storage };
        Ok(Database { metadata: hub.metadata, spec, status: hub.status })
    }
}
