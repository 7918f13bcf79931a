//! The CA of the control loops in tests.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair};
use std::sync::OnceLock;

/// A CA as PEM.
pub(crate) struct Ca {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// The same in all tests of a run.
pub(crate) fn ca() -> &'static Ca {
    static CA: OnceLock<Ca> = OnceLock::new();
    CA.get_or_init(|| make("the CA"))
}

/// That of kubelets' serving certificates.
pub(crate) fn kubelet_ca() -> &'static Ca {
    static CA: OnceLock<Ca> = OnceLock::new();
    CA.get_or_init(|| make("the CA of kubelets"))
}

fn make(name: &str) -> Ca {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    Ca { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
}
