//! Writes the kubeconfig with the server's address and the administrator's credentials.

use super::{certificates::Certificates, private_file};
use anyhow::Result;
use base64::{Engine, engine::general_purpose::STANDARD};
use std::path::Path;

pub(crate) fn write(path: &Path, url: &str, certificates: &Certificates) -> Result<()> {
    private_file::write(path, &text(url, certificates))
}

pub(super) fn text(url: &str, certificates: &Certificates) -> String {
    let encode = |pem: &str| STANDARD.encode(pem);
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: setpoint
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: setpoint-admin
  user:
    client-certificate-data: {admin}
    client-key-data: {admin_key}
contexts:
- name: setpoint
  context:
    cluster: setpoint
    user: setpoint-admin
current-context: setpoint
",
        ca = encode(&certificates.ca),
        admin = encode(&certificates.admin),
        admin_key = encode(&certificates.admin_key),
    )
}
