//! This machine as a real node of a cluster for the official tests: containerd with what restricted machines need, images
//! without a registry, and everything removed at the end.

use crate::{images, interop, tools};
use anyhow::{Context, Result, bail};
use std::{
    ffi::OsString,
    fs::{self, File},
    net::TcpListener,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

const SOCKET: &str = "/run/containerd/containerd.sock";
const POD_NETWORK: &str = "/etc/cni/net.d/10-setpoint.conflist";
const BRIDGE: &str = "setpoint0";
/// And the packages of Debian that have them.
const PROGRAMS: [(&str, &str); 6] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("iptables", "iptables"),
    ("busybox", "busybox-static"),
    ("cc", "gcc libc6-dev"),
];
const PLUGINS: [&str; 2] = ["/opt/cni/bin", "/usr/lib/cni"];
/// How long a program may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports of the kubelet and of kube-proxy.
const PORTS: [u16; 3] = [10250, 10256, 10248];

/// For machines that are themselves containers or small virtual machines: of old cgroups, without limits for all pods together,
/// and a full disk is no reason to end pods.
const KUBELET: &str = "\
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
enforceNodeAllocatable: []
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageGCHighThresholdPercent: 99
imageGCLowThresholdPercent: 98
";

/// A containerd with images. Dropped, it ends with all its containers.
pub(crate) struct Machine {
    containerd: Child,
}

impl Machine {
    /// Why this machine cannot be one.
    pub(crate) fn obstacle() -> Option<String> {
        let id = Command::new("id").arg("-u").output().map(|output| output.stdout).unwrap_or_default();
        if id.trim_ascii() != b"0" {
            return Some("containers need root".to_owned());
        }
        for (name, package) in PROGRAMS {
            if tools::on_path(name).is_none() {
                return Some(format!("there is no {name} (on Debian: apt-get install {package})"));
            }
        }
        if plugins().is_none() {
            let install = "apt-get install containernetworking-plugins";
            return Some(format!("there are no network plugins for pods (on Debian: {install})"));
        }
        if UnixStream::connect(SOCKET).is_ok() {
            return Some(
                "a containerd runs on this machine, and its containers would end: stop it first".to_owned(),
            );
        }
        let is_taken = |port: &u16| TcpListener::bind(("0.0.0.0", *port)).is_err();
        let port = PORTS.into_iter().find(is_taken)?;
        Some(format!("port {port} is in use, which the kubelet or kube-proxy needs"))
    }

    /// Starts containerd in `folder`, and writes the settings of the kubelet that will use it to `data`.
    pub(crate) fn start(folder: &Path, data: &Path) -> Result<Machine> {
        if let Some(obstacle) = Machine::obstacle() {
            bail!("--with-real-nodes: {obstacle}");
        }
        let plugins = plugins().context("network plugins")?;
        let settings = data.join("node/kubelet.conf.d");
        fs::create_dir_all(&settings)?;
        fs::write(settings.join("10-tests.conf"), KUBELET)?;
        let config = folder.join("containerd.toml");
        fs::write(&config, containerd_config(folder, plugins))?;
        let log = File::create(folder.join("containerd.log"))?;
        let mut command = Command::new("containerd");
        command.arg("--config").arg(config).stdout(log.try_clone()?).stderr(log);
        let machine = Machine { containerd: command.spawn().context("cannot start containerd")? };
        let begun = Instant::now();
        while UnixStream::connect(SOCKET).is_err() {
            if begun.elapsed() > PATIENCE {
                bail!("containerd does not start; see {}", folder.join("containerd.log").display());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        for archive in images::make(&tools::root()?.join("target/images"))? {
            ctr(&["images", "import", &archive.display().to_string()])?;
        }
        Ok(machine)
    }

    /// The folders of programs, with the kubelet and kube-proxy in the first.
    pub(crate) fn path() -> Result<OsString> {
        let built = interop::build(&["kubelet", "kube-proxy"])?;
        let first = built[0].parent().context("a program is in a folder")?.to_owned();
        let others = std::env::var_os("PATH").unwrap_or_default();
        Ok(std::env::join_paths([first].into_iter().chain(std::env::split_paths(&others)))?)
    }

    fn end(&mut self) -> Result<()> {
        for task in ctr(&["tasks", "ls", "-q"])?.lines() {
            // One that has ended just now is as good.
            drop(ctr(&["tasks", "kill", "--signal", "SIGKILL", "--all", task]));
            drop(ctr(&["tasks", "rm", "--force", task]));
        }
        for container in ctr(&["containers", "ls", "-q"])?.lines() {
            drop(ctr(&["containers", "rm", container]));
        }
        stop(&mut self.containerd)?;
        let mounts = fs::read_to_string("/proc/mounts")?;
        let mounts = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for mount in mounts
            .filter(|path| ["/var/lib/kubelet", "/run/containerd/"].iter().any(|it| path.starts_with(it)))
        {
            drop(quiet(Command::new("umount").args(["-l", mount])));
        }
        drop(quiet(Command::new(&interop::build(&["kube-proxy"])?[0]).arg("--cleanup")));
        drop(quiet(Command::new("ip").args(["link", "delete", BRIDGE])));
        for path in [POD_NETWORK, "/var/lib/cni/networks/setpoint"].map(PathBuf::from) {
            drop(if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) });
        }
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            println!("this machine is not as it was before: {error:#}");
        }
    }
}

/// Sends SIGTERM, and waits.
pub(crate) fn stop(child: &mut Child) -> Result<()> {
    quiet(Command::new("kill").args(["-TERM", &child.id().to_string()]))?;
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() > PATIENCE {
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn plugins() -> Option<&'static str> {
    PLUGINS.into_iter().find(|path| Path::new(path).join("bridge").exists())
}

fn containerd_config(folder: &Path, plugins: &str) -> String {
    let root = folder.join("containerd");
    format!(
        "\
version = 2
root = \"{}\"
[plugins.\"io.containerd.grpc.v1.cri\"]
  restrict_oom_score_adj = true
  sandbox_image = \"registry.k8s.io/pause:3.10.2\"
  [plugins.\"io.containerd.grpc.v1.cri\".containerd]
    snapshotter = \"{}\"
  [plugins.\"io.containerd.grpc.v1.cri\".cni]
    bin_dir = \"{plugins}\"
    conf_dir = \"/etc/cni/net.d\"
",
        root.display(),
        snapshotter(folder)
    )
}

/// Layers on top of each other where the file system can do that, copies of everything otherwise.
fn snapshotter(folder: &Path) -> &'static str {
    let mounts = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !mounts.contains("\toverlay\n") {
        return "native";
    }
    let scratch = folder.join("overlay-trial");
    let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(|name| scratch.join(name));
    let made = [&lower, &upper, &work, &merged].into_iter().all(|path| fs::create_dir_all(path).is_ok());
    let options =
        format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
    let mut mount = Command::new("mount");
    mount.args(["-t", "overlay", "overlay", "-o", &options]).arg(&merged);
    let works = made && quiet(&mut mount).is_ok();
    if works {
        drop(quiet(Command::new("umount").arg(&merged)));
    }
    drop(fs::remove_dir_all(scratch));
    if works { "overlayfs" } else { "native" }
}

fn ctr(arguments: &[&str]) -> Result<String> {
    let output = Command::new("ctr").args(["--namespace", "k8s.io"]).args(arguments).output()?;
    if !output.status.success() {
        bail!("ctr {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn quiet(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !status.success() {
        bail!("{command:?}: {status}");
    }
    Ok(())
}
