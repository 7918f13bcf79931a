//! Measures one or two servers in turns, so that other load of the machine affects both alike.

use super::{
    BenchOptions,
    fan_out::{WatchForm, fan_out},
    kubeconfig::Target,
    latency::Latencies,
    measure::{Load, Measured, measure},
    operation::Operation,
    own_server::OwnServer,
    place::Place,
};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::{path::Path, sync::Arc, time::Duration};
use world::World;

/// How often our own server is started; the median counts.
const COLD_STARTS: usize = 3;

/// A server that is measured.
pub(super) struct Contestant {
    pub(super) place: Arc<Place>,
    pub(super) version: String,
    pub(super) cold_start: Option<Duration>,
    /// Rounds of each line of the report.
    pub(super) lines: Vec<Vec<Measured>>,
    pub(super) fan_out: Latencies,
    _server: Option<OwnServer>,
}

/// A number of clients in a round.
struct Level {
    clients: usize,
    /// The index of its first line.
    first_line: usize,
    edition: u64,
    span: Duration,
}

impl Contestant {
    pub(super) async fn reach(world: &World, path: &Path, objects: usize) -> Result<Contestant> {
        let place = Arc::new(Place::new(world, Target::read(path)?, objects));
        let version = place.version(world).await?;
        Ok(Contestant {
            place,
            version,
            cold_start: None,
            lines: Vec::new(),
            fan_out: Latencies::default(),
            _server: None,
        })
    }

    /// Starts several servers, and measures the last.
    pub(super) async fn start(world: &World, objects: usize) -> Result<Contestant> {
        let setpoint = std::env::current_exe().context("cannot find my own binary")?;
        let mut times = Vec::new();
        let mut server = None;
        for _ in 0..COLD_STARTS {
            drop(server.take());
            let (started, took) = OwnServer::start(world, &setpoint, &[]).await?;
            server = Some(started);
            times.push(took);
        }
        times.sort();
        let server = server.context("at least one was started")?;
        let reached = Contestant::reach(world, &server.kubeconfig, objects).await?;
        let cold_start = times.get(times.len() / 2).copied();
        Ok(Contestant { cold_start, _server: Some(server), ..reached })
    }
}

pub(super) async fn compete(
    world: &World,
    options: &BenchOptions,
    contestants: &mut [Contestant],
) -> Result<()> {
    let operations = options.operations();
    let lines = options.clients.len() * operations.len();
    let watches = usize::from(options.watchers > 0);
    let steps = contestants.len() * (1 + options.rounds as usize * (lines + watches));
    let progress = progress(steps as u64);
    for contestant in contestants.iter_mut() {
        progress.set_message(format!("filling {}", contestant.place.target.url));
        contestant.place.prepare(world).await?;
        contestant.lines.resize_with(lines, Vec::new);
        progress.inc(1);
    }
    let span = Duration::from_secs_f64(options.seconds / f64::from(options.rounds));
    for round in 0..options.rounds {
        for (at, clients) in options.clients.iter().enumerate() {
            let edition = u64::from(round) * options.clients.len() as u64 + at as u64 + 1;
            let first_line = at * operations.len();
            let level = Level { clients: usize::from(*clients), first_line, edition, span };
            level.run(world, &operations, contestants, &progress).await?;
        }
        if options.watchers > 0 {
            for contestant in contestants.iter_mut() {
                progress.set_message(format!("fan-out to {} watchers", options.watchers));
                let last = fan_out(
                    world,
                    &contestant.place,
                    usize::from(options.watchers),
                    WatchForm::default(),
                    span,
                )
                .await;
                contestant.fan_out.merge(&last.context("fan-out")?);
                progress.inc(1);
            }
        }
        // The one that came first comes last now.
        contestants.reverse();
    }
    if options.rounds % 2 == 1 {
        contestants.reverse();
    }
    progress.finish_and_clear();
    Ok(())
}

impl Level {
    /// Every operation, on each server in turn.
    async fn run(
        &self,
        world: &World,
        operations: &[Operation],
        contestants: &mut [Contestant],
        progress: &ProgressBar,
    ) -> Result<()> {
        let Level { clients, first_line, edition, span } = *self;
        let mut created = vec![Vec::new(); contestants.len()];
        for (at, operation) in operations.iter().copied().enumerate() {
            for (contestant, created) in contestants.iter_mut().zip(&mut created) {
                progress.set_message(format!("{}, {clients} clients", operation.name()));
                let most = (operation == Operation::Delete).then(|| created.clone());
                let load = Load { operation, clients, span, edition, most };
                let measured = measure(world, &contestant.place, &load).await;
                let measured = measured.with_context(|| operation.name().to_owned())?;
                match operation {
                    Operation::Create if operations.contains(&Operation::Delete) => {
                        created.clone_from(&measured.done);
                    }
                    Operation::Create | Operation::Delete => contestant.place.clear(world).await?,
                    _ => {}
                }
                contestant.lines[first_line + at].push(measured);
                progress.inc(1);
            }
        }
        Ok(())
    }
}

/// Only on a terminal: indicatif hides it elsewhere.
fn progress(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
