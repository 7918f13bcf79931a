//! Starts the two servers side by side, each empty, and stops them at the end.

mod control_loops;

pub use control_loops::LoopPrograms;

use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use world::World;

/// The users of both token files; the first is an administrator.
pub const USERS: [(&str, &str); 5] = [
    ("admin", "system:masters"),
    ("viewer", "twin:viewers"),
    ("editor", "twin:editors"),
    ("nobody", "twin:nobodies"),
    ("other", "twin:editors,twin:viewers"),
];
const SERVICE_RANGE: &str = "10.96.0.0/16";
const ISSUER: &str = "https://kubernetes.default.svc";
const READY_LIMIT: Duration = Duration::from_secs(90);
const READY_PAUSE: Duration = Duration::from_millis(100);

/// The paths of the programs.
#[derive(Debug)]
pub struct Programs {
    pub etcd: PathBuf,
    pub kube_apiserver: PathBuf,
    pub setpoint: PathBuf,
}

/// Both running servers. Dropping it stops them and removes their files.
#[derive(Debug)]
pub struct Servers {
    pub real: SocketAddr,
    pub ours: SocketAddr,
    children: Vec<Child>,
    scratch: TempDir,
}

impl Servers {
    pub async fn start(world: &World, programs: &Programs) -> Result<Servers> {
        let scratch = tempfile::tempdir().context("cannot make a directory for the servers")?;
        let tokens = scratch.path().join("tokens.csv");
        fs::write(&tokens, token_file())?;
        let (key, public_key) =
            (scratch.path().join("account-key.pem"), scratch.path().join("account-key.pub"));
        let pair = rcgen::KeyPair::generate()?;
        fs::write(&key, pair.serialize_pem())?;
        fs::write(&public_key, pair.public_key_pem())?;
        let (etcd, peer, real, ours) = (free_port()?, free_port()?, free_port()?, free_port()?);
        let mut servers = Servers { real, ours, children: Vec::new(), scratch };
        servers.spawn("etcd", etcd_command(&programs.etcd, servers.scratch.path(), etcd, peer))?;
        let mut command = real_command(&programs.kube_apiserver, servers.scratch.path(), etcd, real);
        command.arg("--token-auth-file").arg(&tokens);
        command.arg("--service-account-signing-key-file").arg(&key);
        command.arg("--service-account-key-file").arg(&public_key);
        servers.spawn("kube-apiserver", command)?;
        let mut command = Command::new(&programs.setpoint);
        command.args(["up", "--ephemeral", "--controllers=", "--nodes", "0", "--listen", &ours.to_string()]);
        command.args(["--service-cluster-ip-range", SERVICE_RANGE, "--service-account-issuer", ISSUER]);
        command.arg("--token-auth-file").arg(&tokens);
        command.arg("--service-account-signing-key-file").arg(&key);
        command.arg("--write-kubeconfig").arg(servers.scratch.path().join("kubeconfig"));
        command.current_dir(servers.scratch.path());
        servers.spawn("setpoint", command)?;
        servers.wait_until_ready(world).await?;
        Ok(servers)
    }

    fn spawn(&mut self, name: &str, mut command: Command) -> Result<()> {
        let log = File::create(self.scratch.path().join(format!("{name}.log")))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        self.children.push(child);
        Ok(())
    }

    async fn wait_until_ready(&mut self, world: &World) -> Result<()> {
        let mut waited = Duration::ZERO;
        for address in [self.ours, self.real] {
            while !crate::client::is_ready(world, address).await {
                self.check_alive()?;
                if waited > READY_LIMIT {
                    bail!("{address} is not ready after {READY_LIMIT:?}\n{}", self.logs());
                }
                world.sleep(READY_PAUSE).await;
                waited += READY_PAUSE;
            }
        }
        Ok(())
    }

    /// Fails if one of the programs has ended.
    pub fn check_alive(&mut self) -> Result<()> {
        for child in &mut self.children {
            if let Some(status) = child.try_wait()? {
                bail!("a server ended: {status}\n{}", self.logs());
            }
        }
        Ok(())
    }

    /// The last lines of each program's log.
    pub fn logs(&self) -> String {
        let mut out = String::new();
        let files = fs::read_dir(self.scratch.path()).into_iter().flatten().flatten().map(|it| it.path());
        let mut logs: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
        logs.sort();
        for path in logs {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            let last = &lines[lines.len().saturating_sub(15)..];
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            out.push_str(&format!("--- {name}\n{}\n", last.join("\n")));
        }
        out
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // A process that has ended needs no signal.
        for child in self.children.iter_mut().rev() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn etcd_command(program: &Path, scratch: &Path, address: SocketAddr, peer: SocketAddr) -> Command {
    let mut command = Command::new(program);
    let (client, peer) = (format!("http://{address}"), format!("http://{peer}"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync"]);
    command.args(["--log-level", "error", "--auto-compaction-retention", "0"]);
    command.arg("--data-dir").arg(scratch.join("etcd"));
    command
}

fn real_command(program: &Path, scratch: &Path, etcd: SocketAddr, address: SocketAddr) -> Command {
    let mut command = Command::new(program);
    command.args(["--etcd-servers", &format!("http://{etcd}"), "--bind-address", "127.0.0.1"]);
    command.args(["--secure-port", &address.port().to_string()]);
    command.arg("--cert-dir").arg(scratch.join("certificates"));
    command.args(["--authorization-mode", "Node,RBAC", "--service-cluster-ip-range", SERVICE_RANGE]);
    command.args(["--service-account-issuer", ISSUER]);
    // Like clusters, Setpoint leaves it to other rules who may run privileged containers.
    command.arg("--allow-privileged");
    // As many seats as Setpoint has on a loaded machine: no request may get 429.
    command.args(["--max-requests-inflight", "2000", "--max-mutating-requests-inflight", "1000"]);
    command
}

fn token_file() -> String {
    let line =
        |(at, (name, groups)): (usize, &(&str, &str))| format!("{name}-token,{name},{at},\"{groups}\"\n");
    USERS.iter().enumerate().map(line).collect()
}

/// A port that is free now. Another process may take it before the server does; then the start fails with an error.
fn free_port() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?)
}
