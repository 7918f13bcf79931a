//! Runs the examples of client-go against Setpoint: typed and dynamic clients, informers, leases.

use crate::{cluster::Cluster, interop, suites::SuiteTally, tools};
use anyhow::{Context, Result, bail};
use std::{
    fs::{self, File},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// An example, its arguments besides the kubeconfig, and the line that shows success; without one it must
/// exit with 0.
struct Example {
    name: &'static str,
    arguments: &'static [&'static str],
    until: Option<&'static str>,
}

const EXAMPLES: [Example; 5] = [
    Example {
        name: "out-of-cluster-client-configuration",
        arguments: &[],
        until: Some("pods in the cluster"),
    },
    Example { name: "create-update-delete-deployment", arguments: &[], until: None },
    Example { name: "workqueue", arguments: &[], until: Some("Pod default/mypod does not exist anymore") },
    Example {
        name: "leader-election",
        arguments: &["-lease-lock-name=example", "-lease-lock-namespace=default", "-id=one"],
        until: Some("Controller loop..."),
    },
    // Last, so that the garbage collector has removed the deployment of the other example.
    Example { name: "dynamic-create-update-delete-deployment", arguments: &[], until: None },
];

/// The time limit of an example.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(cluster: &Cluster, tally: &mut SuiteTally) -> Result<()> {
    for example in &EXAMPLES {
        match example.run(cluster) {
            Ok(()) => {
                println!("ok  \tk8s.io/client-go/examples/{}", example.name);
                tally.pass();
            }
            Err(error) => tally.fail(format!("client-go {}: {error:#}", example.name)),
        }
    }
    Ok(())
}

impl Example {
    fn run(&self, cluster: &Cluster) -> Result<()> {
        let folder = tools::root()?.join("target/tools/examples");
        fs::create_dir_all(&folder)?;
        let program = folder.join(self.name);
        let package = format!("k8s.io/client-go/examples/{}", self.name);
        let built = interop::go()?.args(["build", "-o"]).arg(&program).arg(package).status()?;
        if !built.success() {
            bail!("it cannot be built");
        }
        let log_path = folder.join(format!("{}.log", self.name));
        let log = File::create(&log_path)?;
        let mut command = Command::new(&program);
        command.arg(format!("-kubeconfig={}", cluster.kubeconfig.display())).args(self.arguments);
        let mut child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()?;
        let begun = Instant::now();
        let outcome = loop {
            let said = fs::read_to_string(&log_path)?;
            if self.until.is_some_and(|until| said.contains(until)) {
                break Ok(());
            }
            if let Some(status) = child.try_wait().context("it cannot be waited for")? {
                let is_well = status.success() && self.until.is_none();
                let last = said.lines().last().unwrap_or_default().to_owned();
                break if is_well { Ok(()) } else { Err(anyhow::anyhow!("{status}: {last}")) };
            }
            if begun.elapsed() > PATIENCE {
                break Err(anyhow::anyhow!("nothing came of it; see {}", log_path.display()));
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        drop(child.kill());
        drop(child.wait());
        outcome
    }
}
