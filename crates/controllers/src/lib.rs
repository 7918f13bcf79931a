//! The control loops of Kubernetes: each reads through shared caches and writes as its own service account.
//!
//! A control loop is a file or a folder: a pure `plan(desired, observed, now)`, and a `reconcile` that reads
//! the observed state from the caches and carries the plan out. [`ALL`] is the list of them.

mod list;
mod settings;

// What several loops share.
mod claim;
mod discovery;
mod int_or_percent;
mod placement;
mod pod;
mod prefix;
mod slow_start;
mod status;

mod account;
mod bootstrap;
mod certificate;
mod cluster_role_aggregation;
mod disruption;
mod lifecycle;
mod network;
mod nodes;
mod resource_claim;
mod storage;
mod workload;

mod scheduler;

pub use certificate::{SigningAuthority, UnusableAuthority};
pub use list::{ALL, ControlLoop};
pub use scheduler::scheduler;
pub use settings::{PodRange, Settings, SignToken, UnusableRange};

use kube::Client;
use operator::Manager;
use world::World;

/// The manager of the control loops with these names; names of other loops are ignored.
///
/// Its caches list and watch through `caches`; each loop writes through the client that `client_of` returns
/// for its service account in the namespace kube-system.
///
/// ```
/// use controllers::{ALL, Settings, manager};
///
/// testkit::run(|cluster| async move {
///     let client_of = |account: &str| {
///         let user = format!("system:serviceaccount:kube-system:{account}");
///         cluster.client_as(&user, &["system:serviceaccounts", "system:serviceaccounts:kube-system"])
///     };
///     let names: Vec<&str> = ALL.iter().map(|it| it.name).collect();
///     let caches = cluster.client_as("system:kube-controller-manager", &[]);
///     let manager = manager(cluster.world(), caches, client_of, &Settings::default(), &names);
///     let _running = cluster.run(manager);
///     cluster.settle().await;
/// });
/// ```
pub fn manager(
    world: &World,
    caches: Client,
    client_of: impl Fn(&str) -> Client,
    settings: &Settings,
    names: &[&str],
) -> Manager {
    let chosen = ALL.iter().filter(|control_loop| names.contains(&control_loop.name));
    chosen.fold(Manager::new("kube-controller-manager", world, caches.clone()), |manager, control_loop| {
        let client = match control_loop.account {
            list::MANAGER => caches.clone(),
            account => client_of(account),
        };
        let controllers = (control_loop.controllers)(settings).into_iter();
        controllers.fold(manager, |manager, controller| {
            manager.controller(controller.client(client.clone()).core_events())
        })
    })
}
