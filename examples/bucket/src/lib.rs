//! A finalizer for something outside of the cluster: every `Bucket` has one real bucket, which is created
//! with the object and deleted before it.

#![expect(unreachable_pub, reason = "kube's derive repeats the type inside a function")]

mod cloud;

pub use cloud::{Cloud, Directories};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema, ResourceExt};
use operator::{
    Context, Controller, Failure, Key, Next, all,
    condition::{self, Report},
    finalizer::{self, Lifecycle},
    predicate, status,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub const FINALIZER: &str = "bucket.example.com/outside";

/// A bucket in the cloud.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Bucket",
    namespaced,
    status = "BucketStatus",
    shortname = "bkt",
    printcolumn = r#"{"name":"Region","type":"string","jsonPath":".spec.region"}"#,
    printcolumn = r#"{"name":"Address","type":"string","jsonPath":".status.address"}"#
)]
#[serde(rename_all = "camelCase")]
pub struct BucketSpec {
    /// Where it is.
    #[schemars(regex(pattern = "^[a-z]{2}-[a-z]+-[0-9]$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("a bucket cannot move"))]
    pub region: String,
    /// How much it may hold.
    #[schemars(range(min = 1, max = 1000))]
    pub size_gib: i32,
}

/// What is known about the bucket.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatus {
    /// The generation of the object that this speaks of.
    pub observed_generation: Option<i64>,
    /// Where to find it.
    pub address: Option<String>,
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    pub conditions: Vec<Condition>,
}

pub fn controller(cloud: Arc<dyn Cloud>) -> Controller {
    // Only this controller writes the status: its changes need no reconcile.
    let counts = predicate::generation() | predicate::deletion();
    Controller::new("bucket", all::<Bucket>().when(counts)).reconcile(cloud, reconcile)
}

async fn reconcile(context: Context<Arc<dyn Cloud>>, key: Key) -> Result<Next, Failure> {
    let Some(bucket) = context.get::<Bucket>(&key)? else { return Ok(Next::Settled) };
    let buckets = context.namespaced::<Bucket>(&key);
    let cloud = Arc::clone(context.state());
    finalizer::guard(&buckets, Bucket::clone(&bucket), FINALIZER, async |bucket| match bucket {
        Lifecycle::Live(bucket) => {
            let made = cloud.ensure(&outside_name(&bucket), &bucket.spec);
            status::set(&buckets, &bucket, &observed(&bucket, &made, context.wall())).await?;
            made.map_err(Failure::from)?;
            Ok(Next::Settled)
        }
        Lifecycle::Deleting(bucket) => {
            cloud.remove(&outside_name(&bucket))?;
            Ok(Next::Settled)
        }
    })
    .await
}

/// Named by UID: the same after a crash, and different for a later object of the same name.
pub fn outside_name(bucket: &Bucket) -> String {
    format!("bucket-{}", bucket.uid().unwrap_or_default())
}

/// The status after an attempt to create the bucket.
fn observed(bucket: &Bucket, made: &std::io::Result<String>, now: operator::Timestamp) -> BucketStatus {
    let mut status = bucket.status.clone().unwrap_or_default();
    let report = match made {
        Ok(address) => Report::new("Ready", true, "Made", format!("it is at {address}")),
        Err(problem) => Report::new("Ready", false, "CloudFailed", problem.to_string()),
    };
    condition::set(&mut status.conditions, report.of(bucket), now);
    status.observed_generation = bucket.metadata.generation;
    status.address = made.as_ref().ok().cloned().or(status.address);
    status
}
