//! A control plane for third-party suites: Setpoint or kube-apiserver; alone, or with the real controllers
//! and nodes.

use crate::{
    interop,
    real_node::{self, Machine},
    tools,
};
use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// The API server of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Against {
    Setpoint,
    /// Setpoint on an etcd instead of its own store.
    SetpointOnEtcd,
    Real,
}

/// Who runs the control loops, the scheduler and the nodes of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlLoops {
    /// Setpoint itself, as far as it has them.
    Own,
    /// No program, or other ones.
    Others,
}

/// Nodes that KWOK simulates: enough for tests that need several.
const NODES: usize = 3;
/// How long a program may take to become ready.
const PATIENCE: Duration = Duration::from_secs(90);

/// A running control plane. Its programs end with it; their logs stay in its folder.
pub(crate) struct Cluster {
    pub(crate) kubeconfig: PathBuf,
    folder: PathBuf,
    programs: Vec<Child>,
    /// If containers run here. It ends after the programs.
    machine: Option<Machine>,
}

impl Cluster {
    pub(crate) fn start(against: Against, control_loops: ControlLoops, folder: &Path) -> Result<Cluster> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::create_dir_all(folder)?;
        let setpoint = build_setpoint()?;
        let mut cluster = Cluster {
            kubeconfig: folder.join("data/kubeconfig"),
            folder: folder.to_owned(),
            programs: Vec::new(),
            machine: None,
        };
        let loops: &[&str] = match control_loops {
            ControlLoops::Own => &["--nodes", "3"],
            ControlLoops::Others => &["--controllers=", "--nodes", "0"],
        };
        match against {
            Against::Setpoint => drop(cluster.start_setpoint(&setpoint, loops)?),
            Against::SetpointOnEtcd => {
                let etcd = cluster.start_etcd()?;
                let store = ["--store", "etcd", "--etcd-servers", &etcd];
                cluster.start_setpoint(&setpoint, &[&store, loops].concat())?;
            }
            Against::Real => {
                // kube-apiserver uses its certificates, keys and kubeconfig.
                let url = cluster.start_setpoint(&setpoint, loops)?;
                cluster.end();
                let port = url.rsplit(':').next().context("the port of the server")?.to_owned();
                cluster.start_real_server(&port)?;
            }
        }
        Ok(cluster)
    }

    /// Setpoint with this machine as its node, where containers run, and with DNS.
    pub(crate) fn start_with_real_node(folder: &Path) -> Result<Cluster> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        let data = folder.join("data");
        fs::create_dir_all(&data)?;
        let setpoint = build_setpoint()?;
        let machine = Some(Machine::start(folder, &data)?);
        let (kubeconfig, programs) = (data.join("kubeconfig"), Vec::new());
        let mut cluster = Cluster { kubeconfig, folder: folder.to_owned(), programs, machine };
        cluster.start_setpoint(&setpoint, &["--node", "--dns", "--listen", "0.0.0.0:0"])?;
        cluster.wait_for(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=10s"])?;
        cluster.wait_for(&[
            "-n",
            "kube-system",
            "rollout",
            "status",
            "deployment/coredns",
            "--timeout=30s",
        ])?;
        Ok(cluster)
    }

    /// Starts Setpoint and returns its URL.
    fn start_setpoint(&mut self, setpoint: &Path, more: &[&str]) -> Result<String> {
        let mut command = Command::new(setpoint);
        command.args(["up", "--data-dir"]).arg(self.folder.join("data")).args(more);
        match self.machine {
            Some(_) => command.env("PATH", Machine::path()?),
            None => command.args(["--listen", "127.0.0.1:0"]),
        };
        command.stdout(Stdio::piped()).stderr(File::create(self.folder.join("setpoint.log"))?);
        let mut child = command.spawn().context("cannot start setpoint")?;
        let output = BufReader::new(child.stdout.take().context("what setpoint says")?);
        self.programs.push(child);
        for line in output.lines() {
            if let Some(ready) = line?.strip_prefix("ready ") {
                return Ok(ready.split(' ').next().unwrap_or_default().to_owned());
            }
        }
        bail!("setpoint ended before it was ready: {}", self.folder.join("setpoint.log").display())
    }

    /// Starts an etcd and returns its URL.
    fn start_etcd(&mut self) -> Result<String> {
        let [client, peer] = [free_port()?, free_port()?].map(|port| format!("http://127.0.0.1:{port}"));
        let data = self.folder.join("etcd").display().to_string();
        self.start_program(
            "etcd",
            &[
                ("--data-dir", &data),
                ("--listen-client-urls", &client),
                ("--advertise-client-urls", &client),
                ("--listen-peer-urls", &peer),
                ("--initial-advertise-peer-urls", &peer),
                ("--initial-cluster", &format!("default={peer}")),
                ("--unsafe-no-fsync", "true"),
            ],
        )?;
        Ok(client)
    }

    fn start_real_server(&mut self, port: &str) -> Result<()> {
        let etcd = self.start_etcd()?;
        let pki = |file: &str| self.folder.join("data/pki").join(file).display().to_string();
        let arguments = [
            ("--etcd-servers", etcd),
            ("--bind-address", "127.0.0.1".to_owned()),
            ("--secure-port", port.to_owned()),
            ("--tls-cert-file", pki("server.crt")),
            ("--tls-private-key-file", pki("server.key")),
            ("--client-ca-file", pki("ca.crt")),
            ("--service-account-key-file", pki("sa.key")),
            ("--service-account-signing-key-file", pki("sa.key")),
            ("--service-account-issuer", "https://kubernetes.default.svc".to_owned()),
            ("--service-cluster-ip-range", "10.96.0.0/16".to_owned()),
            ("--authorization-mode", "Node,RBAC".to_owned()),
        ];
        let arguments = arguments.each_ref().map(|(name, value)| (*name, value.as_str()));
        self.start_program("kube-apiserver", &arguments)?;
        self.wait_for(&["get", "--raw", "/readyz"])
    }

    /// Starts the real controller manager and scheduler, and nodes of KWOK.
    pub(crate) fn add_real_controllers(&mut self) -> Result<()> {
        let pki = |file: &str| self.folder.join("data/pki").join(file).display().to_string();
        let kubeconfig = self.kubeconfig.display().to_string();
        let arguments = [
            ("--service-account-private-key-file", pki("sa.key")),
            ("--root-ca-file", pki("ca.crt")),
            ("--cluster-signing-cert-file", pki("ca.crt")),
            ("--cluster-signing-key-file", pki("ca.key")),
            ("--kubeconfig", kubeconfig.clone()),
            ("--use-service-account-credentials", "true".to_owned()),
            ("--leader-elect", "false".to_owned()),
            ("--secure-port", "0".to_owned()),
            ("--kube-api-qps", "200".to_owned()),
            ("--kube-api-burst", "400".to_owned()),
        ];
        let arguments = arguments.each_ref().map(|(name, value)| (*name, value.as_str()));
        self.start_program("kube-controller-manager", &arguments)?;
        let common =
            [("--kubeconfig", kubeconfig.as_str()), ("--leader-elect", "false"), ("--secure-port", "0")];
        self.start_program("kube-scheduler", &common)?;
        let stages = kwok_stages()?;
        let mut arguments = vec![
            ("--kubeconfig", kubeconfig.as_str()),
            ("--manage-all-nodes", "true"),
            ("--cidr", "10.244.0.0/16"),
        ];
        arguments.extend(stages.iter().map(|stage| ("--config", stage.as_str())));
        self.start_program("kwok", &arguments)?;
        for number in 0..NODES {
            self.apply(&node(number))?;
        }
        self.wait_for(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=10s"])?;
        self.wait_for(&["get", "serviceaccount", "default"])
    }

    fn start_program(&mut self, name: &str, arguments: &[(&str, &str)]) -> Result<()> {
        let path = interop::build(&[name])?.remove(0);
        let log = File::create(self.folder.join(format!("{name}.log")))?;
        let mut command = Command::new(path);
        command.args(arguments.iter().map(|(name, value)| format!("{name}={value}")));
        // Caches of the program stay in the folder of this cluster, too.
        command.env("HOME", &self.folder).current_dir(&self.folder);
        let child = command.stdout(log.try_clone()?).stderr(log).spawn();
        self.programs.push(child.with_context(|| format!("cannot start {name}"))?);
        Ok(())
    }

    pub(crate) fn kubectl(&self) -> Result<Command> {
        let mut command = Command::new(interop::build(&["kubectl"])?.remove(0));
        command.arg("--kubeconfig").arg(&self.kubeconfig).env("HOME", &self.folder);
        Ok(command)
    }

    fn apply(&self, manifest: &str) -> Result<()> {
        let file = self.folder.join("manifest.yaml");
        fs::write(&file, manifest)?;
        self.wait_for(&["apply", "--server-side", "-f", &file.display().to_string()])
    }

    /// Runs kubectl until it succeeds.
    fn wait_for(&self, arguments: &[&str]) -> Result<()> {
        let begun = Instant::now();
        loop {
            let output = self.kubectl()?.args(arguments).output()?;
            if output.status.success() {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                let said = String::from_utf8_lossy(&output.stderr);
                bail!("kubectl {}: {said}; see the logs in {}", arguments.join(" "), self.folder.display());
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Ends all programs.
    fn end(&mut self) {
        for mut program in self.programs.drain(..).rev() {
            // Setpoint ends the programs of a real node if it is asked to end itself.
            if self.machine.is_some() {
                drop(real_node::stop(&mut program));
                continue;
            }
            drop(program.kill());
            drop(program.wait());
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.end();
    }
}

/// The release build of our own binary, or the one that `SETPOINT_BINARY` names.
pub(crate) fn build_setpoint() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("SETPOINT_BINARY") {
        return Ok(std::path::absolute(path)?);
    }
    let status = Command::new(tools::cargo()).args(["build", "--release", "--bin", "setpoint"]).status()?;
    if !status.success() {
        bail!("setpoint cannot be built");
    }
    Ok(tools::root()?.join("target/release/setpoint"))
}

/// KWOK's stages of nodes and pods, from its own module.
fn kwok_stages() -> Result<Vec<String>> {
    let output = interop::go()?.args(["list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kwok"]).output()?;
    let module = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let mut stages = Vec::new();
    for folder in ["node/fast", "node/heartbeat-with-lease", "pod/fast"] {
        let folder = module.join("kustomize/stage").join(folder);
        for entry in fs::read_dir(&folder).with_context(|| format!("{}", folder.display()))? {
            let path = entry?.path();
            let is_stage = path.extension().is_some_and(|extension| extension == "yaml")
                && path.file_stem().is_some_and(|name| name != "kustomization");
            if is_stage {
                stages.push(path.display().to_string());
            }
        }
    }
    stages.sort();
    Ok(stages)
}

/// A port that was free just now: these programs cannot choose one themselves.
fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn node(number: usize) -> String {
    format!(
        "\
apiVersion: v1
kind: Node
metadata:
  name: node-{number}
  annotations: {{kwok.x-k8s.io/node: fake}}
  labels:
    kubernetes.io/hostname: node-{number}
    kubernetes.io/os: linux
    kubernetes.io/arch: amd64
    topology.kubernetes.io/zone: zone-{number}
status:
  allocatable: {{cpu: \"32\", memory: 64Gi, ephemeral-storage: 100Gi, pods: \"500\"}}
  capacity: {{cpu: \"32\", memory: 64Gi, ephemeral-storage: 100Gi, pods: \"500\"}}
"
    )
}
