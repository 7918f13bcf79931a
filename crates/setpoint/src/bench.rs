//! `setpoint bench`: measures any Kubernetes API server, alone or next to another.

pub(crate) mod client;
mod contest;
mod fan_out;
pub(crate) mod kubeconfig;
mod latency;
mod measure;
mod operation;
mod own_server;
mod place;
mod report;
mod trust;

use anyhow::{Context, Result, bail};
use contest::{Contestant, compete};
use futures::{
    future::{Either, select},
    pin_mut,
};
use operation::Operation;
use place::OBJECT_BYTES;
use report::{Line, Report, ServerReport};
use std::{
    io::Write,
    path::{Path, PathBuf},
};
use tokio::signal::unix::{Signal, SignalKind, signal};
use world::World;

/// Measure a Kubernetes API server, or two side by side.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  setpoint bench                               a server of its own
  setpoint bench --kubeconfig a.kubeconfig --against b.kubeconfig
  setpoint bench --operations get,list --clients 8 --seconds 1")]
pub(crate) struct BenchOptions {
    /// The server to measure; by default one is started
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// A second server, measured in turns with the first
    #[arg(long, value_name = "KUBECONFIG")]
    against: Option<PathBuf>,
    /// Where to write the numbers as JSON; - is standard output, without the table
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Numbers of concurrent clients
    #[arg(long, value_delimiter = ',', default_value = "1,8,64", value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: Vec<u16>,
    /// Which operations; delete needs create
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Operation::ALL)]
    operations: Vec<Operation>,
    /// How long each operation runs at each number of clients, over all rounds
    #[arg(long, default_value_t = 3.0, value_name = "SECONDS", value_parser = seconds)]
    seconds: f64,
    /// In how many rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Objects that exist, and that a list returns
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    objects: u32,
    /// Watchers that wait for each write of the fan-out; 0 skips it
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u16).range(0..=10_000))]
    watchers: u16,
}

/// A day is longer than any useful measurement.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("expected a number above 0".to_owned()),
    }
}

impl BenchOptions {
    /// The selected operations, in the order in which they run.
    fn operations(&self) -> Vec<Operation> {
        Operation::ALL.into_iter().filter(|operation| self.operations.contains(operation)).collect()
    }
}

pub(crate) async fn run(world: &World, options: BenchOptions) -> Result<()> {
    let mut interrupts = Interrupts::new()?;
    let mut contestants = Vec::new();
    let outcome = {
        let work = async {
            let objects = options.objects as usize;
            contestants.push(match &options.kubeconfig {
                Some(path) => Contestant::reach(world, path, objects).await?,
                None => Contestant::start(world, objects).await?,
            });
            if let Some(path) = &options.against {
                contestants.push(Contestant::reach(world, path, objects).await?);
            }
            compete(world, &options, &mut contestants).await
        };
        let interrupted = interrupts.next();
        pin_mut!(work, interrupted);
        match select(work, interrupted).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(anyhow::anyhow!("interrupted")),
        }
    };
    // Before the cleanup: a failed cleanup must not lose the numbers.
    let printed = match &outcome {
        Ok(()) => print_report(&options, &report(&options, &contestants)),
        Err(_) => Ok(()),
    };
    let cleaned = {
        let clean = clean_up(world, &contestants);
        let impatient = interrupts.next();
        pin_mut!(clean, impatient);
        match select(clean, impatient).await {
            Either::Left((cleaned, _)) => cleaned,
            Either::Right(_) => bail!("interrupted twice: namespaces setpoint-bench-… may be left"),
        }
    };
    outcome.and(printed).and(cleaned)
}

async fn clean_up(world: &World, contestants: &[Contestant]) -> Result<()> {
    let mut outcome = Ok(());
    for contestant in contestants {
        let removed = contestant.place.remove(world).await;
        outcome =
            outcome.and(removed.with_context(|| format!("cleaning up {}", contestant.place.target.url)));
    }
    outcome
}

fn report(options: &BenchOptions, contestants: &[Contestant]) -> Report {
    let operations = options.operations();
    let servers: Vec<_> = contestants
        .iter()
        .map(|contestant| {
            let what = options
                .clients
                .iter()
                .flat_map(|clients| operations.iter().map(|operation| (*operation, usize::from(*clients))));
            let lines = what.zip(&contestant.lines);
            ServerReport {
                url: contestant.place.target.url.clone(),
                version: contestant.version.clone(),
                cold_start_milliseconds: contestant.cold_start.map(report::milliseconds),
                measurements: lines
                    .map(|((operation, clients), rounds)| Line::new(operation, clients, rounds))
                    .collect(),
                fan_out: (options.watchers > 0).then(|| contestant.fan_out.percentiles()),
            }
        })
        .collect();
    Report {
        object_bytes: OBJECT_BYTES,
        listed_objects: options.objects as usize,
        watchers: usize::from(options.watchers),
        rounds: options.rounds,
        seconds: options.seconds,
        ratios: report::ratios(&servers),
        servers,
    }
}

fn print_report(options: &BenchOptions, report: &Report) -> Result<()> {
    let json = || Ok::<_, anyhow::Error>(format!("{}\n", serde_json::to_string_pretty(report)?));
    let mut out = std::io::stdout();
    match options.json.as_deref() {
        Some(path) if path == Path::new("-") => return Ok(out.write_all(json()?.as_bytes())?),
        Some(path) => {
            std::fs::write(path, json()?).with_context(|| format!("cannot write {}", path.display()))?;
        }
        None => {}
    }
    Ok(out.write_all(report.text().as_bytes())?)
}

/// Signals to stop, from the terminal or from a supervisor.
struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    fn new() -> Result<Interrupts> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Interrupts {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        let (interrupt, terminate) = (self.interrupt.recv(), self.terminate.recv());
        pin_mut!(interrupt, terminate);
        select(interrupt, terminate).await;
    }
}
