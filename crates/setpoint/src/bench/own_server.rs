//! Our own control plane to measure, on a free port, with a temporary folder.

use anyhow::{Context, Result, bail};
use std::{
    io::{BufRead, BufReader},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use world::World;

/// `setpoint up`, stopped when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnServer {
    pub(crate) process: Child,
    pub(crate) kubeconfig: PathBuf,
    _folder: TempDir,
}

impl OwnServer {
    /// Starts the binary `setpoint` with these arguments of `up` beside its own; returns how long it took until it was
    /// ready.
    pub(crate) async fn start(
        world: &World,
        setpoint: &Path,
        more: &[&str],
    ) -> Result<(OwnServer, Duration)> {
        let folder = tempfile::tempdir().context("cannot make a folder for its data")?;
        let begin = world.now();
        let mut command = Command::new(setpoint);
        command.args(["up", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path()).args(more);
        // We handle Ctrl-C in the terminal: first we clean up, then the server stops.
        command.stdin(Stdio::null()).stdout(Stdio::piped()).process_group(0);
        let mut process = command.spawn().context("cannot start setpoint up")?;
        let output = process.stdout.take();
        let mut server = OwnServer { process, kubeconfig: PathBuf::new(), _folder: folder };
        let output = BufReader::new(output.context("its output is a pipe")?);
        let ready = world.blocking(move || {
            let mut lines = output.lines().map_while(Result::ok);
            lines.find_map(|line| Some(line.strip_prefix("ready ")?.split_once(" kubeconfig=")?.1.to_owned()))
        });
        let Some(kubeconfig) = ready.await else { bail!("setpoint up ended before it was ready") };
        server.kubeconfig = kubeconfig.into();
        Ok((server, world.now().since(begin)))
    }
}

impl Drop for OwnServer {
    /// Killed: its data is removed too, so there is nothing to close properly.
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}
