//! Many watchers, one write: the time until the last of them has it.

use super::{
    client::{Client, connect},
    latency::Latencies,
    operation::{Operation, Seat},
    place::Place,
};
use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http::{HeaderValue, Method, header};
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
/// A write that has not reached all watchers by then never will.
const PATIENCE: Duration = Duration::from_secs(60);
/// Writes of one measurement: enough for percentiles.
const MOST_WRITES: u64 = 1000;
const LEAST_WRITES: u64 = 3;

/// What watchers ask for, and in which form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchForm {
    /// Selectors, as more of the query.
    pub(crate) query: &'static str,
    pub(crate) accept: &'static str,
}

impl Default for WatchForm {
    fn default() -> WatchForm {
        WatchForm { query: "", accept: "application/json" }
    }
}

/// Counts the events in a stream that arrives in pieces of any size.
#[derive(Debug)]
enum Counter {
    /// An event is a line.
    Lines,
    /// An event is a length of four bytes and that many bytes.
    Frames { length: Vec<u8>, left: usize },
}

impl Counter {
    fn new(form: WatchForm) -> Counter {
        match form.accept.contains("protobuf") {
            true => Counter::Frames { length: Vec::new(), left: 0 },
            false => Counter::Lines,
        }
    }

    fn count(&mut self, data: &[u8]) -> usize {
        let Counter::Frames { length, left } = self else {
            return data.iter().filter(|byte| **byte == b'\n').count();
        };
        let mut count = 0;
        for byte in data {
            if *left > 0 {
                *left -= 1;
                count += usize::from(*left == 0);
                continue;
            }
            length.push(*byte);
            if let Ok(whole) = <[u8; 4]>::try_from(length.as_slice()) {
                *left = u32::from_be_bytes(whole) as usize;
                length.clear();
            }
        }
        count
    }
}

/// Open watches, and their progress.
#[derive(Debug)]
pub(crate) struct Watchers {
    /// Dropping them ends the watches.
    _tasks: Vec<Task<()>>,
    /// When the last one had the latest write.
    complete: mpsc::Receiver<Result<Moment>>,
}

impl Watchers {
    pub(crate) async fn open(
        world: &World,
        place: &Place,
        count: usize,
        form: WatchForm,
    ) -> Result<Watchers> {
        let revision = place.revision(world).await?;
        let (sender, complete) = mpsc::channel(count.max(1));
        let arrived = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for first in (0..count).step_by(PER_CONNECTION) {
            let stream = connect(world, &place.target, "h2").await?;
            let (mut requests, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            // Its streams report how it ends.
            tasks.push(world.spawn("connection", async move { drop(connection.await) }));
            for _ in first..count.min(first + PER_CONNECTION) {
                let body = watch(place, &mut requests, &revision, form).await?;
                let watcher = Watcher {
                    world: world.clone(),
                    watchers: count,
                    arrived: Arc::clone(&arrived),
                    complete: sender.clone(),
                    counter: Counter::new(form),
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
    form: WatchForm,
) -> Result<Incoming> {
    let (path, query) = (place.path(""), form.query);
    let path = format!("{path}?watch=true&timeoutSeconds=600&resourceVersion={revision}{query}");
    let mut request = place.target.over_http2(place.request(Method::GET, &path, ""));
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static(form.accept));
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
    counter: Counter,
}

impl Watcher {
    async fn follow(mut self, mut body: Incoming) {
        let mut begins_line = true;
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(data) = frame.into_data() else { continue };
            if begins_line && data.starts_with(br#"{"type":"ERROR""#) {
                break;
            }
            begins_line = data.ends_with(b"\n");
            // A write is one event.
            for _ in 0..self.counter.count(&data) {
                let arrived = self.arrived.fetch_add(1, Ordering::Relaxed) + 1;
                if arrived.is_multiple_of(self.watchers) {
                    drop(self.complete.send(Ok(self.world.now())).await);
                }
            }
        }
        drop(self.complete.send(Err(anyhow!("a watch ended early"))).await);
    }
}

/// Writes repeatedly while many watch, and measures from sending a write until the last watcher has it.
pub(crate) async fn fan_out(
    world: &World,
    place: &Place,
    watchers: usize,
    form: WatchForm,
    span: Duration,
) -> Result<Latencies> {
    let mut open = Watchers::open(world, place, watchers, form).await?;
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
