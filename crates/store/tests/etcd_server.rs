//! A real etcd of one member, on free loopback ports, killed when its handle is dropped.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::{
    net::{IpAddr, Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use store::EtcdTls;

/// Starts that may end at once before a test gives up.
const MOST_STARTS: usize = 100;

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

    /// Starts again with the same data and ports, and waits until it listens. etcd ends at once while a client that
    /// tries to connect has the port by chance.
    pub(crate) fn restart(&mut self) {
        let listens = (0..MOST_STARTS).any(|_| {
            self.process =
                spawn(self.directory.path(), self.client_port, self.peer_port, self.arguments, self.tls);
            self.listens()
        });
        assert!(listens, "etcd ends each time it is started again");
    }

    /// Waits until it listens; `false` if it ends instead.
    fn listens(&mut self) -> bool {
        while self.process.try_wait().unwrap().is_none() {
            let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.client_port));
            // A socket can be connected with itself where nothing listens.
            let is_other = |socket: TcpStream| socket.local_addr().unwrap() != socket.peer_addr().unwrap();
            if socket.is_ok_and(is_other) {
                return true;
            }
            pause();
        }
        pause();
        false
    }
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for, in no world")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(20));
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
