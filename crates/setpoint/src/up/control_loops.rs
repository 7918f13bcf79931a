//! Runs the control loops beside the server, as clients of it.

use super::{certificates::Certificates, in_process::Destination};
use anyhow::{Context, Result};
use controllers::{Settings, SigningAuthority};
use futures::future::{Either, FutureExt, select};
use operator::{Manager, Running};
use serde_json::Value;
use server::Server;
use std::{pin::pin, sync::Arc, time::Duration};
use world::World;

/// How long to wait before the control loops start again after they ended with an error.
const PAUSE: Duration = Duration::from_secs(1);
/// The name of the scheduler among those of the control loops.
pub(crate) const SCHEDULER: &str = "kube-scheduler";
/// Kubernetes: the namespace of the lease of its controller manager.
const LEASE_NAMESPACE: &str = "kube-system";

/// Which control loops run, and how.
pub(crate) struct ControlLoops {
    pub(crate) clients: Destination,
    pub(crate) names: Vec<&'static str>,
    pub(crate) settings: Settings,
    /// Which nodes are simulated.
    pub(crate) nodes: node::Settings,
    /// Whether other processes share the store: then only the one that holds the lease runs the loops.
    pub(crate) is_shared: bool,
}

/// What the control loops need of this process.
pub(crate) fn settings(server: &Server, certificates: &Certificates) -> Result<Settings> {
    let Certificates { ca, ca_key, kubelets, .. } = certificates;
    let authority = SigningAuthority::from_pem(ca, ca_key).context("cannot sign certificates with the CA")?;
    let of_kubelets = SigningAuthority::from_pem(&kubelets.certificate, &kubelets.key);
    let of_kubelets = of_kubelets.context("cannot sign certificates with the CA of kubelets")?;
    let server = server.clone();
    let sign_token = Arc::new(move |claims: &Value| server.sign_secret_token(claims));
    Ok(Settings {
        root_ca: Some(ca.clone()),
        sign_token: Some(sign_token),
        signing_authority: Some(Arc::new(authority)),
        kubelet_serving_authority: Some(Arc::new(of_kubelets)),
        ..Settings::default()
    })
}

impl ControlLoops {
    /// Runs the control loops until `stopped`, then waits for reconciles in progress.
    pub(crate) async fn run(self, world: World, stopped: impl Future<Output = ()>) {
        let stopped = stopped.shared();
        // Another process leads now, or a cache could not be filled.
        while let Err(error) = self.manager(&world).run_until(stopped.clone()).await {
            tracing::warn!(%error, "control loops ended; they start again");
            if let Either::Right(_) = select(pin!(world.sleep(PAUSE)), stopped.clone()).await {
                return;
            }
        }
    }

    /// Starts the control loops; they do not start again after an error.
    pub(super) fn start(&self, world: &World) -> Running {
        self.manager(world).start()
    }

    fn manager(&self, world: &World) -> Manager {
        let caches = self.clients.user("kube-controller-manager", "system:kube-controller-manager", &[]);
        let account = |name: &str| self.clients.account(name);
        let settings = Settings { has_other_servers: self.is_shared, ..self.settings.clone() };
        let mut manager = controllers::manager(world, caches, account, &settings, &self.names);
        if self.names.contains(&SCHEDULER) {
            let client = self.clients.user("kube-scheduler", "system:kube-scheduler", &[]);
            manager = manager.controller(controllers::scheduler(world, client));
        }
        if self.nodes.count > 0 {
            let clients = self.clients.clone();
            let client_of =
                move |node: &str| clients.user("kubelet", &format!("system:node:{node}"), &["system:nodes"]);
            let storage = self.clients.user("csi-provisioner", node::PROVISIONER, &["system:masters"]);
            let controllers = node::controllers(client_of, &self.nodes).into_iter();
            manager = controllers.chain(node::storage(&storage)).fold(manager, Manager::controller);
        }
        if self.is_shared { manager.elect_in(LEASE_NAMESPACE) } else { manager }
    }
}
