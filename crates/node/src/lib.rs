//! Nodes: simulated ones, on which pods run without containers.
//!
//! A simulated node registers itself, renews its lease, and gives its pods the statuses that a kubelet would
//! write; [`Script`] says what their containers do. All simulated nodes of a process share one cache of pods and
//! nodes, and each writes as itself: user `system:node:NAME` in group `system:nodes`.

mod budget;
mod image;
mod query;
mod script;
mod shell;
mod times;

mod environment;
mod plan;
mod simulation;
mod workshop;

mod admission;
mod host_ports;
mod ledger;
mod machine;
mod obstacles;
mod requests;
mod settings;

mod fleet;
mod node_loop;
mod pod_loop;
mod storage;

mod exec;
pub mod kubelet;
mod logs;

pub use kubelet::Kubelet;
pub use script::{ExecResult, ImagePull, Part, SCRIPT, Script, Span};
pub use settings::{NODE, SIMULATED, STOPPED, Settings};
pub use storage::{PROVISIONER, STORAGE_CLASS, storage};

use fleet::Fleet;
use kube::Client;
use operator::{Controller, Manager};
use std::sync::Arc;
use world::World;

/// The manager of simulated nodes.
///
/// Its caches list and watch pods, nodes, ConfigMaps, Secrets and claims through `caches`; each node writes
/// through the client that `client_of` returns for its name.
///
/// ```
/// testkit::run(|cluster| async move {
///     let nodes = cluster.clone();
///     let client_of =
///         move |node: &str| nodes.client_as(&format!("system:node:{node}"), &["system:nodes"]);
///     let caches = cluster.client_as("system:kube-controller-manager", &[]);
///     let settings = node::Settings { count: 1, ..node::Settings::default() };
///     let _running = cluster.run(node::manager(cluster.world(), caches, client_of, &settings));
///     cluster.settle().await;
///     let node: k8s_openapi::api::core::v1::Node = cluster.get(None, "node-0").await;
///     assert_eq!(node.status.unwrap().node_info.unwrap().kubelet_version, "v1.36.4");
/// });
/// ```
pub fn manager(
    world: &World,
    caches: Client,
    client_of: impl Fn(&str) -> Client + Send + Sync + 'static,
    settings: &Settings,
) -> Manager {
    let manager = Manager::new("simulated-nodes", world, caches);
    controllers(client_of, settings).into_iter().fold(manager, Manager::controller)
}

/// The controllers of simulated nodes, for a manager with others.
pub fn controllers(
    client_of: impl Fn(&str) -> Client + Send + Sync + 'static,
    settings: &Settings,
) -> Vec<Controller> {
    let fleet = Arc::new(Fleet::new(settings.clone(), Arc::new(client_of)));
    vec![node_loop::controller(&fleet), pod_loop::controller(&fleet)]
}
