//! Writes the kubeconfig of a test's cluster.

use crate::scratch;
use base64::{Engine, engine::general_purpose::STANDARD};
use std::{
    io::{self, Write},
    net::SocketAddr,
    path::PathBuf,
};

/// Writes a new file that only its owner can read. Its name has the port, which no other test has now.
pub(super) fn write(address: SocketAddr, certificate: &str, token: &str) -> io::Result<PathBuf> {
    let path = scratch::directory()?.join(format!("{}-{}.kubeconfig", scratch::test_name(), address.port()));
    let text = format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: https://{address}
    certificate-authority-data: {authority}
users:
- name: admin
  user:
    token: {token}
contexts:
- name: test
  context:
    cluster: test
    user: admin
current-context: test
",
        authority = STANDARD.encode(certificate),
    );
    scratch::create_private(&path)?.write_all(text.as_bytes())?;
    Ok(path)
}
