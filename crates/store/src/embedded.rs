//! The default store: a directory on this machine. Acknowledged commits survive kill -9.
//!
//! All entries, and the recent past, are in memory ([`crate::tree`]); reads never touch the disk. A commit is
//! written to the log and synced before it is visible; concurrent writers share one sync.
//! `docs/design/0001-embedded-store.md` has the reasons.

mod checkpoint;
mod disk;
mod engine;
mod frame;
mod log;
mod recover;
#[cfg(test)]
mod simulated_disk;
#[cfg(test)]
mod tests;

use crate::{
    Answer, Batch, Error, Feed, Limits, Memory, Page, Range, Read, ReadStore, Revision, Store, snapshot,
    tree::Tree,
};
use bytes::Bytes;
use disk::{Directory, Disk};
use engine::Engine;
use futures::future::ready;
use std::{
    fmt, fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc as sync_mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};
use world::World;

/// Commits that wait for the writer thread: enough for every request in flight, and a bound on memory.
const QUEUE: usize = 1024;
/// A group is closed when its batches reach this size: one sync of a few milliseconds.
const GROUP_BYTES: usize = 4 << 20;

/// How often a locked directory is tried again, and after which time: half a second in all.
const LOCK_RETRIES: usize = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
const LOCK_FILE: &str = "lock";

/// How to open a store.
pub struct Options {
    pub limits: Limits,
    /// A log segment is closed when the next write would exceed this size. Small, so that old segments are
    /// soon wholly below the floor and can be recycled.
    pub segment_bytes: u64,
    /// Called from time to time with the progress of opening.
    pub progress: Option<Box<dyn FnMut(Progress) + Send>>,
}

impl Default for Options {
    fn default() -> Options {
        Options { limits: Limits::default(), segment_bytes: 16 << 20, progress: None }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = out.debug_struct("Options");
        fields.field("limits", &self.limits).field("segment_bytes", &self.segment_bytes);
        fields.finish_non_exhaustive()
    }
}

/// Bytes read so far, and the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
}

/// The result of opening.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub revision: Revision,
    /// A write that a crash had cut short, before it was acknowledged.
    pub torn: Option<Torn>,
}

/// An unfinished write, dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torn {
    pub file: PathBuf,
    pub offset: u64,
    pub bytes: u64,
}

/// A store in a directory, open in one process at a time.
#[derive(Debug)]
pub struct Embedded {
    tree: Arc<Tree>,
    opened: Opened,
    /// `None` while closing.
    queue: Option<mpsc::Sender<CommitRequest>>,
    writer: Option<JoinHandle<()>>,
    /// Whether the last frame could be written.
    is_writable: Arc<AtomicBool>,
    world: World,
    _lock: fs::File,
}

#[derive(Debug)]
struct CommitRequest {
    batch: Batch,
    answer: oneshot::Sender<Result<Revision, Error>>,
}

impl Embedded {
    /// Opens the store in `directory`, and creates the directory if needed.
    pub async fn open(world: &World, directory: &Path, options: Options) -> Result<Embedded, Error> {
        let Options { limits, segment_bytes, progress } = options;
        let mut progress = progress.unwrap_or_else(|| Box::new(|_| ()));
        let lock = lock_patiently(world, directory).await?;
        let path = directory.to_owned();
        let recovered =
            world.blocking(move || recover::recover(&Directory(path), limits, &mut *progress)).await?;
        let opened = Opened { revision: recovered.tree.revision(), torn: recovered.torn.clone() };
        let disk: Arc<dyn Disk> = Arc::new(Directory(directory.to_owned()));
        let engine = Engine::new(Arc::clone(&disk), recovered, segment_bytes, world.draw());
        let tree = Arc::clone(engine.tree());
        let (queue, requests) = mpsc::channel(QUEUE);
        let is_writable = Arc::new(AtomicBool::new(true));
        let threads = start(world, engine, disk, requests, Arc::clone(&is_writable));
        let writer = threads.map_err(|source| Error::Io {
            doing: "start the threads of",
            path: directory.to_owned(),
            source,
        })?;
        let (queue, writer, world) = (Some(queue), Some(writer), world.clone());
        Ok(Embedded { tree, opened, queue, writer, is_writable, world, _lock: lock })
    }

    /// Creates a store in `directory`, which must not hold one, from a backup of any store.
    pub async fn restore(world: &World, backup: &Path, directory: &Path) -> Result<Revision, Error> {
        let (backup, directory) = (backup.to_owned(), directory.to_owned());
        world.blocking(move || restore(&backup, directory)).await
    }

    pub fn opened(&self) -> &Opened {
        &self.opened
    }
}

impl Drop for Embedded {
    /// Waits for pending commits and the writer thread, so that the directory is free afterwards.
    fn drop(&mut self) {
        self.tree.window().close();
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // A writer thread that panicked has dropped its callers already.
            drop(writer.join());
        }
    }
}

impl ReadStore for Embedded {
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read> {
        Box::pin(ready(self.tree.get(&key, at)))
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(ready(self.tree.range(&range)))
    }

    fn count(&self, range: Range) -> Answer<'_, u64> {
        Box::pin(ready(self.tree.count(&range)))
    }

    fn revision(&self) -> Answer<'_, Revision> {
        Box::pin(ready(Ok(self.tree.revision())))
    }

    fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Answer<'_, Feed> {
        Box::pin(ready(Feed::join(self.tree.window(), prefix, since)))
    }

    fn is_writable(&self) -> bool {
        self.is_writable.load(Relaxed)
    }
}

impl Store for Embedded {
    fn commit(&self, batch: Batch) -> Answer<'_, Revision> {
        Box::pin(async move {
            batch.check()?;
            let (answer, answered) = oneshot::channel();
            let queue = self.queue.as_ref().ok_or(Error::Closed)?;
            queue.send(CommitRequest { batch, answer }).await.map_err(|_| Error::Closed)?;
            answered.await.map_err(|_| Error::Closed)?
        })
    }

    fn compact(&self, floor: Revision) -> Answer<'_, ()> {
        Box::pin(ready(self.tree.compact(floor)))
    }

    fn fork_in_memory(&self) -> Option<Memory> {
        Some(Memory::of_tree(self.tree.fork()))
    }

    fn backup(&self, file: PathBuf) -> Answer<'_, Revision> {
        let tree = Arc::clone(&self.tree);
        Box::pin(self.world.blocking(move || snapshot::back_up(&tree, &file)))
    }
}

/// Starts the writer thread and the checkpoint thread.
fn start(
    world: &World,
    engine: Engine,
    disk: Arc<dyn Disk>,
    requests: mpsc::Receiver<CommitRequest>,
    is_writable: Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    let (due, when_due) = sync_mpsc::sync_channel(1);
    let (tree, catalog) = (Arc::clone(engine.tree()), Arc::clone(engine.catalog()));
    let checkpointer = world.thread("store-checkpoint", move || {
        for () in when_due {
            // The log is complete without a checkpoint; the next one will try again.
            if let Err(error) = checkpoint::checkpoint(&tree, &*disk, &catalog) {
                tracing::error!(error = &error as &dyn std::error::Error, "checkpoint failed");
            }
        }
    })?;
    world.thread("store-writer", move || {
        write(engine, requests, &due, &is_writable);
        drop(due);
        drop(checkpointer.join());
    })
}

fn write(
    mut engine: Engine,
    mut requests: mpsc::Receiver<CommitRequest>,
    due: &sync_mpsc::SyncSender<()>,
    is_writable: &AtomicBool,
) {
    let mut group = Vec::new();
    while let Some(request) = requests.blocking_recv() {
        let mut bytes = request.batch.size();
        group.push(request);
        while bytes < GROUP_BYTES && group.len() < QUEUE {
            let Ok(request) = requests.try_recv() else { break };
            bytes += request.batch.size();
            group.push(request);
        }
        let answers = engine.commit(group.iter().map(|request| &request.batch));
        let has_failed =
            |answer: &Result<_, Error>| matches!(answer, Err(Error::Full { .. } | Error::Broken(_)));
        if answers.iter().any(has_failed) {
            is_writable.store(false, Relaxed);
        } else if answers.iter().any(Result::is_ok) {
            is_writable.store(true, Relaxed);
        }
        for (request, answer) in group.drain(..).zip(answers) {
            // The caller may be gone; the commit stands all the same.
            drop(request.answer.send(answer));
        }
        if engine.is_checkpoint_due() {
            // A checkpoint that is queued or running covers this one too.
            let _ = due.try_send(());
        }
    }
    engine.close();
}

/// Locks `directory`, and tries again for a moment while it is locked: a process that was just killed, and one
/// that another thread is starting, hold the lock until the kernel has closed their files.
async fn lock_patiently(world: &World, directory: &Path) -> Result<fs::File, Error> {
    for _ in 0..LOCK_RETRIES {
        let path = directory.to_owned();
        match world.blocking(move || lock(&path)).await {
            Err(Error::InUse { .. }) => world.sleep(LOCK_PAUSE).await,
            result => return result,
        }
    }
    let path = directory.to_owned();
    world.blocking(move || lock(&path)).await
}

/// Makes sure that this process is the only one in `directory`.
fn lock(directory: &Path) -> Result<fs::File, Error> {
    let io = |doing| move |source| Error::Io { doing, path: directory.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(io("create"))?;
    let path = directory.join(LOCK_FILE);
    let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = file.map_err(io("lock"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let holder = io::read_to_string(&file).ok().filter(|text| !text.is_empty());
            let holder = holder.unwrap_or_else(|| "another process".to_owned());
            return Err(Error::InUse { directory: directory.to_owned(), holder });
        }
        Err(fs::TryLockError::Error(source)) => return Err(io("lock")(source)),
    }
    // For the message above; the lock itself protects the directory.
    let text = format!("process {}", std::process::id());
    drop(file.set_len(0).and_then(|()| fs::write(&path, text)));
    Ok(file)
}

fn restore(backup: &Path, directory: PathBuf) -> Result<Revision, Error> {
    let _lock = lock(&directory)?;
    let disk = Directory(directory);
    // A first pass verifies the backup, a second one loads it.
    let (_, entries) = snapshot::read_file(backup)?;
    for entry in entries {
        entry?;
    }
    let (_, entries) = snapshot::read_file(backup)?;
    checkpoint::install(&disk, entries)
}
