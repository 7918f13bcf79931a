//! Control loops, scheduler and a simulated node beside the API server, if they are asked for.

use super::{flags::Flags, serving::Identity};
use crate::up::{
    certificates::Certificates,
    control_loops::{self, ControlLoops},
    controllers::{self, Choice},
    in_process::Destination,
    node_listener::Nodes,
};
use ::controllers::Settings;
use anyhow::{Context, Result};
use futures::FutureExt;
use server::{Config, Server};
use tokio::sync::oneshot;
use world::{Task, World};

/// Which control loops to run; `--setpoint-controllers` has precedence.
const VARIABLE: &str = "SETPOINT_CONTROLLERS";
/// Enough for pods to run.
const NODES: u32 = 1;

/// The control loops that are asked for: none unless the variable or the flag names some.
#[derive(Default)]
pub(super) struct Loops {
    names: Vec<&'static str>,
    nodes: Nodes,
}

/// Control loops that run.
pub(super) struct RunningLoops {
    stop: oneshot::Sender<()>,
    loops: Option<Task<()>>,
    _listener: Option<Task<()>>,
}

impl Loops {
    /// As `--controllers` of `setpoint up`: `*` for all, `name` for one more, `-name` for one less.
    pub(super) fn chosen(flags: &Flags) -> Result<Loops> {
        let of_environment = std::env::var(VARIABLE).unwrap_or_default();
        let list = flags.last("setpoint-controllers").unwrap_or(&of_environment);
        let choices = list.split(',').map(str::trim).map(str::parse).collect::<Result<Vec<Choice>, _>>();
        let choices = choices.with_context(|| format!("--setpoint-controllers or {VARIABLE}: {list}"))?;
        controllers::warn_of_absent(&choices);
        Ok(Loops { names: controllers::chosen(&choices).collect(), nodes: Nodes::default() })
    }

    pub(super) fn is_any(&self) -> bool {
        !self.names.is_empty()
    }

    /// Opens the listener of the node, so that the server reaches it.
    pub(super) async fn prepare(
        mut self,
        world: &World,
        made: Option<&Certificates>,
        config: &mut Config,
    ) -> Result<Loops> {
        if let Some(made) = made.filter(|_| self.is_any()) {
            self.nodes = Nodes::open(world, made, NODES).await?;
            config.kubelets = self.nodes.kubelets.clone();
        }
        Ok(self)
    }

    /// Starts them as clients of the server.
    pub(super) fn start(
        &mut self,
        world: &World,
        server: &Server,
        identity: &Identity,
        made: Option<&Certificates>,
        is_shared: bool,
    ) -> Result<RunningLoops> {
        let (stop, is_stopped) = oneshot::channel::<()>();
        let Some(made) = made.filter(|_| self.is_any()) else {
            return Ok(RunningLoops { stop, loops: None, _listener: None });
        };
        let mut settings = control_loops::settings(server, made)?;
        if let Identity::Files(certificate, _) = identity {
            let root_ca = std::fs::read_to_string(certificate);
            let root_ca = root_ca.with_context(|| format!("cannot read {}", certificate.display()))?;
            settings = Settings { root_ca: Some(root_ca), ..settings };
        }
        let listener = self.nodes.serve(world);
        let names = std::mem::take(&mut self.names);
        let nodes = std::mem::take(&mut self.nodes).settings;
        let loops =
            ControlLoops { clients: Destination::Server(server.clone()), names, nodes, settings, is_shared };
        let loops = world.spawn("control loops", loops.run(world.clone(), is_stopped.map(drop)));
        Ok(RunningLoops { stop, loops: Some(loops), _listener: listener })
    }
}

impl RunningLoops {
    /// Waits for reconciles in progress.
    pub(super) async fn stop(self) -> Result<()> {
        drop(self.stop);
        if let Some(loops) = self.loops {
            loops.await.context("control loops")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_loops_run_only_if_they_are_asked_for() {
        for (argument, name, expected) in [
            ("--v=1", "deployment-controller", false),
            ("--setpoint-controllers=", "deployment-controller", false),
            ("--setpoint-controllers=*", "deployment-controller", true),
            ("--setpoint-controllers=*", "kube-scheduler", true),
            ("--setpoint-controllers=*,-kube-scheduler", "kube-scheduler", false),
            ("--setpoint-controllers=garbage-collector-controller", "kube-scheduler", false),
        ] {
            let flags = Flags::parse([argument.to_owned()]).unwrap();
            let loops = Loops::chosen(&flags).unwrap();
            assert_eq!(loops.names.contains(&name), expected, "{argument}");
        }
        let flags = Flags::parse(["--setpoint-controllers=magic".to_owned()]).unwrap();
        let problem = Loops::chosen(&flags).err().map(|error| format!("{error:#}")).unwrap();
        assert!(problem.ends_with("\"magic\" is not in the list of known controllers"), "{problem}");
    }
}
