//! The kind `CronTab`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Runs of an image at the times of a crontab.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "stable.example.com",
    version = "v1",
    kind = "CronTab",
    doc = "Runs of an image at the times of a crontab.",
    namespaced,
    status = "CronTabStatus",
    shortname = "ct",
    // Kubernetes: the name of a CronJob, which is that of its CronTab, has room for the number of a run.
    validation = Rule::new("self.metadata.name.size() <= 52").message("the name must have at most 52 characters"),
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.labelSelector"
    ),
    printcolumn = r#"{"name":"Spec","type":"string","jsonPath":".spec.cronSpec"}"#,
    printcolumn = r#"{"name":"Replicas","type":"integer","jsonPath":".spec.replicas"}"#,
    printcolumn = r#"{"name":"Last Run","type":"date","jsonPath":".status.lastRun"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct CronTabSpec {
    /// When it runs, in UTC: minute, hour, day of the month, month, day of the week.
    #[schemars(length(max = 100))]
    #[x_kube(validation = Rule::new(r"self.matches('^[^ ]+( [^ ]+){4}$')")
        .message("a cronSpec has five fields: minute, hour, day of the month, month, day of the week"))]
    pub cron_spec: String,
    /// What runs.
    #[schemars(length(min = 1, max = 255))]
    pub image: String,
    /// How many pods each run has; with 0 there are no runs.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub replicas: i32,
}

/// What is known about the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronTabStatus {
    /// The generation of the object that this speaks of.
    pub observed_generation: Option<i64>,
    /// How many pods a run has by now.
    #[serde(default)]
    pub replicas: i32,
    /// Selects these pods, for autoscalers.
    #[serde(default)]
    pub label_selector: String,
    /// When the last run was due.
    #[schemars(extend("format" = "date-time"))]
    pub last_run: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    pub conditions: Vec<Condition>,
}

fn one() -> i32 {
    1
}
