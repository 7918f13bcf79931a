//! A fresh control plane for one operator: `setpoint up` as a process of its own.

use super::child::ChildProcess;
use crate::{
    scaffold::{project::Project, toolchain::SCRATCH},
    up::print_line,
};
use anyhow::{Context, Result, bail};
use std::{
    fs,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

/// A control plane that keeps nothing; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct ControlPlane {
    pub(super) kubeconfig: PathBuf,
    _process: ChildProcess,
}

impl ControlPlane {
    /// Starts it on a free port, and waits until it is ready. Its kubeconfig is below the project.
    pub(super) fn start(project: &Project) -> Result<ControlPlane> {
        let folder = project.root.join(SCRATCH);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(["up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&folder);
        let mut process = ChildProcess::start(command.stdout(Stdio::piped()))?;
        let output = process.output().context("the output of the control plane")?;
        for line in BufReader::new(output).lines() {
            let line = line.context("cannot read what the control plane prints")?;
            let Some(ready) = line.strip_prefix("ready ") else { continue };
            let (url, kubeconfig) =
                ready.split_once(" kubeconfig=").context("the control plane's kubeconfig")?;
            print_line(&format!("a fresh control plane is up at {url}"));
            return Ok(ControlPlane { kubeconfig: PathBuf::from(kubeconfig), _process: process });
        }
        bail!("the control plane has ended before it was ready: see above")
    }
}
