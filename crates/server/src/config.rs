//! The configuration of a server.

use crate::{
    admission::AdmissionPlugins,
    audit::Audit,
    authenticate::{SigningKey, Token, VerifyingKey},
    authorize::AuthorizationMode,
    fair,
    kubelet::{AddressChoice, Kubelets},
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
    /// Keys of others whose service account tokens are accepted, too.
    pub verifying_keys: Vec<VerifyingKey>,
    /// The issuer of tokens; `https://kubernetes.default.svc` if `None`.
    pub issuer: Option<String>,
    /// Issuers whose tokens are accepted, too: former names of this one.
    pub more_issuers: Vec<String>,
    /// Audiences: a service account token must name one of them. If empty, the issuer is the only one.
    pub audiences: Vec<String>,
    /// Whether a request without credentials is answered as system:anonymous.
    pub allows_anonymous: bool,
    /// Whether the bootstrap tokens in kube-system authenticate.
    pub accepts_bootstrap_tokens: bool,
    /// Who decides what a user may do, in this order.
    pub authorization: Vec<AuthorizationMode>,
    /// Versions of built-in groups that are not served, as group and version.
    pub hidden_versions: Vec<(String, String)>,
    /// The address range of services.
    pub service_range: ServiceRange,
    /// The address at which the cluster reaches this server: the endpoint of the service `kubernetes`.
    pub advertised: Option<SocketAddr>,
    /// How webhooks are called.
    pub outbound: Arc<dyn Outbound>,
    /// How kubelets are reached; without it no node answers.
    pub kubelets: Option<Arc<dyn Kubelets>>,
    /// Which of the addresses that a Node reports is used.
    pub kubelet_addresses: AddressChoice,
    /// PEM of the CA of this server's certificate, for pods.
    pub authority: Option<String>,
    /// Concurrent requests, in seats; others wait for a seat.
    pub seats: u32,
    /// The admission plugins that run.
    pub admission_plugins: AdmissionPlugins,
    /// Whether containers may be privileged.
    pub allows_privileged: bool,
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
            verifying_keys: Vec::new(),
            issuer: None,
            more_issuers: Vec::new(),
            audiences: Vec::new(),
            allows_anonymous: true,
            accepts_bootstrap_tokens: false,
            authorization: vec![AuthorizationMode::Node, AuthorizationMode::Rbac],
            hidden_versions: Vec::new(),
            service_range: ServiceRange::default(),
            advertised: None,
            outbound: Arc::new(Sockets::default()),
            kubelets: None,
            kubelet_addresses: AddressChoice::default(),
            authority: None,
            seats: fair::SEATS,
            admission_plugins: AdmissionPlugins::default(),
            allows_privileged: true,
            fills_namespaces: true,
            audit: None,
        }
    }
}
