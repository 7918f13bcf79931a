//! Writes lines to a file: a queue with two limits, and a task that drains it.

use bytes::{Bytes, BytesMut};
use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};
use tokio::sync::{
    OwnedSemaphorePermit, Semaphore,
    mpsc::{Receiver, Sender, channel},
    oneshot,
};
use world::World;

/// Limit on the lines that wait to be written.
// Kubernetes: the buffer of its log.
const MAX_WAITING: usize = 10_000;
/// Limit on their bytes: a slow disk delays requests before it fills memory.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// Limit on the lines written at once.
const MAX_BATCH: usize = 256;

#[derive(Debug)]
pub(super) struct Log {
    queue: Sender<LogMessage>,
    room: Arc<Semaphore>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
enum LogMessage {
    Line(Bytes, OwnedSemaphorePermit),
    Flush(oneshot::Sender<()>),
}

impl Log {
    pub(super) fn new(world: &World, out: Box<dyn Write + Send>) -> Log {
        let (queue, lines) = channel(MAX_WAITING);
        let dropped = Arc::new(AtomicU64::new(0));
        world.spawn("audit log", write(world.clone(), lines, out, Arc::clone(&dropped))).detach();
        Log { queue, room: Arc::new(Semaphore::new(MAX_WAITING_BYTES)), dropped }
    }

    /// Adds a line; waits until there is room.
    pub(super) async fn add(&self, line: Bytes) {
        let Ok(permit) = Arc::clone(&self.room).acquire_many_owned(width(&line)).await else { return };
        // The reading task lives as long as this.
        drop(self.queue.send(LogMessage::Line(line, permit)).await);
    }

    /// Adds a line if there is room now, for callers that cannot wait.
    pub(super) fn try_add(&self, line: Bytes) {
        let permit = Arc::clone(&self.room).try_acquire_many_owned(width(&line)).ok();
        let added = permit.is_some_and(|permit| self.queue.try_send(LogMessage::Line(line, permit)).is_ok());
        if !added {
            self.dropped.fetch_add(1, Relaxed);
        }
    }

    pub(super) async fn flush(&self) {
        let (sender, written) = oneshot::channel();
        if self.queue.send(LogMessage::Flush(sender)).await.is_ok() {
            drop(written.await);
        }
    }

    /// The number of lines that were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}

fn width(line: &Bytes) -> u32 {
    u32::try_from(line.len().min(MAX_WAITING_BYTES)).unwrap_or(u32::MAX)
}

async fn write(
    world: World,
    mut lines: Receiver<LogMessage>,
    mut out: Box<dyn Write + Send>,
    dropped: Arc<AtomicU64>,
) {
    let mut messages = Vec::with_capacity(MAX_BATCH);
    while lines.recv_many(&mut messages, MAX_BATCH).await > 0 {
        let (mut text, mut count, mut flushes, mut permits) = (BytesMut::new(), 0, Vec::new(), Vec::new());
        for message in messages.drain(..) {
            match message {
                LogMessage::Line(line, permit) => {
                    text.extend_from_slice(&line);
                    permits.push(permit);
                    count += 1;
                }
                LogMessage::Flush(sender) => flushes.push(sender),
            }
        }
        let (back, outcome) = world
            .blocking(move || {
                let outcome = out.write_all(&text).and_then(|()| out.flush());
                (out, outcome)
            })
            .await;
        out = back;
        if let Err(error) = outcome {
            dropped.fetch_add(count, Relaxed);
            tracing::error!(%error, events = count, "cannot write the audit log");
        }
        drop(permits);
        for sender in flushes {
            // The caller of flush may be gone.
            let _ = sender.send(());
        }
    }
}
