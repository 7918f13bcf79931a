//! kube-proxy beside the kubelet: with it, the addresses of services lead to pods.

use super::{POD_NETWORK_FILE, on_path, program::Program};
use crate::{
    client::yaml,
    real_node::files::BRIDGE,
    up::{certificates::Certificates, kubeconfig, private_file},
};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::{
    fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
};
use world::Timestamp;

const NAME: &str = "kube-proxy";
/// Kubernetes: the user that may do what kube-proxy does.
const USER: &str = "system:kube-proxy";
/// Kubernetes: where kube-proxy says that it is well.
const HEALTH_PORT: u16 = 10256;
const CONFIG: &str = "kube-proxy.yaml";
const KUBECONFIG: &str = "kube-proxy.kubeconfig";
/// Whether what goes from pod to pod over a bridge passes the rules for services.
const BRIDGES_HAVE_RULES: &str = "/proc/sys/net/bridge/bridge-nf-call-iptables";

/// Whether this machine has a kube-proxy.
#[derive(Debug)]
pub(in crate::up) enum KubeProxy {
    Installed(PathBuf),
    /// As a pod, or started by someone else.
    Runs,
    Missing,
}

impl KubeProxy {
    pub(super) fn find() -> KubeProxy {
        if TcpListener::bind((Ipv4Addr::UNSPECIFIED, HEALTH_PORT)).is_err() {
            return KubeProxy::Runs;
        }
        on_path(NAME).map_or(KubeProxy::Missing, KubeProxy::Installed)
    }

    /// Writes its files, and returns what to run.
    pub(super) fn prepare(&self, folder: &Path, credentials: &str) -> Result<Option<Program>> {
        let KubeProxy::Installed(path) = self else { return Ok(None) };
        private_file::write(&folder.join(KUBECONFIG), credentials)?;
        // The bridge of this program is the network of pods, unless the machine has another one.
        let has_bridge = Path::new(POD_NETWORK_FILE).exists();
        private_file::write(&folder.join(CONFIG), &yaml::document(&configuration(folder, has_bridge)))?;
        if has_bridge && let Err(error) = let_rules_see_bridges() {
            tracing::warn!(
                error = format!("{error:#}"),
                "pods of this machine do not reach each other by the addresses of services: load the kernel module br_netfilter"
            );
        }
        let arguments = vec![format!("--config={}", folder.join(CONFIG).display())];
        Ok(Some(Program { path: path.clone(), arguments, log: folder.join("kube-proxy.log") }))
    }
}

/// The kubeconfig of kube-proxy: with a certificate of its own user, made at each start.
pub(in crate::up) fn credentials(now: Timestamp, url: &str, certificates: &Certificates) -> Result<String> {
    let (certificate, key) = certificates.of_client(now, USER)?;
    Ok(kubeconfig::of_user(url, &certificates.ca, NAME, &certificate, &key))
}

fn configuration(folder: &Path, has_bridge: bool) -> Value {
    let mut configuration = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": folder.join(KUBECONFIG)},
        "mode": "iptables",
    });
    if has_bridge {
        // What comes from elsewhere than this bridge is no pod of this machine: its answers must come back the same way.
        configuration["detectLocalMode"] = "BridgeInterface".into();
        configuration["detectLocal"] = json!({"bridgeInterface": BRIDGE});
    }
    configuration
}

/// Otherwise a pod answers another on the same bridge past the rules, from an address that was not asked.
fn let_rules_see_bridges() -> Result<()> {
    let now = fs::read_to_string(BRIDGES_HAVE_RULES).context(BRIDGES_HAVE_RULES)?;
    if now.trim() == "1" {
        return Ok(());
    }
    fs::write(BRIDGES_HAVE_RULES, "1\n").context(BRIDGES_HAVE_RULES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kube_proxy_takes_the_bridge_for_the_network_of_pods_if_there_is_one() {
        let folder = Path::new("/data/node");
        let expected = "\
apiVersion: kubeproxy.config.k8s.io/v1alpha1
clientConnection:
  kubeconfig: /data/node/kube-proxy.kubeconfig
detectLocal:
  bridgeInterface: setpoint0
detectLocalMode: BridgeInterface
kind: KubeProxyConfiguration
mode: iptables
";
        assert_eq!(yaml::document(&configuration(folder, true)), expected);
        assert_eq!(configuration(folder, false).get("detectLocal"), None);
    }

    #[test]
    fn without_kube_proxy_there_is_nothing_to_run() {
        let folder = tempfile::tempdir().unwrap();
        for found in [KubeProxy::Runs, KubeProxy::Missing] {
            assert!(found.prepare(folder.path(), "").unwrap().is_none());
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
