//! What control loops need to know from outside of the cluster.

use crate::SigningAuthority;
use serde_json::Value;
use std::{fmt, net::Ipv4Addr, str::FromStr, sync::Arc};

/// Signs the claims of a service account token, and returns it as a JWT.
pub type SignToken = Arc<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// Settings of the control loops. A loop that lacks its own does not run.
#[derive(Clone, Default)]
pub struct Settings {
    /// The certificate of the CA that pods trust for the API server, as PEM.
    pub root_ca: Option<String>,
    /// For tokens in secrets, which do not expire.
    pub sign_token: Option<SignToken>,
    /// The CA for approved CertificateSigningRequests: the server must trust its client certificates.
    pub signing_authority: Option<Arc<SigningAuthority>>,
    /// The CA for serving certificates of kubelets: only the server must trust it, to verify them. Without it, the one
    /// above signs them, too.
    // Kubernetes: --cluster-signing-kubelet-serving-cert-file.
    pub kubelet_serving_authority: Option<Arc<SigningAuthority>>,
    /// The addresses of all pods, of which every node gets a share. Without it nodes choose for themselves.
    pub pod_range: Option<PodRange>,
    /// Whether several API servers share the store: then the content of a namespace that is being deleted is left alone
    /// until all of them know that nothing more may be created in it.
    pub has_other_servers: bool,
}

/// A range of IPv4 addresses for pods that has room for nodes, as in `10.244.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodRange {
    pub(crate) first: Ipv4Addr,
    pub(crate) bits: u32,
}

/// A range that cannot be that of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it must be a range of IPv4 addresses from /8 to /24, as in 10.244.0.0/16")]
pub struct UnusableRange;

impl FromStr for PodRange {
    type Err = UnusableRange;

    fn from_str(text: &str) -> Result<PodRange, UnusableRange> {
        let (address, bits) = text.split_once('/').ok_or(UnusableRange)?;
        let address: Ipv4Addr = address.parse().map_err(|_| UnusableRange)?;
        // A node has 256 addresses; more than 65,536 nodes are not meant.
        let bits: u32 = bits.parse().ok().filter(|bits| (8..=24).contains(bits)).ok_or(UnusableRange)?;
        let rest = u32::BITS - bits;
        Ok(PodRange { first: Ipv4Addr::from_bits(address.to_bits() >> rest << rest), bits })
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings {
            root_ca,
            sign_token,
            signing_authority,
            kubelet_serving_authority,
            pod_range,
            has_other_servers,
        } = self;
        out.debug_struct("Settings")
            .field("root_ca", &root_ca.is_some())
            .field("sign_token", &sign_token.is_some())
            .field("signing_authority", signing_authority)
            .field("kubelet_serving_authority", kubelet_serving_authority)
            .field("pod_range", pod_range)
            .field("has_other_servers", has_other_servers)
            .finish()
    }
}
