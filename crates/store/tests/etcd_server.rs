//! A real etcd of one member, on free loopback ports, killed when its handle is dropped.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::{
    net::{IpAddr, Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use store::EtcdTls;

#[derive(Debug)]
pub(crate) struct EtcdServer {
    process: Child,
    directory: tempfile::TempDir,
    client_port: u16,
    peer_port: u16,
    arguments: &'static [&'static str],
    tls: bool,
}

impl EtcdServer {
    /// Starts with further `arguments`.
    pub(crate) fn start(arguments: &'static [&'static str]) -> EtcdServer {
        EtcdServer::launch(arguments, false)
    }

    /// With TLS and required client certificates.
    pub(crate) fn start_with_tls() -> EtcdServer {
        EtcdServer::launch(&[], true)
    }

    fn launch(arguments: &'static [&'static str], tls: bool) -> EtcdServer {
        let directory = tempfile::tempdir().unwrap();
        if tls {
            make_certificates(directory.path());
        }
        let (client_port, peer_port) = (free_port(), free_port());
        let process = spawn(directory.path(), client_port, peer_port, arguments, tls);
        EtcdServer { process, directory, client_port, peer_port, arguments, tls }
    }

    pub(crate) fn url(&self) -> String {
        client_url(self.client_port, self.tls)
    }

    pub(crate) fn tls(&self) -> Option<EtcdTls> {
        let file = |name: &str| self.directory.path().join(name);
        let identity = Some((file("client.crt"), file("client.key")));
        self.tls.then(|| EtcdTls { ca: file("ca.crt"), identity })
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts again with the same data and ports.
    pub(crate) fn restart(&mut self) {
        self.process =
            spawn(self.directory.path(), self.client_port, self.peer_port, self.arguments, self.tls);
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        drop(self.process.kill().and_then(|()| self.process.wait()));
    }
}

fn program() -> PathBuf {
    let named = std::env::var_os("SETPOINT_ETCD").map(PathBuf::from);
    named.expect("SETPOINT_ETCD is not set: `cargo xtask test` sets it, `cargo xtask tools` prints the path")
}

fn spawn(directory: &Path, client_port: u16, peer_port: u16, arguments: &[&str], tls: bool) -> Child {
    let client = client_url(client_port, tls);
    let peer = format!("http://127.0.0.1:{peer_port}");
    let mut command = Command::new(program());
    command
        .args(["--name", "one", "--log-level", "error"])
        .args(arguments)
        .args(["--heartbeat-interval", "20", "--election-timeout", "100"])
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("one={peer}")])
        .arg("--data-dir")
        .arg(directory.join("data"));
    if tls {
        let file = |name: &str| directory.join(name);
        command.arg("--client-cert-auth");
        command.arg("--trusted-ca-file").arg(file("ca.crt"));
        command.arg("--cert-file").arg(file("server.crt")).arg("--key-file").arg(file("server.key"));
    }
    // The tests provoke failed handshakes and broken watches: its log would only confuse.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn client_url(port: u16, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{port}")
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn make_certificates(directory: &Path) {
    let ca_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&ca_key).unwrap();
    std::fs::write(directory.join("ca.crt"), ca.pem()).unwrap();
    let issuer = Issuer::new(params, ca_key);
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names.push(rcgen::SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let certificate = params.signed_by(&key, &issuer).unwrap();
        std::fs::write(directory.join(format!("{name}.crt")), certificate.pem()).unwrap();
        std::fs::write(directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}
