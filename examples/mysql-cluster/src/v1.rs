//! The kind `MySQLCluster`: what a user asks for, and what the operator has seen.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema, ResourceExt};
use operator::Quantity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const DEFAULT_REPLICAS: i32 = 3;
const DEFAULT_RETENTION: i32 = 7;

/// A MySQL primary and its replicas.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "mysql.example.com",
    version = "v1",
    kind = "MySQLCluster",
    plural = "mysqlclusters",
    singular = "mysqlcluster",
    namespaced,
    status = "MySQLClusterStatus",
    shortname = "mysql",
    // For `kubectl scale` and HorizontalPodAutoscalers.
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    // Kubernetes: the name of a CronJob has at most 52 characters, and that of a Service starts with a letter.
    validation = Rule::new("self.metadata.name.size() <= 40 && self.metadata.name.matches('^[a-z][-a-z0-9]*$')")
        .message("the name must be at most 40 lower-case letters, digits and dashes, with a letter first"),
    printcolumn = r#"{"name":"Phase","type":"string","jsonPath":".status.phase"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.ready"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".status.version"}"#,
    printcolumn = r#"{"name":"Primary","type":"string","jsonPath":".status.primary"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct MySQLClusterSpec {
    /// The version of MySQL: `8.4.6`.
    #[schemars(length(max = 9), regex(pattern = r"^[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{1,3}$"))]
    pub version: String,
    /// How many members it has: one primary, and replicas of it.
    #[serde(default = "default_replicas")]
    #[schemars(range(min = 1, max = 9))]
    pub replicas: i32,
    /// What each member keeps its data on.
    pub storage: Storage,
    /// Without it there are no backups, but for a last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backup: Option<Backup>,
    /// The name of a backup of this or another cluster of the namespace, which is loaded once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub restore_from: Option<String>,
    /// The Secret with the `password` of root; `NAME-root` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub root_secret: Option<String>,
    /// What becomes of the data when the cluster is deleted.
    #[serde(default)]
    pub deletion_policy: DeletionPolicy,
}

/// The volume of each member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Its size, which may grow: `100Gi`.
    #[schemars(length(max = 12), regex(pattern = r"^[1-9][0-9]*[MGT]i$"))]
    pub size: String,
    /// Its StorageClass; the default one unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
}

/// When backups are made, and how many are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Backup {
    /// As in a CronJob; unless said, each night, at a minute that depends on the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 100), regex(pattern = r"^([^ ]+ ){4}[^ ]+$"))]
    pub schedule: Option<String>,
    /// How many are kept.
    #[serde(default = "default_retention")]
    #[schemars(range(min = 1, max = 100))]
    pub retention: i32,
}

/// What becomes of the data when the cluster is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// They are deleted after a last backup, which stays.
    #[default]
    Backup,
    /// They are deleted.
    Delete,
    /// The cluster cannot be deleted.
    Refuse,
}

/// What is known about the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MySQLClusterStatus {
    /// The generation of the object that this speaks of.
    pub observed_generation: Option<i64>,
    /// Creating, Running, Upgrading, Restoring or Degraded.
    pub phase: Option<String>,
    /// How many members are ready, of how many: `3/3`.
    pub ready: Option<String>,
    /// How many members there are, ready or not.
    #[serde(default)]
    pub replicas: i32,
    /// That of the members, as text.
    pub selector: Option<String>,
    /// The version that all members had last.
    pub version: Option<String>,
    /// The pod that takes writes.
    pub primary: Option<String>,
    /// Whether all members have a volume.
    #[serde(default)]
    pub storage_provisioned: bool,
    /// The backups that can be restored, the newest last.
    #[serde(default)]
    pub backups: Vec<String>,
    /// The backup that was restored last.
    pub restored: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    pub conditions: Vec<Condition>,
}

impl MySQLCluster {
    pub fn root_secret(&self) -> String {
        self.spec.root_secret.clone().unwrap_or_else(|| format!("{}-root", self.name_any()))
    }

    /// The version that all members had last; `None` before that.
    pub(crate) fn complete_version(&self) -> Option<&str> {
        self.status.as_ref()?.version.as_deref()
    }
}

impl Backup {
    /// Not all clusters make their backups in the same minute.
    pub fn schedule(&self, cluster: &str) -> String {
        let minute = cluster.bytes().map(u32::from).sum::<u32>() % 60;
        self.schedule.clone().unwrap_or_else(|| format!("{minute} 2 * * *"))
    }
}

impl Storage {
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        self.size.parse().ok()
    }
}

fn default_replicas() -> i32 {
    DEFAULT_REPLICAS
}

fn default_retention() -> i32 {
    DEFAULT_RETENTION
}

/// A version as numbers: 8.0.40 is newer than 8.0.9.
pub(crate) fn number(version: &str) -> Vec<u32> {
    version.split('.').filter_map(|part| part.parse().ok()).collect()
}
