//! A control plane that ends with its test.

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use std::{env, process::Stdio};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

pub struct ControlPlane {
    client: Client,
    _program: Child,
    _output: Lines<BufReader<ChildStdout>>,
    _folder: TempDir,
}

impl ControlPlane {
    /// Starts control loops, scheduler and one simulated node; returns when they are ready.
    pub async fn start() -> ControlPlane {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let setpoint = env::var_os("SETPOINT").unwrap_or_else(|| "setpoint".into());
        let mut command = Command::new(setpoint);
        command.args(["up", "--ephemeral", "--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path());
        command.stdout(Stdio::piped()).kill_on_drop(true);
        let mut program = command.spawn().expect("setpoint on PATH, or its path in SETPOINT");
        let mut output = BufReader::new(program.stdout.take().expect("its output")).lines();
        let kubeconfig = loop {
            let line = output.next_line().await.expect("its output").expect("setpoint becomes ready");
            if let Some((_, kubeconfig)) =
                line.strip_prefix("ready ").and_then(|it| it.split_once("kubeconfig="))
            {
                break Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
            }
        };
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options);
        let client = Client::try_from(config.await.expect("a kubeconfig")).expect("a client");
        ControlPlane { client, _program: program, _output: output, _folder: folder }
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }
}
