//! Called as `kube-apiserver`: takes the flags of the real one, and runs the API server alone, or with control
//! loops, scheduler and a simulated node if `SETPOINT_CONTROLLERS` asks for them.

mod access;
mod apis;
mod flags;
mod loops;
mod reloaded;
mod serving;
mod storage;

use crate::{
    logs::LogOptions,
    up::{self, address, audit, certificates::Certificates},
};
use anyhow::{Context, Result};
use flags::Flags;
use loops::Loops;
use server::{Config, Server, accept::Limits};
use serving::Identity;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;
use world::World;

/// Kubernetes: the default of --service-cluster-ip-range.
const SERVICE_RANGE: &str = "10.0.0.0/24";

/// The command line, or why it cannot be used.
#[derive(Debug)]
pub(crate) struct CommandLine(Result<Flags>);

impl CommandLine {
    pub(crate) fn read(arguments: impl IntoIterator<Item = String>) -> CommandLine {
        CommandLine(Flags::parse(arguments))
    }

    /// How much to log: --v=2 as -v, --v=4 as -vv.
    pub(crate) fn logs(&self) -> LogOptions {
        let Ok(flags) = &self.0 else { return LogOptions::default() };
        let verbosity = match flags.parsed("v", 0_i32).unwrap_or_default() {
            ..2 => 0,
            2..4 => 1,
            4.. => 2,
        };
        LogOptions::new(verbosity, flags.last("logging-format") == Some("json"))
    }
}

pub(crate) async fn run(world: &World, line: CommandLine) -> Result<()> {
    let flags = line.0?;
    if flags.switch("help", false)? {
        up::print_line(&flags::help());
        return Ok(());
    }
    if flags.switch("version", false)? {
        up::print_line(&format!("Kubernetes {}", server::version()));
        return Ok(());
    }
    let stopped = up::stopped()?;
    flags.warn_of_ignored();
    let loops = Loops::chosen(&flags)?;
    let ip: IpAddr = flags.parsed("bind-address", IpAddr::V4(Ipv4Addr::LOCALHOST))?;
    let port: u16 = flags.parsed("secure-port", 6443)?;
    let listener = TcpListener::bind((ip, port)).await;
    let listener = listener.with_context(|| format!("cannot listen on {ip}:{port}; see --secure-port"))?;
    let address = listener.local_addr()?;
    let identity = serving::identity(&flags)?;
    let is_needed = matches!(identity, Identity::New) || loops.is_any();
    let names = [address.ip(), advertised(&flags, address)?.ip()];
    let made = is_needed.then(|| Certificates::make(world.wall(), &names)).transpose()?;
    if let (Identity::New, Some(made)) = (&identity, &made) {
        serving::keep(&flags, made)?;
    }
    let tls = serving::tls(&flags, &identity, made.as_ref())?;
    let mut config = config(&flags, address)?;
    let store = storage::open(world, &flags).await?;
    let mut loops = loops.prepare(world, made.as_ref(), &mut config).await?;
    let server = Server::start(world, store.store.clone(), config).await;
    let server = server.context("cannot start on this store")?;
    let running = loops.start(world, &server, &identity, made.as_ref(), store.is_shared)?;
    let request = flags.duration("request-timeout", Limits::default().request)?;
    let limits = Limits { request, ..Limits::default() };
    tracing::info!(%address, "serving securely");
    server::accept::serve(world, server.clone(), listener, tls, limits, stopped).await;
    running.stop().await?;
    server.flush().await;
    Ok(())
}

/// Where the cluster reaches the server; on a machine without a network, where it listens.
fn advertised(flags: &Flags, address: SocketAddr) -> Result<SocketAddr> {
    let given = flags.is_given("advertise-address");
    let given = given.then(|| flags.parsed("advertise-address", address.ip())).transpose()?;
    Ok(address::advertised(given, address).unwrap_or_else(|| address::local(address)))
}

fn config(flags: &Flags, address: SocketAddr) -> Result<Config> {
    let range = flags.last("service-cluster-ip-range").unwrap_or(SERVICE_RANGE);
    let mut issuers = access::issuers(flags)?.into_iter();
    let authorization = access::authorization(flags)?;
    let seats = flags.parsed::<u32>("max-requests-inflight", 400)?;
    let seats = seats.saturating_add(flags.parsed("max-mutating-requests-inflight", 200)?).max(1);
    Ok(Config {
        tokens: access::tokens(flags)?,
        kubelets: access::kubelets(flags)?,
        kubelet_addresses: access::kubelet_addresses(flags),
        signing_key: access::signing_key(flags)?,
        verifying_keys: access::verifying_keys(flags)?,
        issuer: issuers.next(),
        more_issuers: issuers.collect(),
        audiences: flags.all("api-audiences").map(str::to_owned).collect(),
        allows_anonymous: access::allows_anonymous(flags, &authorization)?,
        accepts_bootstrap_tokens: flags.switch("enable-bootstrap-token-auth", false)?,
        authorization,
        hidden_versions: apis::hidden(flags)?,
        admission_plugins: access::admission_plugins(flags)?,
        // Kubernetes: off unless the flag is given.
        allows_privileged: flags.switch("allow-privileged", false)?,
        service_range: range.parse().with_context(|| format!("--service-cluster-ip-range {range}"))?,
        advertised: Some(advertised(flags, address)?),
        authority: Some(flags.files("client-ca-file")?).filter(|text| !text.is_empty()),
        audit: audit::open(flags.last("audit-policy-file"), flags.last("audit-log-path"))?,
        seats,
        // As with kube-apiserver, that is left to the controller manager.
        fills_namespaces: false,
        ..Config::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advertised_address_is_the_given_one_or_that_of_a_real_listener() {
        let found = |flags: &[&str], listening: &str| {
            let flags = Flags::parse(flags.iter().map(|flag| (*flag).to_owned())).unwrap();
            config(&flags, listening.parse().unwrap()).unwrap().advertised.unwrap().to_string()
        };
        assert_eq!(found(&["--advertise-address=127.0.0.1"], "0.0.0.0:6443"), "127.0.0.1:6443");
        assert_eq!(found(&["--advertise-address=0.0.0.0"], "192.0.2.7:6443"), "192.0.2.7:6443");
        assert_eq!(found(&[], "192.0.2.7:7443"), "192.0.2.7:7443");
    }
}
