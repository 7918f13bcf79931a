//! `setpoint up --testing`: a cluster whose clients pass the testing API, and the recipe for its forks.

mod open_files;

use super::{
    UpOptions, account_key, audit,
    certificates::Certificates,
    control_loops::{self, ControlLoops},
    controllers,
    in_process::Destination,
    kubeconfig,
    pod_network::SimulatedNodes,
};
use ::controllers::Settings;
use anyhow::{Result, anyhow};
use futures::future::BoxFuture;
use node::Kubelet;
use server::{Config, Server, SigningKey, Token, accept::Limits};
use std::{net::SocketAddr, sync::Arc, time::Duration};
use store::Store;
use testing::{Cluster, InProcessKubelets, Recipe, StartedServer};
use tokio_rustls::rustls::ServerConfig;
use world::World;

/// A request may wait for the clock to be moved, or for a long advance.
const LONGEST_REQUEST: Duration = Duration::from_secs(3600);

/// How the cluster and its forks start: all have the same credentials and control loops.
#[derive(Debug)]
pub(super) struct ClusterRecipe {
    options: UpOptions,
    tokens: Vec<Token>,
    certificates: Certificates,
    advertised: Option<SocketAddr>,
    tls: Arc<ServerConfig>,
    /// PEM; where no file holds the key.
    signing_key: Option<String>,
    names: Vec<&'static str>,
}

impl ClusterRecipe {
    pub(super) fn new(
        options: UpOptions,
        tokens: Vec<Token>,
        certificates: Certificates,
        advertised: Option<SocketAddr>,
    ) -> Result<ClusterRecipe> {
        open_files::raise_limit();
        controllers::warn_of_absent(&options.controllers);
        let names = controllers::chosen(&options.controllers).collect();
        let signing_key = match account_key::open(&options)? {
            Some(_) => None,
            None => Some(SigningKey::make()?.1),
        };
        let tls = certificates.server_config()?;
        Ok(ClusterRecipe { options, tokens, certificates, advertised, tls, signing_key, names })
    }

    /// Starts the cluster, and returns it when it has settled, with the numbers of its control loops and nodes.
    pub(super) async fn start(
        self,
        world: &World,
        store: Arc<dyn Store>,
    ) -> Result<(Arc<Cluster>, (usize, usize))> {
        let loops = self.names.iter().filter(|name| controllers::has_loop(name)).count();
        let sizes = (loops, self.node_count());
        let cluster = Cluster::start(world, store, Arc::new(self)).await;
        let cluster =
            cluster.map_err(|problem| anyhow!("{problem}").context("cannot start on this store"))?;
        Ok((cluster, sizes))
    }

    fn node_count(&self) -> usize {
        usize::try_from(self.options.node_count()).unwrap_or(usize::MAX)
    }

    fn config(&self, world: &World, kubelet: &Kubelet) -> Result<Config> {
        let signing_key = match &self.signing_key {
            Some(pem) => Some(SigningKey::from_pem(pem)?),
            None => account_key::open(&self.options)?,
        };
        let options = &self.options;
        let kubelets = InProcessKubelets::new(world, kubelet);
        let kubelets = SimulatedNodes::new(world, kubelets, kubelet);
        let seats = options.max_requests_inflight.saturating_add(options.max_mutating_requests_inflight);
        Ok(Config {
            kubelets: (options.node_count() > 0).then(|| Arc::new(kubelets) as _),
            tokens: self.tokens.clone(),
            audit: audit::open(options.audit_policy_file.as_deref(), options.audit_log_path.as_deref())?,
            signing_key,
            issuer: Some(options.service_account_issuer.clone()),
            service_range: options.service_cluster_ip_range,
            advertised: self.advertised,
            seats: seats.max(1),
            authority: Some(self.certificates.ca.clone()),
            accepts_bootstrap_tokens: true,
            ..Config::default()
        })
    }

    async fn start_server(&self, world: &World, store: Arc<dyn Store>) -> Result<StartedServer> {
        let kubelet = Kubelet::default();
        let server = Server::start(world, store, self.config(world, &kubelet)?).await?;
        let pod_range = self.options.allocate_node_cidrs.then_some(self.options.cluster_cidr);
        let settings = Settings { pod_range, ..control_loops::settings(&server, &self.certificates)? };
        let nodes = node::Settings { count: self.node_count(), kubelet, ..node::Settings::default() };
        let (names, world) = (self.names.clone(), world.clone());
        let start_loops = Box::new(move |transport: &Arc<testing::Transport>| {
            let clients = Destination::Transport(Arc::clone(transport));
            let loops = ControlLoops { clients, names, nodes, settings, is_shared: false };
            let running = loops.start(&world);
            let is_idle: Box<dyn Fn() -> bool + Send + Sync> = Box::new(running.idle_probe());
            testing::ControlLoops { is_idle, running: Box::new(running) }
        });
        Ok(StartedServer { server, start_loops })
    }
}

impl Recipe for ClusterRecipe {
    fn start<'a>(
        &'a self,
        world: &'a World,
        store: Arc<dyn Store>,
    ) -> BoxFuture<'a, Result<StartedServer, String>> {
        Box::pin(async move { self.start_server(world, store).await.map_err(|error| format!("{error:#}")) })
    }

    fn kubeconfig(&self, url: &str) -> String {
        kubeconfig::text(url, &self.certificates)
    }

    fn tls(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.tls)
    }

    fn limits(&self) -> Limits {
        let connections = self.options.max_connections.max(1);
        Limits { connections, request: LONGEST_REQUEST, ..Limits::default() }
    }
}
