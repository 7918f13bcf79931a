//! `setpoint node join`: prints a script that makes a machine a node, or writes its files.

use crate::{
    client::{
        age::{self, GoDuration},
        api::Api,
        connect::{ClusterConnection, ConnectOptions},
        failure::{ClientError, ClientResult},
        print,
    },
    real_node::{
        bootstrap_token::{self, BootstrapToken},
        facts,
        files::{self, MachineFacts, PodNetworkRange},
        rights,
    },
    up::private_file,
};
use std::{
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
};
use world::World;

/// Where the script puts the files.
const FOLDER: &str = "/etc/setpoint";
/// Where the kubelet keeps its certificates.
const KUBELET_CERTIFICATES: &str = "/var/lib/kubelet/pki";
/// Where a machine's own network plugins are looked for.
const POD_NETWORK_FOLDER: &str = "/etc/cni/net.d";
/// Ends a file within the script. No file has such a line: their texts are of this program, and certificates in base64.
const END: &str = "END-OF-FILE";

/// Print what makes a machine a node: a shell script with a token, certificates and configuration in it.
///
/// It creates a bootstrap token, and the roles and bindings that nodes need. The script writes files and runs the kubelet,
/// which has to be installed on the machine beside containerd.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint node join                                  prints the script: as root, pipe it into sh
  setpoint node join --pod-range 10.100.1.0/24        with a network for the pods of this machine
  setpoint node join --dir worker-1 --ttl 1h          writes the files, and prints the commands
  setpoint node join --server https://192.0.2.1:6443  where the machine reaches the server")]
pub(crate) struct JoinOptions {
    /// Write the files into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// How long the token may be used; 0 is for ever
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = age::parse)]
    ttl: GoDuration,
    /// The address of the cluster's DNS; by default that of the service kube-dns, or the tenth of all services
    #[arg(long, value_name = "ADDRESS")]
    cluster_dns: Option<IpAddr>,
    /// The domain of the cluster's names
    #[arg(long, value_name = "DOMAIN", default_value = files::DOMAIN)]
    cluster_domain: String,
    /// Addresses for the pods of this machine, on a bridge; without it, the machine needs a network plugin
    #[arg(long, value_name = "RANGE")]
    pod_range: Option<PodNetworkRange>,
    /// The machine has version 1 of cgroups only, which a kubelet refuses otherwise
    #[arg(long)]
    cgroup_v1: bool,
    #[command(flatten)]
    connect: ConnectOptions,
}

pub(crate) async fn run(world: &World, options: &JoinOptions) -> ClientResult<()> {
    let lasts = options.ttl.positive().ok_or_else(|| ClientError::error("--ttl must not be negative"))?;
    let cluster = options.connect.connect().await?;
    // First all that may fail: a token that no machine gets should not be made.
    let server = server(options, &cluster).await?;
    let authority = facts::authority(&cluster.api).await?;
    let dns = match options.cluster_dns {
        Some(address) => Some(address),
        None => facts::dns(&cluster.api).await?,
    };
    if let Some(folder) = &options.dir {
        fs::create_dir_all(folder).map_err(|error| {
            ClientError::error(format!("cannot create {}: {error}; choose another --dir", folder.display()))
        })?;
    }
    rights::grant(&cluster.api).await?;
    let token = BootstrapToken::create(world, &cluster.api, Some(lasts).filter(|it| !it.is_zero())).await?;
    let machine = MachineFacts {
        server,
        authority,
        token: token.text(),
        dns,
        domain: options.cluster_domain.clone(),
        pod_range: options.pod_range.clone(),
        is_on_cgroup_v1: options.cgroup_v1,
    };
    match &options.dir {
        None => print(&script(&machine, &token)),
        Some(folder) => {
            for (name, text) in machine.files() {
                let path = folder.join(name);
                private_file::write(&path, &text)
                    .map_err(|error| ClientError::error(format!("{error:#}; choose another --dir")))?;
            }
            print(&advice(folder, &machine, &token))
        }
    }
}

/// The URL at which machines reach the server: that of the kubeconfig, or, if that is of this machine only, the one that
/// the server advertises.
async fn server(options: &JoinOptions, cluster: &ClusterConnection) -> ClientResult<String> {
    if !is_of_this_machine(&cluster.url) || options.connect.names_server() {
        return Ok(cluster.url.trim_end_matches('/').to_owned());
    }
    let unknown = || {
        let url = &cluster.url;
        ClientError::error(format!("only this machine reaches {url}: name the server's URL with --server"))
    };
    let advertised = facts::advertised(&cluster.api).await?.ok_or_else(unknown)?;
    let there: Api = options.connect.connect_to(&advertised).await?.api;
    there.get("/version").await.map_err(|error| {
        ClientError::error(format!(
            "no machine can join: the server does not answer at {advertised} ({error}); start it with `--listen 0.0.0.0:PORT`, \
             or name its URL with --server"
        ))
    })?;
    Ok(advertised)
}

fn is_of_this_machine(url: &str) -> bool {
    let host =
        url.parse::<http::Uri>().ok().and_then(|url| url.host().map(str::to_owned)).unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The command that runs the kubelet with the files of a folder.
fn kubelet(folder: &str) -> String {
    format!(
        "kubelet --config={folder}/{config} --bootstrap-kubeconfig={folder}/{bootstrap} \
         --kubeconfig={folder}/kubelet.kubeconfig --cert-dir={KUBELET_CERTIFICATES}",
        config = files::KUBELET,
        bootstrap = files::BOOTSTRAP_KUBECONFIG,
    )
}

fn until(token: &BootstrapToken) -> String {
    token.end.map(|end| format!(" until {}", bootstrap_token::time(end))).unwrap_or_default()
}

/// A shell script that writes the files and becomes the kubelet.
fn script(machine: &MachineFacts, token: &BootstrapToken) -> String {
    let mut script = format!(
        "#!/bin/sh
# Makes this machine a node of the cluster at {server}. Run it as root{until}.
# Keep it secret: it has a token in it. It needs containerd, and a kubelet of Kubernetes v1.36.
set -eu
umask 077
mkdir -p {FOLDER}
before=$(cat {FOLDER}/{authority} 2>/dev/null || true)
",
        authority = files::CA,
        server = machine.server,
        until = until(token)
    );
    for (name, text) in machine.files() {
        let folder = if name == files::POD_NETWORK { POD_NETWORK_FOLDER } else { FOLDER };
        if folder != FOLDER {
            script += &format!("mkdir -p {folder}\n");
        }
        let text = text.trim_end();
        script += &format!("cat > {folder}/{name} <<'{END}'\n{text}\n{END}\n");
    }
    // A kubelet goes on with the certificate of another cluster; what it makes for pods is for all users.
    script
        + &format!(
            "[ \"$before\" = \"$(cat {FOLDER}/{authority})\" ] || rm -rf {FOLDER}/kubelet.kubeconfig {KUBELET_CERTIFICATES}\n\
             umask 022\nexec {kubelet}\n",
            authority = files::CA,
            kubelet = kubelet(FOLDER),
        )
}

/// What to do with the files.
fn advice(folder: &Path, machine: &MachineFacts, token: &BootstrapToken) -> String {
    // For a shell, whatever the name of the folder.
    let quoted = format!("'{}'", folder.display().to_string().replace('\'', "'\\''"));
    let names: Vec<String> = machine.files().iter().map(|(name, _)| format!("{quoted}/{name}")).collect();
    let mut commands = vec![format!("mkdir -p {FOLDER} && cp {} {FOLDER}/", names.join(" "))];
    if machine.pod_range.is_some() {
        let name = files::POD_NETWORK;
        commands.push(format!("mkdir -p {POD_NETWORK_FOLDER} && cp {FOLDER}/{name} {POD_NETWORK_FOLDER}/"));
    }
    commands.push(kubelet(FOLDER));
    let mut advice = String::new();
    for (name, _) in machine.files() {
        advice += &format!("wrote {}\n", folder.join(name).display());
    }
    advice += &format!(
        "\nOn a machine with containerd and a kubelet of Kubernetes v1.36, as root{}:\n",
        until(token)
    );
    commands.iter().for_each(|command| advice += &format!("  {command}\n"));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_loopback_are_of_this_machine_only() {
        for (url, expected) in [
            ("https://127.0.0.1:6443/", true),
            ("https://127.1.2.3:6443", true),
            ("https://[::1]:6443", true),
            ("https://localhost", true),
            ("https://192.0.2.1:6443", false),
            ("https://setpoint.example.com", false),
        ] {
            assert_eq!(is_of_this_machine(url), expected, "{url}");
        }
    }
}
