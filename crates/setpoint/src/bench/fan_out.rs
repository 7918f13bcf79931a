//! Many watchers, one write: how long until the last of them has it.

use super::{
    client::{Client, connect},
    latency::Latencies,
    operation::{Operation, Seat},
    place::Place,
};
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http2};
use hyper_util::rt::TokioExecutor;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::mpsc;
use world::{Moment, Task, World};

/// Watches that share a connection, as those of one client do. Kubernetes allows a hundred streams,
/// and a process is often allowed little more than a thousand sockets.
const PER_CONNECTION: usize = 50;
/// A write that has not reached everybody by then never will.
const PATIENCE: Duration = Duration::from_secs(60);
/// Writes of one measurement: enough for percentiles.
const MOST_WRITES: u64 = 1000;
const LEAST_WRITES: u64 = 3;

/// Watches that are open, and what they tell.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// Dropping them ends the watches.
    _tasks: Vec<Task<()>>,
    /// When the last one had the latest write.
    complete: mpsc::Receiver<Result<Moment>>,
}

impl Watchers {
    pub(crate) async fn open(world: &World, place: &Place, count: usize) -> Result<Watchers> {
        let revision = place.revision(world).await?;
        let (sender, complete) = mpsc::channel(count.max(1));
        let arrived = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for first in (0..count).step_by(PER_CONNECTION) {
            let stream = connect(world, &place.target, "h2").await?;
            let (mut requests, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            // How it ends, the streams on it tell.
            tasks.push(world.spawn("connection", async move { drop(connection.await) }));
            for _ in first..count.min(first + PER_CONNECTION) {
                let body = watch(place, &mut requests, &revision).await?;
                let watcher = Watcher {
                    world: world.clone(),
                    watchers: count,
                    arrived: Arc::clone(&arrived),
                    complete: sender.clone(),
                };
                tasks.push(world.spawn("watcher", watcher.follow(body)));
            }
        }
        Ok(Watchers { _tasks: tasks, complete })
    }
}

async fn watch(
    place: &Place,
    requests: &mut http2::SendRequest<Full<Bytes>>,
    revision: &str,
) -> Result<Incoming> {
    let path = format!("{}?watch=true&timeoutSeconds=600&resourceVersion={revision}", place.path(""));
    let request = place.target.over_http2(place.request(Method::GET, &path, ""));
    requests.ready().await?;
    let response = requests.send_request(request).await.context("cannot open a watch")?;
    if !response.status().is_success() {
        bail!("a watch is answered with {}", response.status());
    }
    Ok(response.into_body())
}

struct Watcher {
    world: World,
    watchers: usize,
    arrived: Arc<AtomicUsize>,
    complete: mpsc::Sender<Result<Moment>>,
}

impl Watcher {
    async fn follow(self, mut body: Incoming) {
        let mut begins_line = true;
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            if begins_line && data.starts_with(br#"{"type":"ERROR""#) {
                break;
            }
            begins_line = data.ends_with(b"\n");
            // An event is one line, and a write is one event.
            for _ in data.iter().filter(|byte| **byte == b'\n') {
                let arrived = self.arrived.fetch_add(1, Ordering::Relaxed) + 1;
                if arrived.is_multiple_of(self.watchers) {
                    drop(self.complete.send(Ok(self.world.now())).await);
                }
            }
        }
        drop(self.complete.send(Err(anyhow!("a watch ended early"))).await);
    }
}

/// Writes again and again while so many watch, and measures from sending a write until the last watcher has it.
pub(crate) async fn fan_out(
    world: &World,
    place: &Place,
    watchers: usize,
    span: Duration,
) -> Result<Latencies> {
    let mut open = Watchers::open(world, place, watchers).await?;
    let mut client = Client::connect(world, &place.target).await?;
    let seat = Seat { client: 0, clients: 1, edition: world.draw() >> 32 };
    let mut latencies = Latencies::default();
    let end = world.now() + span;
    for number in 0..MOST_WRITES {
        if number >= LEAST_WRITES && world.now() >= end {
            break;
        }
        let start = world.now();
        client.ask(world, seat.request(place, Operation::Update, number)).await?;
        let complete = world.timeout(PATIENCE, open.complete.recv()).await?;
        let complete = complete.context("no watch is left")??;
        latencies.record(complete.since(start));
    }
    Ok(latencies)
}
