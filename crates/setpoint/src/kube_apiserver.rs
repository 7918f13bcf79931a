//! Called as `kube-apiserver`: takes the flags that test environments pass to the real one, and runs the API
//! server alone.

use crate::{etcd_stand_in, up, up::certificates};
use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use server::{Config, KubeletSockets, KubeletTls, Kubelets, Server, SigningKey, TokenFile, accept::Limits};
use std::{
    collections::BTreeMap,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    sync::Arc,
};
use store::{Etcd, EtcdOptions, Memory, Store};
use tokio::net::{TcpListener, TcpStream};
use world::World;

/// Flags of kube-apiserver that have an effect here.
const KNOWN: [&str; 18] = [
    "advertise-address",
    "bind-address",
    "cert-dir",
    "client-ca-file",
    "disable-admission-plugins",
    "enable-admission-plugins",
    "etcd-servers",
    "help",
    "kubelet-certificate-authority",
    "kubelet-client-certificate",
    "kubelet-client-key",
    "secure-port",
    "service-account-issuer",
    "service-account-signing-key-file",
    "service-cluster-ip-range",
    "tls-cert-file",
    "tls-private-key-file",
    "token-auth-file",
];

/// The admission plugin that envtest disables.
const SERVICE_ACCOUNT: &str = "ServiceAccount";
/// The most bytes of a health response of etcd.
const MAX_HEALTH: usize = 4096;

/// Flags by name, each with all of its values.
#[derive(Debug, Default)]
pub(crate) struct Flags(BTreeMap<String, Vec<String>>);

impl Flags {
    pub(crate) fn parse(arguments: impl Iterator<Item = String>) -> Flags {
        let mut flags = Flags::default();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            let name = argument.trim_start_matches('-');
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name, value.to_owned()),
                None => (name, arguments.next_if(|next| !next.starts_with('-')).unwrap_or_default()),
            };
            flags.0.entry(name.to_owned()).or_default().push(value);
        }
        flags
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let values = self.0.get(name).into_iter().flatten();
        values.flat_map(|value| value.split(',')).filter(|value| !value.is_empty())
    }

    /// The last value of a flag.
    fn last(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str).filter(|value| !value.is_empty())
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|other| other == value)
    }

    /// The contents of all files that a flag names.
    fn files(&self, name: &str) -> Result<String> {
        let mut texts = String::new();
        for path in self.all(name) {
            texts.push_str(&read(path, name)?);
            texts.push('\n');
        }
        Ok(texts)
    }
}

pub(crate) async fn run(world: &World, flags: Flags) -> Result<()> {
    if flags.0.contains_key("help") || flags.0.contains_key("h") {
        let known: Vec<_> = KNOWN.iter().map(|name| format!("  --{name}")).collect();
        up::print_line(&format!(
            "kube-apiserver of Setpoint. Flags that mean something here:\n{}",
            known.join("\n")
        ));
        return Ok(());
    }
    let stopped = up::stopped()?;
    for name in flags.0.keys().filter(|name| !KNOWN.contains(&name.as_str())) {
        tracing::info!("--{name} changes nothing here");
    }
    for plugin in flags.all("disable-admission-plugins").filter(|plugin| *plugin != SERVICE_ACCOUNT) {
        tracing::warn!(
            plugin,
            "--disable-admission-plugins: this admission plugin cannot be turned off here"
        );
    }
    let ip: IpAddr = flags.last("bind-address").unwrap_or("127.0.0.1").parse().context("--bind-address")?;
    let port: u16 = flags.last("secure-port").unwrap_or("6443").parse().context("--secure-port")?;
    let listener = TcpListener::bind((ip, port)).await;
    let listener = listener.with_context(|| format!("cannot listen on {ip}:{port}; see --secure-port"))?;
    let address = listener.local_addr()?;
    let client_cas = flags.files("client-ca-file")?;
    let tls = tls(world, &flags, address, &client_cas)?;
    let config = config(&flags, address, client_cas)?;
    let store = open_store(world, &flags).await?;
    let server = Server::start(world, store, config).await.context("cannot start on this store")?;
    server::accept::serve(world, server.clone(), listener, tls, Limits::default(), stopped).await;
    server.flush().await;
    Ok(())
}

fn config(flags: &Flags, address: SocketAddr, client_cas: String) -> Result<Config> {
    let tokens = match flags.last("token-auth-file") {
        Some(path) => {
            TokenFile::read(Path::new(path)).with_context(|| format!("--token-auth-file {path}"))?
        }
        None => Vec::new(),
    };
    let signing_key = match flags.last("service-account-signing-key-file") {
        Some(path) => {
            let text = read(path, "service-account-signing-key-file")?;
            Some(
                SigningKey::from_pem(&text)
                    .with_context(|| format!("--service-account-signing-key-file {path}"))?,
            )
        }
        None => None,
    };
    let range = flags.last("service-cluster-ip-range").unwrap_or("10.0.0.0/24");
    let advertised = match flags.last("advertise-address") {
        Some(ip) => ip.parse().context("--advertise-address")?,
        None if address.ip().is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        None => address.ip(),
    };
    Ok(Config {
        tokens,
        kubelets: kubelets(flags)?,
        signing_key,
        issuer: flags.last("service-account-issuer").map(str::to_owned),
        service_range: range.parse().with_context(|| format!("--service-cluster-ip-range {range}"))?,
        advertised: Some(SocketAddr::new(advertised, address.port())),
        authority: Some(client_cas).filter(|text| !text.is_empty()),
        admits_service_accounts: !flags.has("disable-admission-plugins", SERVICE_ACCOUNT),
        enforces_owner_permissions: flags
            .has("enable-admission-plugins", "OwnerReferencesPermissionEnforcement"),
        // As with kube-apiserver, that is left to the controller manager.
        fills_namespaces: false,
        ..Config::default()
    })
}

/// How kubelets are reached. Without a CA to verify them, none is asked.
fn kubelets(flags: &Flags) -> Result<Option<Arc<dyn Kubelets>>> {
    let [authority, certificate, key] =
        ["kubelet-certificate-authority", "kubelet-client-certificate", "kubelet-client-key"]
            .map(|name| flags.files(name));
    let (authority, certificate, key) = (authority?, certificate?, key?);
    if certificate.is_empty() {
        return Ok(None);
    }
    if authority.is_empty() {
        tracing::warn!("no node is asked without --kubelet-certificate-authority");
        return Ok(None);
    }
    let tls = KubeletTls { certificate: &certificate, key: &key, authority: &authority };
    Ok(Some(Arc::new(KubeletSockets::new(tls).context("--kubelet-client-certificate")?)))
}

/// The certificate of the flags, or of the certificate folder, or a new one.
fn tls(
    world: &World,
    flags: &Flags,
    address: SocketAddr,
    client_cas: &str,
) -> Result<Arc<tokio_rustls::rustls::ServerConfig>> {
    let folder = flags.last("cert-dir").unwrap_or("/var/run/kubernetes");
    let default = |name: &str| format!("{folder}/{name}");
    let chain = flags.last("tls-cert-file").map_or_else(|| default("apiserver.crt"), str::to_owned);
    let key = flags.last("tls-private-key-file").map_or_else(|| default("apiserver.key"), str::to_owned);
    let is_named = flags.last("tls-cert-file").is_some();
    if is_named || Path::new(&chain).exists() {
        let (chain, key) = (read(&chain, "tls-cert-file")?, read(&key, "tls-private-key-file")?);
        return certificates::server_config(&chain, &key, client_cas);
    }
    let made = certificates::Certificates::make(world.wall(), &[address.ip()])?;
    certificates::server_config(&made.server, &made.server_key, client_cas)
}

/// The etcd cluster; memory where our stand-in runs instead.
async fn open_store(world: &World, flags: &Flags) -> Result<Arc<dyn Store>> {
    let servers: Vec<String> = flags.all("etcd-servers").map(str::to_owned).collect();
    let Some(first) = servers.first() else { return Ok(Arc::new(Memory::new())) };
    if health(first).await.is_ok_and(|said| said.contains(etcd_stand_in::MARK)) {
        return Ok(Arc::new(Memory::new()));
    }
    let store = Etcd::connect(world, EtcdOptions::new(servers)).await;
    Ok(Arc::new(store.context("cannot use the etcd cluster; check --etcd-servers")?))
}

/// The response of etcd's health endpoint.
async fn health(url: &str) -> Result<String> {
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    let socket = TokioIo::new(TcpStream::connect(authority).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(socket).await?;
    let request = http::Request::get("/health").header(http::header::HOST, authority);
    let answer = sender.send_request(request.body(Empty::<bytes::Bytes>::new())?);
    let ((), body) = futures::join!(async { drop(connection.await) }, async move {
        let answer = answer.await?;
        let body = Limited::new(answer.into_body(), MAX_HEALTH).collect().await;
        drop(sender);
        body.map(|body| body.to_bytes()).map_err(|error| anyhow::anyhow!(error))
    });
    Ok(String::from_utf8_lossy(&body?).into_owned())
}

fn read(path: &str, flag: &str) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("--{flag} {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_as_by_kube_apiserver() {
        let arguments =
            ["--secure-port=1", "--client-ca-file", "a", "--client-ca-file=b,c", "--v", "--secure-port=2"];
        let flags = Flags::parse(arguments.into_iter().map(str::to_owned));
        assert_eq!(flags.last("secure-port"), Some("2"));
        assert_eq!(flags.all("client-ca-file").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(flags.last("v"), None);
        assert!(flags.0.contains_key("v"));
    }
}
