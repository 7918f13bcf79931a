//! `setpoint up`: opens the store, starts the server on it, and prints how to reach it.

mod account_key;
pub(crate) mod address;
pub(crate) mod audit;
pub(crate) mod certificates;
pub(crate) mod compaction;
pub(crate) mod control_loops;
pub(crate) mod controllers;
mod dns;
pub(crate) mod in_process;
mod kubeconfig;
pub(crate) mod node_listener;
pub(crate) mod pod_network;
pub(crate) mod private_file;
mod quota;
mod real_node;
mod store;
mod testing;

use ::controllers::{PodRange, Settings};
use anyhow::{Context, Result};
use certificates::Certificates;
use control_loops::ControlLoops;
use futures::FutureExt;
use in_process::Destination;
use node_listener::Nodes;
use real_node::{KubeProxy, RealNode};
use server::{AddressChoice, Config, Server, Token, TokenFile, accept::Limits};
use std::{
    future::poll_fn,
    io::Write,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    task::Poll,
    time::Duration,
};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};
use world::World;

// Kubernetes: where API servers usually listen.
const PORT: u16 = 6443;

/// Run the control plane.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint up                                   data and kubeconfig in .setpoint
  setpoint up --ephemeral --listen 127.0.0.1:0  for a test: keeps nothing, takes a free port
  setpoint up --nodes 3 --data-dir /var/lib/setpoint
  setpoint up --node --dns                      runs containers on this machine, with its containerd and kubelet
  setpoint up --store etcd --etcd-servers http://127.0.0.1:2379")]
pub(crate) struct UpOptions {
    /// Address to listen on; port 0 takes a free one. By default 127.0.0.1:6443, and 0.0.0.0:6443 with --node,
    /// where containers use the API
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Directory for data and certificates
    #[arg(long, default_value = ".setpoint", value_name = "DIR")]
    data_dir: PathBuf,
    /// Where objects are stored
    #[arg(long, value_enum, default_value = "embedded")]
    store: StoreKind,
    /// How much the store may hold, like 4Gi; writes beyond it fail. By default a quarter of the memory, and
    /// 8Gi at the most. An etcd cluster has its own quota.
    #[arg(long, value_parser = quota::parse, value_name = "SIZE")]
    store_quota: Option<u64>,
    /// Keep nothing: as --store memory, with new certificates
    #[arg(long)]
    ephemeral: bool,
    /// Serve the API testing.setpoint.dev for tests: forks, snapshots, faults, traces, and a clock that can be moved
    #[arg(long)]
    testing: bool,
    /// Where to write the kubeconfig; by default next to the data
    #[arg(long, value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
    /// Static bearer tokens, in Kubernetes' CSV: token,user,uid,"group1,group2".
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,
    /// The private key that signs service account tokens (PEM); by default one next to the certificates
    #[arg(long, value_name = "FILE")]
    service_account_signing_key_file: Option<PathBuf>,
    /// The issuer of service account tokens
    #[arg(long, default_value = "https://kubernetes.default.svc", value_name = "URL")]
    service_account_issuer: String,
    /// Which requests the audit log records (an audit.k8s.io/v1 Policy)
    #[arg(long, value_name = "FILE", requires = "audit_log_path")]
    audit_policy_file: Option<PathBuf>,
    /// File of the audit log, one line of JSON for each event; - is standard output
    #[arg(long, value_name = "FILE", requires = "audit_policy_file")]
    audit_log_path: Option<PathBuf>,
    /// Range of the cluster IPs of services
    #[arg(long, default_value = "10.96.0.0/16", value_name = "RANGE")]
    service_cluster_ip_range: server::ServiceRange,
    /// The address at which the cluster reaches this server; by default that of this machine
    #[arg(long, value_name = "ADDRESS")]
    advertise_address: Option<IpAddr>,
    /// Requests served at once: with the mutating ones below, the seats that priority levels share
    #[arg(long, default_value_t = 400, value_name = "COUNT")]
    max_requests_inflight: u32,
    /// Mutating requests served at once, on top of the others
    #[arg(long, default_value_t = 200, value_name = "COUNT")]
    max_mutating_requests_inflight: u32,
    /// Connections at once; at the limit, idle ones are closed
    #[arg(long, default_value_t = Limits::default().connections, value_name = "COUNT")]
    max_connections: usize,
    /// Nodes to simulate: pods run on them without containers. By default one, and none with --node
    #[arg(long, value_name = "COUNT")]
    nodes: Option<u32>,
    /// Run containers on this machine: starts its containerd, its kubelet and, if it is installed, its kube-proxy,
    /// and ends them with this process
    #[arg(long, conflicts_with = "testing")]
    node: bool,
    /// Give names to services and pods: applies CoreDNS, without changing what others have changed in its objects
    #[arg(long, conflicts_with = "testing")]
    dns: bool,
    /// Controllers to run, by the names of kube-controller-manager, and kube-scheduler: `*` for all, `name` for one
    /// more, `-name` for one less, nothing for none
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "*",
        allow_hyphen_values = true,
        value_name = "NAME,…"
    )]
    controllers: Vec<controllers::Choice>,
    /// Give each node a range of pod addresses, out of --cluster-cidr
    #[arg(long)]
    allocate_node_cidrs: bool,
    /// Range of the addresses of pods, for --allocate-node-cidrs
    #[arg(long, default_value = "10.244.0.0/16", value_name = "RANGE")]
    cluster_cidr: PodRange,
    /// Seconds after which old versions of objects are dropped: lists from before then cannot be continued
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..), value_name = "SECONDS")]
    compaction_interval: u64,
    /// Endpoints of the etcd cluster, for --store etcd.
    #[arg(long, value_delimiter = ',', value_name = "URL,…")]
    etcd_servers: Vec<String>,
    /// The CA of the etcd cluster's certificates (PEM)
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// The client certificate for the etcd cluster (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    etcd_certfile: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    etcd_keyfile: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StoreKind {
    Embedded,
    Memory,
    Etcd,
}

impl UpOptions {
    /// How many nodes are simulated.
    fn node_count(&self) -> u32 {
        self.nodes.unwrap_or(if self.node { 0 } else { 1 })
    }

    fn listen(&self) -> SocketAddr {
        let ip = if self.node { Ipv4Addr::UNSPECIFIED } else { Ipv4Addr::LOCALHOST };
        self.listen.unwrap_or_else(|| SocketAddr::new(ip.into(), PORT))
    }

    fn store_kind(&self) -> StoreKind {
        if self.ephemeral { StoreKind::Memory } else { self.store }
    }
}

pub(crate) async fn run(world: &World, options: UpOptions) -> Result<()> {
    // First, so that no signal is missed from here on.
    let stopped = stopped()?;
    let tokens = read_tokens(&options)?;
    let real_node = options.node.then(|| RealNode::find(&options.data_dir)).transpose()?;
    let listener = TcpListener::bind(options.listen()).await.with_context(|| {
        format!(
            "cannot listen on {}; choose another address with --listen, or a free port with port 0",
            options.listen()
        )
    })?;
    let address = listener.local_addr()?;
    let (store, place) = store::open(world, &options).await?;
    let advertised = address::advertised(options.advertise_address, address);
    let certificates = open_certificates(world, &options, [Some(address), advertised])?;
    let url = format!("https://{}", address::local(address));
    let kubeconfig = kubeconfig_path(&options)?;
    kubeconfig::write(&kubeconfig, &url, &certificates)?;
    if options.testing {
        let recipe = testing::ClusterRecipe::new(options, tokens, certificates, advertised)?;
        let (cluster, sizes) = recipe.start(world, store).await?;
        welcome(&url, &place, sizes.0, (sizes.1, None), &kubeconfig);
        return cluster.serve(listener, stopped).map(Ok).await;
    }
    let tls = certificates.server_config()?;
    let interval = Duration::from_secs(options.compaction_interval);
    // Other servers may use the same etcd, which has a compaction of its own.
    let is_shared = options.store_kind() == StoreKind::Etcd;
    let _compaction = (!is_shared)
        .then(|| compaction::compact_from_time_to_time(world.clone(), Arc::clone(&store), interval))
        .map(|task| world.spawn("compaction", task));
    let mut nodes = Nodes::open(world, &certificates, options.node_count()).await?;
    let config = config(&options, tokens, &certificates, &nodes, advertised)?;
    let server = Server::start(world, store, config).await.context("cannot start on this store")?;
    let names: Vec<_> = controllers::chosen(&options.controllers).collect();
    controllers::warn_of_absent(&options.controllers);
    let running = names.iter().filter(|name| controllers::has_loop(name)).count();
    let _listener = nodes.serve(world);
    let node_count = nodes.settings.count;
    let (stop, is_stopped) = oneshot::channel::<()>();
    let pod_range = options.allocate_node_cidrs.then_some(options.cluster_cidr);
    let settings = Settings { pod_range, ..control_loops::settings(&server, &certificates)? };
    let control_loops = ControlLoops {
        clients: Destination::Server(server.clone()),
        names,
        nodes: nodes.settings,
        settings,
        is_shared,
    };
    let control_loops = world.spawn("control loops", control_loops.run(world.clone(), is_stopped.map(drop)));
    let (stop_node, node_stopped) = oneshot::channel::<()>();
    let nodes = (node_count, real_node.as_ref().map(|node| &node.proxy));
    welcome(&url, &place, running, nodes, &kubeconfig);
    let credentials = real_node::proxy::credentials(world.wall(), &url, &certificates)?;
    let real_node = real_node.map(|node| {
        let work = node.run(world.clone(), url, kubeconfig, credentials, node_stopped.map(drop));
        world.spawn("the node of this machine", work)
    });
    let _dns = options.dns.then(|| dns::start(world, &server));
    let limits = Limits { connections: options.max_connections.max(1), ..Limits::default() };
    server::accept::serve(world, server.clone(), listener, tls, limits, stopped).await;
    drop((stop, stop_node));
    if let Some(node) = real_node {
        node.await.context("the node of this machine")?;
    }
    control_loops.await.context("control loops")?;
    server.flush().await;
    Ok(())
}

fn config(
    options: &UpOptions,
    tokens: Vec<Token>,
    certificates: &Certificates,
    nodes: &Nodes,
    advertised: Option<SocketAddr>,
) -> Result<Config> {
    let seats = options.max_requests_inflight.saturating_add(options.max_mutating_requests_inflight);
    Ok(Config {
        kubelets: nodes.kubelets.clone(),
        kubelet_addresses: AddressChoice::AddressesFirst,
        tokens,
        accepts_bootstrap_tokens: true,
        audit: audit::open(options.audit_policy_file.as_deref(), options.audit_log_path.as_deref())?,
        signing_key: account_key::open(options)?,
        issuer: Some(options.service_account_issuer.clone()),
        service_range: options.service_cluster_ip_range,
        advertised,
        seats: seats.max(1),
        authority: Some(certificates.ca.clone()),
        ..Config::default()
    })
}

fn read_tokens(options: &UpOptions) -> Result<Vec<Token>> {
    let Some(path) = &options.token_auth_file else { return Ok(Vec::new()) };
    TokenFile::read(path).with_context(|| {
        format!(
            "--token-auth-file {}: write a line `token,user,uid,\"group1,group2\"` for each user",
            path.display()
        )
    })
}

/// The certificates for these addresses and that of the service `kubernetes`.
fn open_certificates(
    world: &World,
    options: &UpOptions,
    addresses: [Option<SocketAddr>; 2],
) -> Result<Certificates> {
    let named = addresses.into_iter().flatten().map(|address| address.ip());
    let service = IpAddr::V4(options.service_cluster_ip_range.first());
    let named: Vec<IpAddr> = named.chain([service]).collect();
    match options.ephemeral {
        true => Certificates::make(world.wall(), &named),
        false => Certificates::load_or_make(world.wall(), &options.data_dir.join("pki"), &named),
    }
}

fn kubeconfig_path(options: &UpOptions) -> Result<PathBuf> {
    // That of a cluster which keeps its data here stays: it may be running.
    let has_another = options.ephemeral && options.data_dir.join("pki").exists();
    let name = if has_another { "ephemeral.kubeconfig" } else { "kubeconfig" };
    let path = options.write_kubeconfig.clone().unwrap_or_else(|| options.data_dir.join(name));
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    std::path::absolute(&path).with_context(|| format!("cannot use {}", path.display()))
}

/// `nodes`: how many are simulated, and the kube-proxy of this machine if it is one, too.
fn welcome(
    url: &str,
    place: &str,
    controllers: usize,
    nodes: (usize, Option<&KubeProxy>),
    kubeconfig: &Path,
) {
    let kubeconfig = kubeconfig.display();
    let nodes = match nodes {
        (count, None) => format!("{count} simulated"),
        (count, Some(proxy)) => {
            let simulated = if count == 0 { String::new() } else { format!(", and {count} simulated") };
            let lacks = matches!(proxy, KubeProxy::Missing);
            let note = if lacks { "; services lead nowhere, for lack of kube-proxy" } else { "" };
            format!("this machine{simulated}{note}")
        }
    };
    print_line(&format!(
        "\
Setpoint is up.
  API server   {url} (Kubernetes v1.36)
  data         {place}
  controllers  {controllers}
  nodes        {nodes}
  kubeconfig   {kubeconfig}

  try          kubectl --kubeconfig {kubeconfig} create deployment web --image=nginx
               kubectl --kubeconfig {kubeconfig} get pods
  stop         Ctrl-C

ready {url} kubeconfig={kubeconfig}"
    ));
}

/// Resolves on SIGTERM or SIGINT.
pub(crate) fn stopped() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(poll_fn(move |context| {
        let asked = terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready();
        if asked { Poll::Ready(()) } else { Poll::Pending }
    }))
}

pub(crate) fn print_line(line: &str) {
    let mut out = std::io::stdout();
    // A closed output is no failure: its reader has seen enough.
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
}
