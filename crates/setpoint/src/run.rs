//! `setpoint run`: runs the operator of a project on a fresh control plane, and again when its code changes.

mod child;
mod control_plane;

use crate::{
    scaffold::{
        cluster_objects,
        project::{Language, Project},
        toolchain::{last_change, succeeds},
    },
    up::{self, print_line},
};
use anyhow::{Context, Result, bail};
use child::ChildProcess;
use control_plane::ControlPlane;
use futures::{
    FutureExt,
    future::{Either, Shared, select},
};
use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    pin::pin,
    process::Command,
    time::Duration,
};
use world::World;

/// How often files and the operator's process are looked at. Modification times are compared instead of asking the
/// system for events: that also works for folders of containers, virtual machines and networks, and a look at the few
/// files of a project takes well below a millisecond.
const LOOK: Duration = Duration::from_millis(200);
/// How long the samples may take with `--once`.
const RECONCILE_LIMIT: Duration = Duration::from_secs(60);

/// Run the operator of a project.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint run                              on a fresh control plane; Ctrl-C ends both
  setpoint run --kubeconfig ~/.kube/config  on this cluster, without webhooks
  setpoint run --once                       applies the samples, waits for their status, and ends")]
pub(crate) struct RunOptions {
    /// Run it against this cluster instead of a fresh control plane
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Apply config/samples, wait until the operator has written their status, and end
    #[arg(long)]
    once: bool,
}

/// Ctrl-C or SIGTERM.
type Stop = Shared<futures::future::BoxFuture<'static, ()>>;

/// Where the operator runs.
struct OperatorRun {
    project: Project,
    kubeconfig: PathBuf,
    /// The control plane, if it was started for this.
    control_plane: Option<ControlPlane>,
}

pub(crate) async fn run(world: &World, options: RunOptions) -> Result<()> {
    // First, so that no signal is missed from here on.
    let stop: Stop = up::stopped()?.boxed().shared();
    let project = Project::find()?;
    let mut seen = last_change(&project.sources());
    print_line("building the operator");
    while !succeeds(&mut project.build_command())? {
        if stop.clone().now_or_never().is_some() {
            return Ok(());
        }
        if options.once {
            bail!("the operator does not build: see above");
        }
        print_line("it does not build; waiting for a change");
        if !changed(world, &project, &mut seen, &stop).await {
            return Ok(());
        }
    }
    let control_plane = match &options.kubeconfig {
        Some(_) => None,
        None => Some(ControlPlane::start(&project)?),
    };
    let own = control_plane.as_ref().map(|it| it.kubeconfig.clone());
    let kubeconfig = options.kubeconfig.clone().or(own).context("a kubeconfig")?;
    let operator_run = OperatorRun { project, kubeconfig, control_plane };
    operator_run.install(world).await?;
    if options.once { operator_run.once(world).await } else { operator_run.watch(world, seen, &stop).await }
}

/// Waits for a change of the sources; `false` if it should stop instead.
async fn changed(world: &World, project: &Project, seen: &mut SourceState, stop: &Stop) -> bool {
    loop {
        if let Either::Right(_) = select(pin!(world.sleep(LOOK)), stop.clone()).await {
            return false;
        }
        let now = last_change(&project.sources());
        if now != *seen {
            *seen = now;
            return true;
        }
    }
}

/// See [`last_change`].
type SourceState = (Option<std::time::SystemTime>, usize);

impl OperatorRun {
    async fn install(&self, world: &World) -> Result<()> {
        let client = cluster_objects::client(Some(&self.kubeconfig)).await?;
        let definitions = self.project.definitions()?;
        cluster_objects::install(world, &client, &definitions).await?;
        for definition in &definitions {
            print_line(&format!("installed {}", definition.name()));
        }
        Ok(())
    }

    fn start(&self) -> Result<ChildProcess> {
        let mut command = self.project.run_command();
        command.env("KUBECONFIG", &self.kubeconfig);
        match self.project.lang {
            Language::Rust => self.rust_environment(&mut command)?,
            // The certificates of its webhooks would come from a cluster.
            Language::Go => drop(command.env("ENABLE_WEBHOOKS", "false")),
        }
        ChildProcess::start(&mut command)
    }

    fn rust_environment(&self, command: &mut Command) -> Result<()> {
        command.env("OPERATOR_NAMESPACE", "default").env("OPERATOR_PROBES", "127.0.0.1:0");
        if self.control_plane.is_none() {
            // A cluster elsewhere does not reach this machine.
            command.env("OPERATOR_WEBHOOKS", "off");
            return Ok(());
        }
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.context("there is no free port for webhooks")?;
        command.env("OPERATOR_WEBHOOKS", address.to_string());
        command.env("OPERATOR_WEBHOOK_URL", format!("https://{address}"));
        Ok(())
    }

    /// Runs the operator until its samples have a status.
    async fn once(&self, world: &World) -> Result<()> {
        let mut operator = self.start()?;
        let outcome = {
            let samples = pin!(self.reconcile_samples(world));
            let ended = pin!(operator_ended(world, &mut operator));
            match select(samples, ended).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right((ended, _)) => Err(ended),
            }
        };
        operator.stop()?;
        outcome?;
        print_line("done: the operator has reconciled all samples");
        Ok(())
    }

    async fn reconcile_samples(&self, world: &World) -> Result<()> {
        let client = cluster_objects::client(Some(&self.kubeconfig)).await?;
        for sample in self.project.samples()? {
            let objects = cluster_objects::apply(&client, &sample).await?;
            let begun = world.now();
            print_line(&format!("applied   {} {:?}", sample.kind(), sample.name()));
            if self.has_controller(sample.kind()) {
                cluster_objects::reconciled(world, &objects, sample.name(), RECONCILE_LIMIT).await?;
                let took = world.now().since(begun).as_millis();
                print_line(&format!("reconciled {} {:?} in {took} ms", sample.kind(), sample.name()));
            }
        }
        Ok(())
    }

    fn has_controller(&self, kind: &str) -> bool {
        self.project.apis.iter().any(|api| api.kind == kind && api.controller)
    }

    /// Runs the operator, and builds and starts it again at each change, until Ctrl-C.
    async fn watch(&self, world: &World, mut seen: SourceState, stop: &Stop) -> Result<()> {
        self.welcome();
        let mut operator = Some(self.start()?);
        loop {
            if let Either::Right(_) = select(pin!(world.sleep(LOOK)), stop.clone()).await {
                print_line("stopping");
                return operator.map_or(Ok(()), ChildProcess::stop);
            }
            if let Some(status) = operator.as_mut().map(ChildProcess::ended).transpose()?.flatten() {
                print_line(&format!("the operator has ended ({status}); waiting for a change"));
                operator = None;
            }
            let now = last_change(&self.project.sources());
            if now == seen {
                continue;
            }
            seen = now;
            print_line("a file has changed: building");
            if !succeeds(&mut self.project.build_command())? {
                print_line("it does not build; the operator of before goes on");
                continue;
            }
            operator.take().map_or(Ok(()), ChildProcess::stop)?;
            self.install(world).await?;
            operator = Some(self.start()?);
            print_line("the operator runs again");
        }
    }

    fn welcome(&self) {
        let kubeconfig = self.kubeconfig.display();
        print_line(&format!(
            "\
the operator runs; it is built and started again when a file changes

  try   kubectl --kubeconfig {kubeconfig} apply -f {}
  stop  Ctrl-C
",
            relative(&self.project.root.join("config/samples")).display()
        ));
        if self.control_plane.is_none()
            && self.project.apis.iter().any(|it| it.webhook || it.versions.len() > 1)
        {
            print_line("webhooks are off: a cluster elsewhere does not reach this machine\n");
        }
    }
}

/// Waits until the operator ends by itself, which is an error.
async fn operator_ended(world: &World, operator: &mut ChildProcess) -> anyhow::Error {
    loop {
        match operator.ended() {
            Ok(None) => world.sleep(LOOK).await,
            Ok(Some(status)) => {
                return anyhow::anyhow!("the operator has ended by itself ({status}): see its log above");
            }
            Err(error) => return error,
        }
    }
}

/// A path as seen from the present folder.
fn relative(path: &Path) -> PathBuf {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    below.unwrap_or_else(|| path.to_owned())
}
