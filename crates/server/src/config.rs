//! What a server is started with.

use crate::{
    audit::Audit,
    authenticate::{SigningKey, Token},
    fair,
    webhook::{Outbound, Sockets},
    write::ServiceRange,
};
use std::{net::SocketAddr, sync::Arc};

/// What a server is started with.
#[derive(Debug)]
pub struct Config {
    pub tokens: Vec<Token>,
    /// Signs service account tokens; a new one where none is given.
    pub signing_key: Option<SigningKey>,
    /// Under which name they are signed; `https://kubernetes.default.svc` where none is given.
    pub issuer: Option<String>,
    /// Where services get their addresses from.
    pub service_range: ServiceRange,
    /// Where the cluster reaches this server: the endpoint of the service `kubernetes`.
    pub advertised: Option<SocketAddr>,
    /// How webhooks are reached.
    pub outbound: Arc<dyn Outbound>,
    /// PEM of who signs this server's certificate: pods trust it.
    pub authority: Option<String>,
    /// Requests that are served at once; others wait for a seat.
    pub seats: u32,
    /// Kubernetes' OwnerReferencesPermissionEnforcement, which is off unless asked for.
    pub enforces_owner_permissions: bool,
    /// Kubernetes' ServiceAccount: pods run as an account of their namespace, and find a token of it.
    pub admits_service_accounts: bool,
    /// Whether creating a namespace also creates its ServiceAccount `default` and its ConfigMap `kube-root-ca.crt`, which
    /// in Kubernetes the controller manager creates.
    pub fills_namespaces: bool,
    /// Who asked for what, for auditors; off unless asked for.
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
            authority: None,
            seats: fair::SEATS,
            enforces_owner_permissions: false,
            admits_service_accounts: true,
            fills_namespaces: true,
            audit: None,
        }
    }
}
