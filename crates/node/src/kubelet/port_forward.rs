//! Port forwarding: the streams of a client, in pairs, and the ports of a pod at their other end.
//!
//! For each connection that a client accepts it opens two streams: one for the data of both directions, and one on
//! which it learns of errors.

use super::{
    IDLE,
    ports::{self, Ports},
    spdy::{self, Framer, Headers, Replies, ResetCode, SpdyFrame},
    tunnel::{Outgoing, Source, TunnelEvent},
};
use futures::future::{Either, select};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf},
    sync::mpsc,
};
use world::{Moment, Task, World};

/// The protocol within the streams.
pub(super) const PROTOCOL: &str = "portforward.k8s.io";
/// The same through a WebSocket, whose messages are pieces of a SPDY connection.
pub(super) const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";
/// The upgrade of clients that speak SPDY themselves.
pub(super) const SPDY: &str = "SPDY/3.1";

/// How long a stream may wait for the other one of its pair.
// Kubernetes: the streamCreationTimeout of kubelets.
const PAIRING: Duration = Duration::from_secs(30);
/// How long the end of a connection may take.
const FAREWELL: Duration = Duration::from_secs(5);
/// What the streams of one client may hold, in bytes.
const MAX_HELD: usize = 4 << 20;
/// Pairs of streams of one client, each counted as the connection to a port that it becomes.
const MAX_PAIRS: usize = MAX_HELD / ports::MAX_HELD;
/// The name of a pair, in bytes: clients count.
const MAX_PAIR_NAME: usize = 64;
/// Frames that wait for a client that reads slowly.
const MAX_WAITING: usize = 16;

pub(super) struct PortForward {
    pub(super) world: World,
    pub(super) pod: Arc<Pod>,
    pub(super) upgrade: OnUpgrade,
    pub(super) is_web_socket: bool,
}

impl PortForward {
    pub(super) async fn run(self) {
        let PortForward { world, pod, upgrade, is_web_socket } = self;
        let Ok(upgraded) = upgrade.await else { return };
        let (source, sink) = super::tunnel::split(TokioIo::new(upgraded), is_web_socket);
        let (out, waiting) = mpsc::channel(MAX_WAITING);
        let writer = world.spawn("writer of a port forwarding", sink.run(waiting));
        let streams = ForwardStreams {
            world: world.clone(),
            ports: Ports::of(&pod),
            pod,
            out,
            open: BTreeMap::new(),
            single: BTreeMap::new(),
            replies: Replies::default(),
        };
        ForwardSession { world: world.clone(), source, framer: Framer::default(), streams }.run().await;
        // The writer ends once it has written what the streams have left behind, or the client reads no more.
        let _ = world.timeout(FAREWELL, writer).await;
    }
}

struct ForwardSession {
    world: World,
    source: Source<ReadHalf<TokioIo<Upgraded>>>,
    framer: Framer,
    streams: ForwardStreams,
}

/// The client has left, or must.
struct Over;

impl ForwardSession {
    async fn run(mut self) {
        let mut idle_at = self.world.now() + IDLE;
        loop {
            let wake = self.streams.first_timeout().map_or(idle_at, |timeout| timeout.min(idle_at));
            let piece = {
                let (piece, time) = (pin!(self.source.next()), pin!(self.world.sleep_until(wake)));
                match select(piece, time).await {
                    Either::Left((piece, _)) => Some(piece),
                    Either::Right(_) => None,
                }
            };
            let carried_on = match piece {
                None if self.world.now() >= idle_at => return,
                None => self.streams.give_up_singles().await,
                Some(TunnelEvent::End) => return,
                Some(TunnelEvent::Ping(payload)) => self.streams.send(Outgoing::Pong(payload)).await,
                Some(TunnelEvent::Bytes(bytes)) => {
                    idle_at = self.world.now() + IDLE;
                    self.take(&bytes).await
                }
            };
            if let Err(Over) = carried_on {
                return;
            }
        }
    }

    async fn take(&mut self, bytes: &[u8]) -> Result<(), Over> {
        self.framer.add(bytes);
        while let Some(frame) = self.framer.next().map_err(|_| Over)? {
            match frame {
                SpdyFrame::Open { id, headers, is_last } => self.streams.open(id, &headers, is_last).await?,
                SpdyFrame::Data { id, data, is_last } => self.streams.data(id, &data, is_last).await?,
                SpdyFrame::Reset(id) => self.streams.forget(id),
                SpdyFrame::Ping(id) => self.streams.send(Outgoing::Bytes(spdy::ping(id).into())).await?,
                SpdyFrame::GoAway => return Err(Over),
                SpdyFrame::Other => {}
            }
        }
        Ok(())
    }
}

/// The streams of one client.
struct ForwardStreams {
    world: World,
    pod: Arc<Pod>,
    ports: Ports,
    out: mpsc::Sender<Outgoing>,
    /// By the number of the data stream.
    open: BTreeMap<u32, Stream>,
    /// The streams that wait for their other one, by the name of their pair.
    single: BTreeMap<String, Single>,
    replies: Replies,
}

/// The data stream of a pair, and the connection behind it.
struct Stream {
    /// `None` once the client has ended its side.
    to_port: Option<WriteHalf<DuplexStream>>,
    errors: u32,
    is_over: Arc<AtomicBool>,
    /// Dropped, they end.
    _tasks: [Task<()>; 2],
}

impl Stream {
    fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }
}

#[derive(Clone, Copy)]
struct Single {
    id: u32,
    is_data: bool,
    until: Moment,
}

impl ForwardStreams {
    async fn send(&self, outgoing: Outgoing) -> Result<(), Over> {
        self.out.send(outgoing).await.map_err(|_| Over)
    }

    async fn send_frame(&self, frame: Vec<u8>) -> Result<(), Over> {
        self.send(Outgoing::Bytes(frame.into())).await
    }

    fn first_timeout(&self) -> Option<Moment> {
        self.single.values().map(|single| single.until).min()
    }

    async fn open(&mut self, id: u32, headers: &Headers, is_last: bool) -> Result<(), Over> {
        self.open.retain(|_, stream| !stream.is_over());
        // The second stream of a pair has the room of the first.
        let has_room = |wanted: &StreamRequest| {
            self.single.contains_key(&wanted.pair) || self.open.len() + self.single.len() < MAX_PAIRS
        };
        let Some(wanted) = StreamRequest::of(headers, id).filter(has_room) else {
            return self.send_frame(spdy::reset(id, ResetCode::Refused)).await;
        };
        let reply = self.replies.to(id);
        self.send_frame(reply).await?;
        let StreamRequest { pair, port, is_data } = wanted;
        match self.single.get(&pair).copied() {
            None => {
                let until = self.world.now() + PAIRING;
                self.single.insert(pair, Single { id, is_data, until });
                Ok(())
            }
            Some(other) if other.is_data == is_data => {
                self.send_frame(spdy::reset(id, ResetCode::Protocol)).await
            }
            Some(other) => {
                self.single.remove(&pair);
                let (data, errors) = if is_data { (id, other.id) } else { (other.id, id) };
                self.connect(data, errors, port).await?;
                if is_last && is_data { self.data(data, b"", true).await } else { Ok(()) }
            }
        }
    }

    /// Connects a pair with a port.
    async fn connect(&mut self, data: u32, errors: u32, port: u16) -> Result<(), Over> {
        let Some(answer) = self.ports.answer(port) else {
            let (name, uid) = (self.pod.metadata.name.as_deref(), self.pod.metadata.uid.as_deref());
            let (name, uid) = (name.unwrap_or_default(), uid.unwrap_or_default());
            let problem = format!(
                "error forwarding port {port} to pod {name}, uid {uid}: \
                 dial tcp4 127.0.0.1:{port}: connect: connection refused"
            );
            self.send_frame(spdy::data(errors, problem.as_bytes(), true)).await?;
            return self.send_frame(spdy::reset(data, ResetCode::Cancel)).await;
        };
        let (near, serve) = ports::open(&self.world, answer);
        let (from_port, to_port) = tokio::io::split(near);
        let is_over = Arc::new(AtomicBool::new(false));
        let back = pass_back(from_port, self.out.clone(), [data, errors], Arc::clone(&is_over));
        let tasks =
            [self.world.spawn("port of a simulated pod", serve), self.world.spawn("port forwarding", back)];
        let forwarded = Stream { to_port: Some(to_port), errors, is_over, _tasks: tasks };
        self.open.insert(data, forwarded);
        Ok(())
    }

    async fn data(&mut self, id: u32, data: &[u8], is_last: bool) -> Result<(), Over> {
        if self.single.values().any(|single| single.is_data && single.id == id) {
            // Nothing is connected yet.
            self.forget(id);
            return self.send_frame(spdy::reset(id, ResetCode::Refused)).await;
        }
        // Data of streams that are gone, or of errors, is dropped.
        let Some(stream) = self.open.get_mut(&id) else { return Ok(()) };
        let Some(to_port) = &mut stream.to_port else { return Ok(()) };
        let is_written = {
            let (written, gone) = (pin!(to_port.write_all(data)), pin!(self.out.closed()));
            match select(written, gone).await {
                Either::Left((written, _)) => written.is_ok(),
                Either::Right(_) => return Err(Over),
            }
        };
        if !is_written || is_last {
            drop(to_port.shutdown().await);
            stream.to_port = None;
        }
        Ok(())
    }

    /// The client has reset a stream: its connection ends.
    fn forget(&mut self, id: u32) {
        self.single.retain(|_, single| single.id != id);
        self.open.retain(|data, stream| *data != id && stream.errors != id);
    }

    async fn give_up_singles(&mut self) -> Result<(), Over> {
        let now = self.world.now();
        let late: Vec<u32> =
            self.single.values().filter(|single| single.until <= now).map(|single| single.id).collect();
        for id in late {
            self.forget(id);
            self.send_frame(spdy::reset(id, ResetCode::Cancel)).await?;
        }
        Ok(())
    }
}

/// Sends what a port writes, and the end of both streams after it.
async fn pass_back(
    mut from_port: ReadHalf<DuplexStream>,
    out: mpsc::Sender<Outgoing>,
    [data, errors]: [u32; 2],
    is_over: Arc<AtomicBool>,
) {
    let mut piece = vec![0; ports::BUFFER];
    // Who does not read any more is gone, with everything.
    while let Ok(count @ 1..) = from_port.read(&mut piece).await {
        if out.send(Outgoing::Bytes(spdy::data(data, &piece[..count], false).into())).await.is_err() {
            return;
        }
    }
    for id in [data, errors] {
        drop(out.send(Outgoing::Bytes(spdy::data(id, b"", true).into())).await);
    }
    is_over.store(true, Relaxed);
}

/// What a client wants a new stream for.
struct StreamRequest {
    pair: String,
    port: u16,
    is_data: bool,
}

impl StreamRequest {
    // Kubernetes: clients before 1.3 do not name the pair; their data stream follows the one for errors.
    fn of(headers: &Headers, id: u32) -> Option<StreamRequest> {
        let text = |name: &str| headers.get(name).map(String::as_str);
        let port = text("port")?.parse().ok().filter(|port| *port > 0)?;
        let is_data = match text("streamtype")? {
            "data" => true,
            "error" => false,
            _ => return None,
        };
        let unnamed = || if is_data { id.saturating_sub(2) } else { id }.to_string();
        let pair = text("requestid").map_or_else(unnamed, str::to_owned);
        (pair.len() <= MAX_PAIR_NAME).then_some(StreamRequest { pair, port, is_data })
    }
}
