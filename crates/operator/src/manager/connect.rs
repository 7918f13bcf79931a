//! How a manager finds its cluster: by a kubeconfig, or by the service account of its pod.

use super::{Error, Manager};
use crate::service_account::ServiceAccount;
use kube::{Client, config::KubeConfigOptions};
use world::World;

impl Manager {
    /// A manager for the cluster of the kubeconfig (`KUBECONFIG`, or `~/.kube/config`), or else of the pod that this
    /// process runs in, with its service account.
    pub async fn connect(name: &str) -> Result<Manager, Error> {
        let mut config = match kube::Config::from_kubeconfig(&KubeConfigOptions::default()).await {
            Ok(config) => config,
            Err(kubeconfig) => {
                let kubeconfig = Box::new(kubeconfig);
                let no_cluster = |service_account| Error::NoCluster { kubeconfig, service_account };
                return Manager::connect_as(name, &ServiceAccount::of_pod().map_err(no_cluster)?);
            }
        };
        config.apply_debug_overrides();
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        Ok(Manager::connected(name, Client::try_from(config).map_err(Error::Client)?, &host))
    }

    /// A manager for the cluster of this service account.
    pub fn connect_as(name: &str, account: &ServiceAccount) -> Result<Manager, Error> {
        let client = account.client(&World::real()).map_err(Error::ServiceAccount)?;
        Ok(Manager::connected(name, client, &account.authority()))
    }

    fn connected(name: &str, client: Client, host: &str) -> Manager {
        let manager = Manager::new(name, &World::real(), client);
        manager.metrics.set_host(host);
        manager
    }

    /// A manager without a cluster, in the tokio runtime that calls this: for [`Manager::manifests`]. Every request
    /// of it fails.
    pub fn disconnected(name: &str) -> Manager {
        let no_cluster = |_: http::Request<kube::client::Body>| async {
            Err::<http::Response<kube::client::Body>, _>(std::io::Error::other("this manager has no cluster"))
        };
        Manager::new(name, &World::real(), Client::new(tower::service_fn(no_cluster), "default"))
    }
}
