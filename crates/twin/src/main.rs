//! `twin --minutes N [--seed S]`: compares the real kube-apiserver with Setpoint until the time is up.

use anyhow::{Result, bail};
use clap::Parser;
use futures::future::{Either, select};
use std::{future::poll_fn, path::PathBuf, pin::pin, process::ExitCode, task::Poll, time::Duration};
use tokio::signal::unix::{SignalKind, signal};
use twin::{
    run::{self, Plan, print_line},
    servers::{LoopPrograms, Programs},
    workload,
};

/// Send the same generated requests to the real kube-apiserver and to Setpoint, and compare the responses
#[derive(Debug, Parser)]
struct Options {
    /// How long to search
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// The seed of the stories
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Play only this story of the seed.
    #[arg(long)]
    story: Option<u64>,
    /// Play only stories of this theme.
    #[arg(long)]
    theme: Option<String>,
    /// How many stories run at once
    #[arg(long, default_value_t = 12)]
    at_once: usize,
    /// Compare control loops instead: the real ones and Setpoint's own, each on Setpoint with simulated nodes
    #[arg(long)]
    controllers: bool,
    /// Of control loops, tell every difference at once, without shrinking
    #[arg(long)]
    raw: bool,
    /// Compare the order of members, too.
    #[arg(long)]
    order: bool,
    /// Stop after this many differences
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// The folder of kube-apiserver and etcd; by default $SETPOINT_TOOLS or target/tools/bin.
    #[arg(long)]
    tools: Option<PathBuf>,
    /// The Setpoint binary to compare
    #[arg(long, default_value = "target/release/setpoint")]
    setpoint: PathBuf,
}

/// Resolves on SIGTERM or SIGINT.
fn stopped() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(poll_fn(move |context| {
        let asked = terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready();
        if asked { Poll::Ready(()) } else { Poll::Pending }
    }))
}

fn main() -> Result<ExitCode> {
    let options = Options::parse();
    let tools = options.tools.or_else(|| std::env::var_os("SETPOINT_TOOLS").map(PathBuf::from));
    let tools = tools.unwrap_or_else(|| PathBuf::from("target/tools/bin"));
    let names = if options.controllers {
        ["kube-controller-manager", "kube-scheduler"]
    } else {
        ["kube-apiserver", "etcd"]
    };
    let [first, second] = names.map(|name| tools.join(name));
    for program in [&first, &second] {
        if !program.exists() {
            bail!("{} is missing: run `cargo xtask interop {}`", program.display(), names.join(" "));
        }
    }
    let setpoint = std::path::absolute(&options.setpoint)?;
    let plan = Plan {
        seed: options.seed,
        time: Duration::from_secs_f64(options.minutes * 60.0),
        story: options.story,
        theme: options.theme,
        at_once: if options.story.is_some() { 1 } else { options.at_once },
        with_order: options.order,
        difference_limit: options.limit,
        is_raw: options.raw,
    };
    let tally = world::run(async |world| {
        let stopped = pin!(stopped()?);
        let run = async {
            if options.controllers {
                let programs =
                    LoopPrograms { kube_controller_manager: first, kube_scheduler: second, setpoint };
                return workload::run::run(&world, &programs, plan).await;
            }
            let programs = Programs { kube_apiserver: first, etcd: second, setpoint };
            run::run(&world, &programs, plan).await
        };
        match select(pin!(run), stopped).await {
            Either::Left((tally, _)) => tally,
            // Dropping the run stops the servers.
            Either::Right(_) => bail!("stopped before the end"),
        }
    })??;
    for (reason, count) in &tally.known {
        print_line(&format!("known, {count} times: {reason}"));
    }
    print_line(&format!(
        "{} stories, {} requests to each server with setups and shrinking, {} differences that did not come again\n\
         {} requests compared, {} differences",
        tally.stories,
        twin::play::requests_sent(),
        tally.unsteady,
        tally.compared,
        tally.differences
    ));
    Ok(if tally.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
