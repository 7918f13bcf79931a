//! `setpoint up --node`: containerd, the kubelet and kube-proxy of this machine, as children of this process.

mod program;
pub(super) mod proxy;

use super::private_file;
use crate::{
    client::{api::Api, failure::ClientResult},
    real_node::{
        bootstrap_token::BootstrapToken,
        facts,
        files::{self, MachineFacts},
        rights,
    },
};
use anyhow::{Context, Result, bail};
use futures::future::{Either, select};
use kube::config::{KubeConfigOptions, Kubeconfig};
use program::{Program, WatchedProgram};
pub(super) use proxy::KubeProxy;
use std::{
    fs, io,
    net::{Ipv4Addr, TcpListener},
    os::unix::{fs::DirBuilderExt, net::UnixStream},
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};
use world::World;

/// How often the programs are looked at.
const LOOK: Duration = Duration::from_millis(200);
/// Before the server is asked again.
const PAUSE: Duration = Duration::from_secs(5);
/// The kubelet asks for its certificate at once, or as soon as what keeps it from starting is mended.
const TOKEN_LASTS: Duration = Duration::from_secs(24 * 3600);
const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
const CONTAINERD_CONFIG: &str = "/etc/containerd/config.toml";
const POD_NETWORKS: &str = "/etc/cni/net.d";
const POD_NETWORK_FILE: &str = "/etc/cni/net.d/10-setpoint.conflist";
/// The addresses of pods where the machine has no network for them. Those of simulated nodes are others, from 10.244.0.0 on.
const POD_RANGE: &str = "10.100.0.0/24";
/// Where network plugins are: in the place of their own releases, or in Debian's.
const PLUGIN_FOLDERS: [&str; 2] = ["/opt/cni/bin", "/usr/lib/cni"];
/// Kubernetes: where kubelets listen.
const KUBELET_PORT: u16 = 10250;

/// The programs of a node, found on this machine.
#[derive(Debug)]
pub(super) struct RealNode {
    /// `None` if one runs already.
    containerd: Option<PathBuf>,
    kubelet: PathBuf,
    pub(super) proxy: KubeProxy,
    plugins: &'static str,
    /// For files and logs.
    folder: PathBuf,
}

impl RealNode {
    /// Looks for everything that a node needs, before anything is started.
    pub(super) fn find(data: &Path) -> Result<RealNode> {
        #[expect(unsafe_code, reason = "the standard library does not tell the user")]
        // SAFETY: it has no preconditions.
        let is_root = unsafe { libc::geteuid() } == 0;
        if !is_root {
            bail!("--node needs root, as every kubelet does: run it with sudo");
        }
        let runs = UnixStream::connect(CONTAINERD_SOCKET).is_ok();
        let (containerd, kubelet) = (on_path("containerd"), on_path("kubelet"));
        let plugins = PLUGIN_FOLDERS.into_iter().find(|folder| Path::new(folder).join("bridge").exists());
        let missing: Vec<&str> = [
            ("containerd", runs || containerd.is_some()),
            ("a kubelet of Kubernetes v1.36", kubelet.is_some()),
            ("the network plugins of CNI", plugins.is_some()),
            ("iptables", on_path("iptables").is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_there)| (!is_there).then_some(name))
        .collect();
        let (Some(kubelet), Some(plugins), []) = (kubelet, plugins, &missing[..]) else {
            bail!(
                "--node runs pods on this machine, and needs {}: install what is missing (on Debian: apt-get install \
                 containerd containernetworking-plugins iptables; a release of Kubernetes has the kubelet), or leave out --node",
                missing.join(", ")
            );
        };
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, KUBELET_PORT)).is_err() {
            bail!(
                "--node: a kubelet runs on this machine already, on port {KUBELET_PORT}: stop it, or leave out --node"
            );
        }
        let folder = data.join("node");
        for folder in [&folder, &folder.join("kubelet.conf.d")] {
            let mut private = fs::DirBuilder::new();
            let made = private.recursive(true).mode(0o700).create(folder);
            made.with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let folder =
            std::path::absolute(&folder).with_context(|| format!("cannot use {}", folder.display()))?;
        let (containerd, proxy) = (containerd.filter(|_| !runs), KubeProxy::find());
        Ok(RealNode { containerd, kubelet, proxy, plugins, folder })
    }

    /// Runs the programs until `stopped`. What they do is in their logs.
    pub(super) async fn run(
        self,
        world: World,
        url: String,
        kubeconfig: PathBuf,
        proxy_credentials: String,
        stopped: impl Future<Output = ()>,
    ) {
        let mut stopped = pin!(stopped);
        let mut token = None;
        while let Err(error) = self.prepare(&world, &url, &kubeconfig, &mut token).await {
            tracing::warn!(error = format!("{error:#}"), "this node cannot be prepared; it is tried again");
            if let Either::Right(_) = select(pin!(world.sleep(PAUSE)), stopped.as_mut()).await {
                return;
            }
        }
        let mut containerd = self.containerd().map(|program| WatchedProgram::new(&world, program));
        let mut kubelet = WatchedProgram::new(&world, self.kubelet());
        let mut proxy = self.proxy(&proxy_credentials).map(|program| WatchedProgram::new(&world, program));
        loop {
            if let Some(containerd) = &mut containerd {
                containerd.look(&world);
            }
            if kubelet.is_running() || UnixStream::connect(CONTAINERD_SOCKET).is_ok() {
                kubelet.look(&world);
            }
            if let Some(proxy) = &mut proxy {
                proxy.look(&world);
            }
            if let Either::Right(_) = select(pin!(world.sleep(LOOK)), stopped.as_mut()).await {
                break;
            }
        }
        // Services go on leading to pods, by the rules that kube-proxy leaves.
        if let Some(proxy) = proxy {
            proxy.stop(&world).await;
        }
        // Containers go on: their shims are no children of containerd.
        kubelet.stop(&world).await;
        if let Some(containerd) = containerd {
            containerd.stop(&world).await;
        }
    }

    /// Rights, a token unless there is one from before, and the files with them.
    async fn prepare(
        &self,
        world: &World,
        url: &str,
        kubeconfig: &Path,
        token: &mut Option<BootstrapToken>,
    ) -> Result<()> {
        let config = Kubeconfig::read_from(kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let api = Api::new(config)?;
        rights::grant(&api).await?;
        let token = match token {
            Some(token) => token,
            None => token.insert(BootstrapToken::create(world, &api, Some(TOKEN_LASTS)).await?),
        };
        let machine = machine(&api, url.to_owned(), token).await?;
        self.forget_another_cluster(&machine.authority)?;
        for (name, text) in machine.files() {
            if name == files::POD_NETWORK {
                self.write_pod_network(&text)?;
            } else {
                private_file::write(&self.folder.join(name), &text)?;
            }
        }
        if self.containerd.is_some() && !Path::new(CONTAINERD_CONFIG).exists() {
            private_file::write(&self.folder.join("containerd.toml"), &containerd_config(self.plugins))?;
        }
        Ok(())
    }

    /// A kubelet keeps its certificate: one of another CA is of no use.
    fn forget_another_cluster(&self, authority: &str) -> Result<()> {
        let kept = private_file::read(&self.folder.join(files::CA))?;
        if kept.is_none_or(|kept| kept == authority) {
            return Ok(());
        }
        let certificates = self.folder.join("pki");
        for result in
            [fs::remove_file(self.folder.join("kubelet.kubeconfig")), fs::remove_dir_all(&certificates)]
        {
            match result {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", certificates.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Unless the machine has a network for pods.
    fn write_pod_network(&self, text: &str) -> Result<()> {
        let others = fs::read_dir(POD_NETWORKS).into_iter().flatten().flatten();
        let mut others = others.filter(|file| {
            let path = file.path();
            path != Path::new(POD_NETWORK_FILE)
                && path.extension().is_some_and(|it| it == "conf" || it == "conflist" || it == "json")
        });
        if others.next().is_some() {
            return Ok(());
        }
        fs::create_dir_all(POD_NETWORKS).with_context(|| format!("cannot create {POD_NETWORKS}"))?;
        private_file::write(Path::new(POD_NETWORK_FILE), text)
    }

    fn containerd(&self) -> Option<Program> {
        let path = self.containerd.clone()?;
        let own = self.folder.join("containerd.toml");
        let config = if Path::new(CONTAINERD_CONFIG).exists() { Path::new(CONTAINERD_CONFIG) } else { &own };
        let arguments = vec![format!("--config={}", config.display())];
        Some(Program { path, arguments, log: self.folder.join("containerd.log") })
    }

    fn proxy(&self, credentials: &str) -> Option<Program> {
        if matches!(self.proxy, KubeProxy::Missing) {
            tracing::warn!(
                "addresses of services do not lead to pods: install kube-proxy of Kubernetes v1.36 beside the kubelet, and start again"
            );
        }
        match self.proxy.prepare(&self.folder, credentials) {
            Ok(program) => program,
            Err(error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "kube-proxy cannot be prepared, and is not started"
                );
                None
            }
        }
    }

    fn kubelet(&self) -> Program {
        let folder = self.folder.display();
        let arguments = vec![
            format!("--config={folder}/{}", files::KUBELET),
            format!("--config-dir={folder}/kubelet.conf.d"),
            format!("--bootstrap-kubeconfig={folder}/{}", files::BOOTSTRAP_KUBECONFIG),
            format!("--kubeconfig={folder}/kubelet.kubeconfig"),
            format!("--cert-dir={folder}/pki"),
        ];
        Program { path: self.kubelet.clone(), arguments, log: self.folder.join("kubelet.log") }
    }
}

/// What the kubelet of this machine has to know.
async fn machine(api: &Api, server: String, token: &BootstrapToken) -> ClientResult<MachineFacts> {
    Ok(MachineFacts {
        server,
        authority: facts::authority(api).await?,
        token: token.text(),
        dns: facts::dns(api).await?,
        domain: files::DOMAIN.to_owned(),
        pod_range: POD_RANGE.parse().ok(),
        is_on_cgroup_v1: !Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
    })
}

/// What containerd does by default, with the folder of the network plugins.
fn containerd_config(plugins: &str) -> String {
    format!(
        "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\n  bin_dir = \"{plugins}\"\n  conf_dir = \"{POD_NETWORKS}\"\n"
    )
}

/// A program in the folders of $PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|candidate| candidate.is_file())
}
