//! The control loops, the scheduler and the nodes of Kubernetes, beside the server of a test.

use crate::{Cluster, cluster::SIGNING_KEY};
use controllers::{ALL, SigningAuthority};
use operator::Running;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

/// Which control loops and how many nodes a test has. Start with [`Cluster::control_plane`].
#[derive(Clone, Debug)]
pub struct ControlPlane {
    cluster: Cluster,
    names: Vec<&'static str>,
    nodes: usize,
}

impl Cluster {
    /// All control loops, the scheduler, and one simulated node, on which pods run without containers. Claims get
    /// simulated volumes: there is a default StorageClass `standard`.
    ///
    /// ```
    /// use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    ///
    /// testkit::run(|cluster| async move {
    ///     let _running = cluster.control_plane().start();
    ///     cluster
    ///         .apply(
    ///             "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {
    ///                replicas: 2, selector: {matchLabels: {app: web}}, template: {
    ///                  metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}}}",
    ///         )
    ///         .await;
    ///     cluster.settle().await;
    ///     let web: Deployment = cluster.get("default", "web").await;
    ///     assert_eq!(web.status.unwrap().available_replicas, Some(2));
    ///
    ///     cluster.delete::<Deployment>("default", "web").await;
    ///     cluster.settle().await;
    ///     assert!(cluster.list::<Pod>("default").await.is_empty(), "garbage collection");
    /// });
    /// ```
    pub fn control_plane(&self) -> ControlPlane {
        let names = ALL.iter().filter(|it| !it.is_on_request).map(|it| it.name).chain([SCHEDULER]);
        ControlPlane { cluster: self.clone(), names: names.collect(), nodes: 1 }
    }
}

/// The name of the scheduler among those of the control loops, and in the manager.
const SCHEDULER: &str = "kube-scheduler";
const SCHEDULER_QUEUE: &str = "default-scheduler";
/// Kubernetes: a pod that fitted no node is tried again after ten seconds at most, once a node has changed. A cluster is
/// not settled before that.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);

impl ControlPlane {
    /// Not the control loop of this name: those of kube-controller-manager's `--controllers`, and `kube-scheduler`.
    ///
    /// # Panics
    /// If no loop has this name.
    pub fn without(mut self, name: &str) -> ControlPlane {
        let all: Vec<&str> = ALL.iter().map(|it| it.name).chain([SCHEDULER]).collect();
        assert!(all.contains(&name), "no control loop is called {name:?}; there are: {}", all.join(", "));
        self.names.retain(|it| *it != name);
        self
    }

    /// So many simulated nodes.
    pub fn nodes(mut self, nodes: usize) -> ControlPlane {
        self.nodes = nodes;
        self
    }

    /// Starts them: [`Cluster::settle`] waits for them. To drop the result is a crash.
    pub fn start(self) -> Running {
        let ControlPlane { cluster, names, nodes } = self;
        let account = |name: &str| {
            let user = format!("system:serviceaccount:kube-system:{name}");
            cluster.client_as(&user, &["system:serviceaccounts", "system:serviceaccounts:kube-system"])
        };
        let server = cluster.server().clone();
        let settings = controllers::Settings {
            sign_token: Some(Arc::new(move |claims| server.sign_secret_token(claims))),
            signing_authority: Some(signing_authority()),
            ..controllers::Settings::default()
        };
        let caches = cluster.client_as("system:kube-controller-manager", &[]);
        let mut manager = controllers::manager(cluster.world(), caches, account, &settings, &names);
        if names.contains(&SCHEDULER) {
            let client = cluster.client_as("system:kube-scheduler", &[]);
            manager = manager.controller(controllers::scheduler(cluster.world(), client));
        }
        if nodes > 0 {
            let clients = cluster.clone();
            let client_of =
                move |node: &str| clients.client_as(&format!("system:node:{node}"), &["system:nodes"]);
            let kubelet = cluster.inner.kubelet.clone();
            let settings = node::Settings { count: nodes, kubelet, ..node::Settings::default() };
            let storage = cluster.client_as(node::PROVISIONER, &["system:masters"]);
            manager = node::controllers(client_of, &settings)
                .into_iter()
                .chain(node::storage(&storage))
                .fold(manager, operator::Manager::controller);
        }
        let running = cluster.run(manager);
        if let Some(queue) = running.queue(SCHEDULER_QUEUE).cloned() {
            let world = cluster.world().clone();
            cluster.watch_idle(SCHEDULER, move || {
                let wait = queue.next_due().map(|due| due.since(world.now())).unwrap_or_default();
                wait.is_zero() || wait > LONGEST_BACK_OFF
            });
        }
        running
    }
}

/// The CA for CertificateSigningRequests, the same in all tests. It protects nothing.
fn signing_authority() -> Arc<SigningAuthority> {
    static AUTHORITY: OnceLock<Arc<SigningAuthority>> = OnceLock::new();
    let make = || {
        let key = KeyPair::from_pem(SIGNING_KEY).expect("the file holds a key");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("the key signs").pem();
        SigningAuthority::from_pem(&certificate, SIGNING_KEY).expect("the certificate is that of the key")
    };
    Arc::clone(AUTHORITY.get_or_init(|| Arc::new(make())))
}
