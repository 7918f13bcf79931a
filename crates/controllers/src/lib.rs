//! The control loops of Kubernetes: each reads through shared caches and writes as its own service account.
//!
//! A control loop is a file or a folder: a pure `plan(desired, observed, now)`, and a `reconcile` that reads
//! the observed state from the caches and carries the plan out. [`ALL`] is the list of them.

mod list;

// What several loops share.
mod claim;
mod pod;
mod slow_start;
mod status;

mod network;
mod workload;

mod scheduler;

pub use list::{ALL, ControlLoop};
pub use scheduler::scheduler;

use kube::Client;
use operator::Manager;
use world::World;

/// The manager of the control loops with these names; names of other loops are ignored.
///
/// Its caches list and watch through `caches`; each loop writes through the client that `client_of` returns
/// for its service account in the namespace kube-system.
///
/// ```
/// use controllers::{ALL, manager};
///
/// testkit::run(|cluster| async move {
///     let client_of = |account: &str| {
///         let user = format!("system:serviceaccount:kube-system:{account}");
///         cluster.client_as(&user, &["system:serviceaccounts", "system:serviceaccounts:kube-system"])
///     };
///     let names: Vec<&str> = ALL.iter().map(|it| it.name).collect();
///     let caches = cluster.client_as("system:kube-controller-manager", &[]);
///     let _running = cluster.run(manager(cluster.world(), caches, client_of, &names));
///     cluster.settle().await;
/// });
/// ```
pub fn manager(world: &World, caches: Client, client_of: impl Fn(&str) -> Client, names: &[&str]) -> Manager {
    let chosen = ALL.iter().filter(|control_loop| names.contains(&control_loop.name));
    chosen.fold(Manager::new("kube-controller-manager", world, caches), |manager, control_loop| {
        let client = client_of(control_loop.account);
        let controllers = (control_loop.controllers)().into_iter();
        controllers.fold(manager, |manager, controller| {
            manager.controller(controller.client(client.clone()).core_events())
        })
    })
}
