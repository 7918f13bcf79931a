//! Why a manager could not start, or ended by itself.

use crate::{BoxError, lease::LeaseLost, service_account, webhook};
use kube::config::KubeconfigError;
use std::{net::SocketAddr, time::Duration};

/// Why a manager could not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is neither a kubeconfig nor the service account of a pod.
    #[error(
        "there is no cluster to connect to: no kubeconfig ({kubeconfig}), and no service account of a pod"
    )]
    NoCluster {
        /// What is wrong with the kubeconfig.
        kubeconfig: Box<KubeconfigError>,
        /// What is wrong with the service account.
        #[source]
        service_account: service_account::Error,
    },
    /// There is no client for the cluster of the kubeconfig.
    #[error("the client of the kubeconfig cannot be made")]
    Client(#[source] kube::Error),
    /// There is no client for the service account.
    #[error("the service account cannot be used")]
    ServiceAccount(#[source] service_account::Error),
    /// A cache did not have its first list in time.
    #[error(
        "controller \"{controller}\" waited {limit:?} for its cache of {kind}: may it list and watch it?"
    )]
    NotSynced {
        /// The name of the controller.
        controller: String,
        /// The kind that it waited for.
        kind: String,
        /// How long.
        limit: Duration,
    },
    /// The lease was lost.
    #[error("another process leads now: this one must not go on")]
    NoLongerLeading(#[source] LeaseLost),
    /// The port of probes or webhooks is not free.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A source is in a cluster without a client: see [`Manager::cluster`](crate::Manager::cluster).
    #[error(
        "controller \"{controller}\" has a source in cluster \"{cluster}\", which the manager does not know"
    )]
    UnknownCluster {
        /// The name of the controller.
        controller: String,
        /// The name of the cluster.
        cluster: String,
    },
    /// Two functions compute an index of one name: objects would be found by the values of one of them.
    #[error(
        "two functions are given for the index \"{index}\" of {kind}: share one function, or use two names"
    )]
    ContestedIndex {
        /// The kind of the indexed objects.
        kind: String,
        /// The name of the index.
        index: &'static str,
    },
    /// Work of your own returned an error, or panicked.
    #[error("the runnable \"{name}\" failed")]
    Runnable {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The webhooks cannot be served any more.
    #[error("the webhooks ended")]
    Webhooks(#[from] webhook::Error),
    /// Its task was cancelled, or panicked.
    #[error("the manager ended before its time")]
    Stopped(#[from] world::Stopped),
}
