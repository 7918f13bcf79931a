//! Keys to look at, in; each key once, to one worker at a time, out.
//!
//! Three layers: `sets` decides, without a clock or a lock; `door` lets threads at it; this file
//! brings the world's clock.

mod door;
mod health;
mod ledger;
#[cfg(test)]
mod model;
mod pace;
mod sets;
mod slots;
mod sweep;
mod take;
mod why;

pub use health::Stuck;
pub use ledger::DeadLetter;
pub use pace::{Pace, Rate};
pub use sets::Verdict;
pub use take::Take;
pub use why::{Priority, Why};

pub(crate) use health::Duty;
pub(crate) use ledger::Note;

use crate::Key;
use door::{Door, Inside};
use ledger::Ledger;
use sets::Turn;
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use sweep::Sweep;
use world::{Moment, World};

/// Since the queue was made.
type Time = Duration;

/// The work of one controller. Cheap to clone; all clones are the same queue.
///
/// A key that is added twice before it is taken is taken once. A key that is added while it is in
/// work is taken again after that. Of two delays the earlier wins. Fresh changes go before resyncs,
/// and within that, first come first served. A key that fails rests longer each time.
///
/// It holds as many keys as its [`Pace::limit`] says. One more is refused, but what is refused is
/// owed: as room comes, the queue [asks](Queue::refill_from) for all keys that are known, and takes
/// them in page by page. So an object that exists is never lost. The news that one is gone may be, as
/// it may when an operator restarts: that is what finalizers are for.
///
/// ```
/// use operator::{Key, queue::{Pace, Queue, Verdict, Why}};
///
/// let run = world::simulate(7, |world| async move {
///     let queue = Queue::new(world, Pace::default());
///     queue.add(&Key::parse("shop/cart"), Why::Changed);
///     queue.add(&Key::parse("shop/cart"), Why::Changed);
///     let work = queue.take().await.expect("the queue is open");
///     assert_eq!((work.key().name(), queue.len()), ("cart", 0));
///     work.finish(Verdict::Settled);
///     queue.is_idle()
/// });
/// assert!(run.expect("nobody waits").output);
/// ```
#[derive(Clone)]
pub struct Queue(Arc<Shared>);

struct Shared {
    world: World,
    begun: Moment,
    door: Door<Mutex<Inside>>,
    known: OnceLock<Box<dyn Fn() -> Vec<Key> + Send + Sync>>,
    sweep: Mutex<Sweep>,
    ledger: Ledger,
    duty: OnceLock<Duty>,
}

/// A key in work. Dropped without a verdict, it goes back into the queue.
#[derive(Debug)]
#[must_use = "a key that is not worked on goes back into the queue"]
pub struct Work<'a> {
    queue: &'a Queue,
    turn: Option<Turn>,
}

/// How a key stands after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Failures in a row, this turn included.
    pub failures: u32,
    /// There were so many that it is tried rarely now.
    pub is_dead: bool,
}

/// How many keys are where, at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Waiting for a worker, by priority.
    pub background: usize,
    pub fresh: usize,
    pub in_work: usize,
    /// To be looked at later, though nothing is wrong with them.
    pub delayed: usize,
    /// Resting after a failure.
    pub in_back_off: usize,
    /// Resting for long, after too many failures.
    pub dead: usize,
    /// How soon the next of those that rest is due.
    pub next_due: Option<Duration>,
    /// How long keys have waited while none was taken, though the rate allowed it.
    pub untaken: Duration,
    /// Since the beginning: keys that came to wait, that came with a delay, that found no room.
    pub adds: u64,
    pub retries: u64,
    pub refused: u64,
}

/// A key that somebody works on, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InWork {
    pub key: Key,
    pub age: Duration,
}

impl Queue {
    pub fn new(world: World, pace: Pace) -> Queue {
        let begun = world.now();
        Queue(Arc::new(Shared {
            world,
            begun,
            door: Door::new(pace),
            known: OnceLock::new(),
            sweep: Mutex::default(),
            ledger: Ledger::default(),
            duty: OnceLock::new(),
        }))
    }

    /// Where to find all keys there are, if some were refused. Only the first one counts.
    pub fn refill_from(&self, known: impl Fn() -> Vec<Key> + Send + Sync + 'static) {
        let _ = self.0.known.set(Box::new(known));
    }

    /// Wants the key to be looked at.
    pub fn add(&self, key: &Key, why: Why) {
        self.0.door.add(key, why, self.now());
    }

    /// Wants the key to be looked at after `delay`, unless it will be sooner.
    pub fn add_after(&self, key: &Key, why: Why, delay: Duration) {
        self.0.door.add_after(key, why, delay, self.now());
    }

    /// The next key, as soon as there is one; none once the queue is closed.
    pub fn take(&self) -> Take<'_> {
        Take::new(self)
    }

    /// Hands out nothing any more. What is in work may still be finished.
    pub fn close(&self) {
        self.0.door.close(self.now());
    }

    /// Keys that wait for a worker.
    pub fn len(&self) -> usize {
        let census = self.census();
        census.background + census.fresh
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Nothing waits, is in work or rests after a failure. Keys that are to be looked at much later
    /// do not count, and neither do dead ones.
    pub fn is_idle(&self) -> bool {
        let census = self.census();
        census.background + census.fresh + census.in_work + census.in_back_off == 0
    }

    /// The moment at which the next resting key is due.
    pub fn next_due(&self) -> Option<Moment> {
        let now = self.0.world.now();
        self.census().next_due.map(|soon| now + soon)
    }

    pub fn census(&self) -> Census {
        let now = self.now();
        self.0.door.look(|sets| sets.census(now))
    }

    /// What is being worked on, longest first.
    pub fn work_under_way(&self) -> Vec<InWork> {
        let now = self.now();
        self.0.door.look(|sets| sets.work_under_way(now).collect())
    }

    /// Keys that failed so often that they are tried rarely, in order. Add one to try it now.
    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.0.ledger.dead_letters()
    }

    /// Keys whose last reconcile waits for something, and for what, in order.
    pub fn waits(&self) -> Vec<(Key, &'static str)> {
        self.0.ledger.waits()
    }

    /// Whether its workers get on. A queue that nobody works on yet is well: its process may stand
    /// by for another.
    pub fn health(&self) -> Result<(), Stuck> {
        let Some(duty) = self.0.duty.get() else { return Ok(()) };
        let now = self.now();
        let (census, oldest) = self.0.door.look(|sets| (sets.census(now), sets.work_under_way(now).next()));
        health::check(&census, oldest, *duty)
    }

    /// From now on somebody takes keys.
    pub(crate) fn begin(&self, duty: Duty) {
        let _ = self.0.duty.set(duty);
    }

    /// Replaces what is known of a key that is given back.
    pub(crate) fn note(&self, key: &Key, note: Option<Note>) {
        self.0.ledger.write(key, note);
    }

    fn now(&self) -> Time {
        self.0.world.now().since(self.0.begun)
    }

    fn finish(&self, turn: &Turn, verdict: Verdict) -> Standing {
        let finished = self.0.door.finish(turn, verdict, self.now());
        if finished.has_room {
            self.refill();
        }
        Standing { failures: finished.failures, is_dead: finished.is_dead }
    }

    fn refill(&self) {
        let Some(known) = self.0.known.get() else { return };
        let (known, now) = (known(), self.now());
        let mut sweep = self.0.sweep.lock().unwrap_or_else(PoisonError::into_inner);
        let offer = |key: &Key| self.0.door.add(key, Why::Resync, now);
        sweep.go_on(known, offer, || self.0.door.look(|sets| sets.refused()));
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Queue").field(&self.census()).finish()
    }
}

impl Work<'_> {
    pub fn key(&self) -> &Key {
        &self.turn().key
    }

    pub fn why(&self) -> Why {
        self.turn().why
    }

    /// Failures before this turn, in a row.
    pub fn failures(&self) -> u32 {
        self.turn().failures
    }

    /// From when it was wanted until it was taken.
    pub fn waited(&self) -> Duration {
        self.turn().waited
    }

    /// Gives the key back and says what is to become of it.
    pub fn finish(mut self, verdict: Verdict) -> Standing {
        let turn = self.turn.take().expect("only an end takes the turn");
        self.queue.finish(&turn, verdict)
    }

    fn turn(&self) -> &Turn {
        self.turn.as_ref().expect("only an end takes the turn")
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.queue.finish(&turn, Verdict::Unfinished);
        }
    }
}

#[cfg(test)]
mod tests;
