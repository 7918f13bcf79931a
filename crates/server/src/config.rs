//! The configuration of a server.

use crate::{
    audit::Audit,
    authenticate::{SigningKey, Token},
    fair,
    kubelet::Kubelets,
    webhook::{Outbound, Sockets},
    write::ServiceRange,
};
use std::{net::SocketAddr, sync::Arc};

/// The configuration of a server.
#[derive(Debug)]
pub struct Config {
    pub tokens: Vec<Token>,
    /// Signs service account tokens; generated if `None`.
    pub signing_key: Option<SigningKey>,
    /// The issuer of tokens; `https://kubernetes.default.svc` if `None`.
    pub issuer: Option<String>,
    /// The address range of services.
    pub service_range: ServiceRange,
    /// The address at which the cluster reaches this server: the endpoint of the service `kubernetes`.
    pub advertised: Option<SocketAddr>,
    /// How webhooks are called.
    pub outbound: Arc<dyn Outbound>,
    /// How kubelets are reached; without it no node answers.
    pub kubelets: Option<Arc<dyn Kubelets>>,
    /// PEM of the CA of this server's certificate, for pods.
    pub authority: Option<String>,
    /// Concurrent requests, in seats; others wait for a seat.
    pub seats: u32,
    /// Kubernetes' OwnerReferencesPermissionEnforcement; off by default.
    pub enforces_owner_permissions: bool,
    /// Kubernetes' ServiceAccount plugin: pods run as an account of their namespace, with a token mounted.
    pub admits_service_accounts: bool,
    /// Whether creating a namespace also creates its ServiceAccount `default` and its ConfigMap
    /// `kube-root-ca.crt`. In Kubernetes the controller manager does that.
    pub fills_namespaces: bool,
    /// The audit log; off by default.
    pub audit: Option<Audit>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tokens: Vec::new(),
            signing_key: None,
            issuer: None,
            service_range: ServiceRange::default(),
            advertised: None,
            outbound: Arc::new(Sockets::default()),
            kubelets: None,
            authority: None,
            seats: fair::SEATS,
            enforces_owner_permissions: false,
            admits_service_accounts: true,
            fills_namespaces: true,
            audit: None,
        }
    }
}
