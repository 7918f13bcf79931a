//! The work queue of a controller: each key is in it once, and with one worker at a time.
//!
//! Three layers: `sets` decides, without a clock or a lock; `locked` lets several tasks use it; this file
//! adds the clock.

mod health;
mod locked;
#[cfg(test)]
mod model;
mod notes;
mod pace;
mod reason;
mod refill;
mod sets;
mod slots;
mod take;

pub use health::Stuck;
pub use notes::DeadLetter;
pub use pace::{Pace, Rate};
pub use reason::{Priority, Reason};
pub use sets::{Finished, Requeue};
pub use take::Take;

pub(crate) use health::WorkerSettings;
pub(crate) use notes::Note;

use crate::Key;
use locked::{Locked, WaitQueue};
use notes::Notes;
use refill::Refill;
use sets::QueueItem;
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use world::{Moment, World};

/// The time since the queue was made.
type Time = Duration;

/// The work queue of one controller. Cheap to clone; all clones are the same queue.
///
/// A key that is added twice before it is taken is taken once. A key that is added while it is in
/// progress is taken again after that. Of two delays the shorter one counts. Changes go before
/// resyncs; keys of the same priority go in the order in which they were added. A key that fails pauses
/// longer each time.
///
/// The queue holds at most [`Pace::limit`] keys and refuses more. When it has room again, it
/// [asks](Queue::refill_from) for all known keys and adds as many as fit, until all have had their
/// turn. So no existing object is missed. A deletion may be, as when the operator restarts: use
/// finalizers where that matters.
///
/// ```
/// use operator::{Key, queue::{Pace, Queue, Reason, Requeue}};
///
/// let run = world::simulate(7, |world| async move {
///     let queue = Queue::new(world, Pace::default());
///     queue.add(&Key::parse("shop/cart"), Reason::Changed);
///     queue.add(&Key::parse("shop/cart"), Reason::Changed);
///     let taken = queue.take().await.expect("the queue is open");
///     assert_eq!((taken.key().name(), queue.len()), ("cart", 0));
///     taken.finish(Requeue::No);
///     queue.is_idle()
/// });
/// assert!(run.expect("no task waits for ever").output);
/// ```
#[derive(Clone)]
pub struct Queue(Arc<QueueInner>);

struct QueueInner {
    world: World,
    begun: Moment,
    state: Locked<Mutex<WaitQueue>>,
    known: OnceLock<Box<dyn Fn() -> Vec<Key> + Send + Sync>>,
    refill: Mutex<Refill>,
    notes: Notes,
    workers: OnceLock<WorkerSettings>,
}

/// A key that a worker has taken. If it is dropped instead of finished, it goes back into the queue.
#[derive(Debug)]
#[must_use = "a key that is not finished goes back into the queue"]
pub struct TakenKey<'a> {
    queue: &'a Queue,
    item: Option<QueueItem>,
}

/// How many keys are in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Waiting for a worker, with [`Priority::Background`].
    pub background: usize,
    /// Waiting for a worker, with [`Priority::Fresh`].
    pub fresh: usize,
    /// Taken by a worker.
    pub in_progress: usize,
    /// Scheduled for later, without a failure.
    pub delayed: usize,
    /// Scheduled for later after a failure.
    pub in_back_off: usize,
    /// Dead: scheduled after the longest pause, because of too many failures.
    pub dead: usize,
    /// How soon the next of the scheduled keys is due.
    pub next_due: Option<Duration>,
    /// How long keys have waited without any being taken, though the rate allows it.
    pub untaken: Duration,
    /// Keys added so far.
    pub adds: u64,
    /// Keys added with a delay so far.
    pub retries: u64,
    /// Keys refused so far, because the queue was full.
    pub refused: u64,
}

/// A key that a worker has taken, and how long ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InProgress {
    /// The key.
    pub key: Key,
    /// How long ago.
    pub age: Duration,
}

impl Queue {
    /// An empty queue.
    pub fn new(world: World, pace: Pace) -> Queue {
        let begun = world.now();
        Queue(Arc::new(QueueInner {
            world,
            begun,
            state: Locked::new(pace),
            known: OnceLock::new(),
            refill: Mutex::default(),
            notes: Notes::default(),
            workers: OnceLock::new(),
        }))
    }

    /// Sets the function that returns all known keys, for when some were refused. Only the first call counts.
    pub fn refill_from(&self, known: impl Fn() -> Vec<Key> + Send + Sync + 'static) {
        let _ = self.0.known.set(Box::new(known));
    }

    /// Adds a key.
    pub fn add(&self, key: &Key, reason: Reason) {
        self.0.state.add(key, reason, self.now());
    }

    /// Adds a key that is due after `delay`, unless it is due sooner already.
    pub fn add_after(&self, key: &Key, reason: Reason, delay: Duration) {
        self.0.state.add_after(key, reason, delay, self.now());
    }

    /// The next key, as soon as there is one; `None` when the queue is closed.
    pub fn take(&self) -> Take<'_> {
        Take::new(self)
    }

    /// No key can be taken any more. Keys in progress may still be finished.
    pub fn close(&self) {
        self.0.state.close(self.now());
    }

    /// How many keys wait for a worker.
    pub fn len(&self) -> usize {
        let stats = self.stats();
        stats.background + stats.fresh
    }

    /// Whether no key waits for a worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no key waits, is in progress or in back-off. Keys that are delayed without a failure do
    /// not count, and neither do dead ones.
    pub fn is_idle(&self) -> bool {
        let stats = self.stats();
        stats.background + stats.fresh + stats.in_progress + stats.in_back_off == 0
    }

    /// When the next scheduled key is due.
    pub fn next_due(&self) -> Option<Moment> {
        let now = self.0.world.now();
        self.stats().next_due.map(|soon| now + soon)
    }

    /// How many keys are in which state now.
    pub fn stats(&self) -> Stats {
        let now = self.now();
        self.0.state.read(|sets| sets.stats(now))
    }

    /// The keys that workers have taken, the longest-running first.
    pub fn in_progress(&self) -> Vec<InProgress> {
        let now = self.now();
        self.0.state.read(|sets| sets.in_progress(now).collect())
    }

    /// Keys that failed so often that they are retried rarely, sorted. Add one to retry it now.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.0.notes.dead_letters()
    }

    /// Keys whose last reconcile returned `Next::WaitFor`, and what they wait for, sorted.
    pub fn waits(&self) -> Vec<(Key, &'static str)> {
        self.0.notes.waits()
    }

    /// Whether its workers make progress. A queue without workers is healthy: its process may be waiting
    /// to become leader.
    pub fn health(&self) -> Result<(), Stuck> {
        let Some(workers) = self.0.workers.get() else { return Ok(()) };
        let now = self.now();
        let (stats, oldest) = self.0.state.read(|sets| (sets.stats(now), sets.in_progress(now).next()));
        health::check(&stats, oldest, *workers)
    }

    /// Says that workers have started, for [`Queue::health`].
    pub(crate) fn set_workers(&self, workers: WorkerSettings) {
        let _ = self.0.workers.set(workers);
    }

    /// Replaces the note about a key.
    pub(crate) fn set_note(&self, key: &Key, note: Option<Note>) {
        self.0.notes.set(key, note);
    }

    fn now(&self) -> Time {
        self.0.world.now().since(self.0.begun)
    }

    fn finish(&self, item: &QueueItem, requeue: Requeue) -> Finished {
        let finished = self.0.state.finish(item, requeue, self.now());
        if finished.has_room {
            self.refill();
        }
        finished
    }

    fn refill(&self) {
        let Some(known) = self.0.known.get() else { return };
        let (known, now) = (known(), self.now());
        let mut refill = self.0.refill.lock().unwrap_or_else(PoisonError::into_inner);
        let offer = |key: &Key| self.0.state.add(key, Reason::Resync, now);
        refill.run(known, offer, || self.0.state.read(|sets| sets.refused()));
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Queue").field(&self.stats()).finish()
    }
}

impl TakenKey<'_> {
    /// The key.
    pub fn key(&self) -> &Key {
        &self.item().key
    }

    /// Why it was added.
    pub fn reason(&self) -> Reason {
        self.item().reason
    }

    /// Failures in a row before this one.
    pub fn failures(&self) -> u32 {
        self.item().failures
    }

    /// From when it was due until it was taken.
    pub fn waited(&self) -> Duration {
        self.item().waited
    }

    /// Ends the work on the key, and says whether and when it comes back.
    pub fn finish(mut self, requeue: Requeue) -> Finished {
        let item = self.item.take().expect("only finish and drop take the item");
        self.queue.finish(&item, requeue)
    }

    fn item(&self) -> &QueueItem {
        self.item.as_ref().expect("only finish and drop take the item")
    }
}

impl Drop for TakenKey<'_> {
    fn drop(&mut self) {
        if let Some(item) = self.item.take() {
            self.queue.finish(&item, Requeue::Unfinished);
        }
    }
}

#[cfg(test)]
mod tests;
