//! A control plane inside a test, its own for each test, in virtual time.
//!
//! A test tells a story about a [`Cluster`]. The story runs on one thread from one seed, an hour of
//! waiting takes no time, and when it fails the trace of all requests is printed beside the seed
//! that replays it.
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
#![expect(clippy::panic, reason = "a test that cannot go on says why and stops")]

mod story;

mod cluster;
mod doors;
mod manifest;
mod objects;
mod settle;
mod snapshot;

mod asked;
mod fault;
mod trace;
mod wire;

pub use cluster::{Cluster, Setup};
pub use fault::{Fault, Injected, Rule};
pub use objects::Object;
pub use server::{Exchange, Outbound, Sockets};
pub use snapshot::Snapshot;
pub use story::{run, simulate};
pub use trace::{Entry, Trace};
pub use wire::Held;
