//! A control plane inside a test, its own for each test, in virtual time.
//!
//! A test runs with a [`Cluster`] on one thread, from one seed. An hour of waiting takes no time, and a
//! test that fails prints its last requests, the file with all of them, and the seed that replays it.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use testkit::Fault;
//!
//! testkit::run(|cluster| async move {
//!     cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {size: small}}").await;
//!     let lost = cluster.inject(Fault::on("patch", "configmaps").named("web").nth(1).lose_answer());
//!     let patch = serde_json::json!({"data": {"size": "large"}});
//!     assert!(cluster.try_patch::<ConfigMap>("default", "web", &patch).await.is_err());
//!     let web: ConfigMap = cluster.get("default", "web").await;
//!     assert_eq!(web.data.unwrap()["size"], "large", "it was committed all the same");
//!     assert_eq!(lost.hits(), 1);
//! });
//! ```
#![warn(missing_docs)]
#![expect(clippy::panic, reason = "a test that cannot go on says why and stops")]

mod crash;
mod run;

mod cluster;
mod control_plane;
mod manifest;
mod objects;
mod outside;
mod settle;
mod simulated_nodes;
mod snapshot;
mod webhooks;

mod scratch;
mod story;

pub use cluster::{Cluster, Setup};
pub use control_plane::ControlPlane;
pub use crash::{Crashes, crash_everywhere};
pub use objects::Object;
pub use run::{run, seeds, simulate};
pub use server::{Exchange, Outbound, Sockets};
pub use snapshot::Snapshot;
pub use testing::{CrashPoint, Entry, Fault, HeldWatches, Injected, Rule, Trace};
