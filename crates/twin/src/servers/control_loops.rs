//! Two Setpoint servers with the same simulated nodes: one with the real control loops, one with its own.

use super::{ISSUER, SERVICE_RANGE, Servers, free_port, token_file};
use crate::workload::NODES;
use anyhow::{Context, Result};
use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};
use world::World;

/// The paths of the programs.
#[derive(Debug)]
pub struct LoopPrograms {
    pub kube_controller_manager: PathBuf,
    pub kube_scheduler: PathBuf,
    pub setpoint: PathBuf,
}

impl Servers {
    /// Starts both servers, with the real control loops beside the first.
    pub async fn start_control_loops(world: &World, programs: &LoopPrograms) -> Result<Servers> {
        let scratch = tempfile::tempdir().context("cannot make a directory for the servers")?;
        fs::write(scratch.path().join("tokens.csv"), token_file())?;
        let (real, ours) = (free_port()?, free_port()?);
        let mut servers = Servers { real, ours, children: Vec::new(), scratch };
        let folder = servers.scratch.path().to_owned();
        let mut command = setpoint(&programs.setpoint, &folder, "real", real);
        command.arg("--controllers=");
        servers.spawn("setpoint-real", command)?;
        servers.spawn("setpoint-ours", setpoint(&programs.setpoint, &folder, "ours", ours))?;
        servers.wait_until_ready(world).await?;
        servers.spawn("kube-controller-manager", manager(&programs.kube_controller_manager, &folder))?;
        let mut scheduler = Command::new(&programs.kube_scheduler);
        scheduler.arg("--kubeconfig").arg(folder.join("real/kubeconfig"));
        scheduler.args(["--leader-elect=false", "--secure-port=0"]).env("HOME", &folder);
        servers.spawn("kube-scheduler", scheduler)?;
        Ok(servers)
    }
}

fn setpoint(program: &Path, folder: &Path, name: &str, address: SocketAddr) -> Command {
    let mut command = Command::new(program);
    command.args(["up", "--store", "memory", "--listen", &address.to_string()]);
    command.args(["--nodes", &NODES.to_string(), "--service-cluster-ip-range", SERVICE_RANGE]);
    command.args(["--service-account-issuer", ISSUER]);
    command.arg("--token-auth-file").arg(folder.join("tokens.csv"));
    command.arg("--data-dir").arg(folder.join(name));
    command
}

fn manager(program: &Path, folder: &Path) -> Command {
    let data = folder.join("real");
    let mut command = Command::new(program);
    command.arg("--kubeconfig").arg(data.join("kubeconfig"));
    command.arg("--service-account-private-key-file").arg(data.join("pki/sa.key"));
    command.arg("--root-ca-file").arg(data.join("pki/ca.crt"));
    command.args(["--use-service-account-credentials", "--leader-elect=false", "--secure-port=0"]);
    // More than the defaults: several stories are played at once.
    command.args(["--kube-api-qps=500", "--kube-api-burst=1000"]).env("HOME", folder);
    command
}
