//! Workers: a key out of the queue, your reconcile under guard, its answer back into the queue.

mod guard;

use crate::{
    Failure, Key, Next, Reconcile,
    context::Reach,
    metrics::{Metrics, Outcomes, Reconciles},
    queue::{Duty, Note, Pace, Queue, Verdict, Work},
};
use futures::future::join_all;
use guard::Outcome;
use std::{error::Error, fmt, future::poll_fn, sync::Arc, task::Poll, time::Duration};
use tracing::Instrument;
use world::{Task, World};

/// A reconcile that takes longer is given up and tried again. Most take milliseconds; this leaves
/// room for slow clouds.
const DEADLINE: Duration = Duration::from_secs(300);
/// A worker that always finds a key and never has to wait lets others run after so many.
const TURNS_IN_A_ROW: u32 = 32;

/// How a controller works.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) workers: usize,
    /// For one reconcile.
    pub(crate) deadline: Duration,
    pub(crate) pace: Pace,
    pub(crate) on_terminal: Option<OnTerminal>,
}

/// Told of a failure that no retry helps: the key, its reason, its message.
pub(crate) type OnTerminal = Arc<dyn Fn(&Key, &'static str, &str) + Send + Sync>;

/// The workers of one controller. Dropping them drops what is under way.
pub(crate) struct Workers {
    crew: Arc<Crew>,
    tasks: Vec<Task<()>>,
}

/// What the workers of one controller share.
struct Crew {
    world: World,
    controller: String,
    queue: Queue,
    reconciler: Arc<dyn Reconcile>,
    settings: Settings,
    reconciles: Reconciles,
}

/// A queue for the controller of this name, which the metrics show.
pub(crate) fn queue(world: &World, controller: &str, settings: &Settings, metrics: &Metrics) -> Queue {
    let queue = Queue::new(world.clone(), settings.pace.clone());
    metrics.watch_queue(controller, &queue);
    queue
}

/// Begins to work, with what the controller can reach.
pub(crate) fn start(
    reach: &Reach,
    queue: Queue,
    reconciler: Arc<dyn Reconcile>,
    settings: Settings,
    metrics: &Metrics,
) -> Workers {
    begin(&reach.world, &reach.controller, queue, reconciler, settings, metrics)
}

fn begin(
    world: &World,
    controller: &str,
    queue: Queue,
    reconciler: Arc<dyn Reconcile>,
    settings: Settings,
    metrics: &Metrics,
) -> Workers {
    let workers = settings.workers.max(1);
    queue.begin(Duty { workers, deadline: settings.deadline });
    let (world, controller) = (world.clone(), controller.to_owned());
    let reconciles = metrics.reconciles(&controller, workers);
    let crew = Arc::new(Crew { world, controller, queue, reconciler, settings, reconciles });
    let tasks = (0..workers).map(|_| crew.world.spawn("worker", Arc::clone(&crew).work())).collect();
    Workers { crew, tasks }
}

impl Workers {
    /// Takes no more keys, and lets what is under way end within `grace`. What has not ended by
    /// then is dropped, and named.
    pub(crate) async fn stop(self, grace: Duration) -> Vec<Key> {
        self.crew.queue.close();
        if self.crew.world.timeout(grace, join_all(self.tasks)).await.is_ok() {
            return Vec::new();
        }
        let unfinished: Vec<_> = self.crew.queue.work_under_way().into_iter().map(|work| work.key).collect();
        tracing::warn!(controller = self.crew.controller, ?unfinished, "reconciles did not end in time");
        unfinished
    }
}

impl Crew {
    async fn work(self: Arc<Crew>) {
        let mut turns = 0;
        while let Some(work) = self.queue.take().await {
            self.turn(work).await;
            turns += 1;
            if turns % TURNS_IN_A_ROW == 0 {
                let_others_run().await;
            }
        }
    }

    async fn turn(&self, work: Work<'_>) {
        let span = tracing::info_span!(
            "reconcile",
            controller = self.controller,
            object = work.key().as_str(),
            cause = work.why().as_str(),
            failures = work.failures(),
        );
        let under_way = self.reconciles.begin(work.waited());
        let begun = self.world.now();
        let call = guard::call(&self.world, &*self.reconciler, work.key(), self.settings.deadline);
        let outcome = call.instrument(span.clone()).await;
        under_way.end(self.world.now().since(begun), outcome.label());
        let _in_span = span.enter();
        self.judge(work, outcome);
    }

    /// Does what the outcome asks for.
    fn judge(&self, work: Work<'_>, outcome: Outcome) {
        let (verdict, note) = match outcome {
            Outcome::Answer(Ok(Next::Settled)) => (Verdict::Settled, None),
            Outcome::Answer(Ok(Next::CheckAfter(delay))) => (Verdict::CheckAfter(delay), None),
            Outcome::Answer(Ok(Next::WaitFor(what))) => {
                tracing::debug!(what, "waits");
                (Verdict::Settled, Some(Note::WaitsFor(what)))
            }
            Outcome::Answer(Err(Failure::Terminal { reason, message })) => {
                tracing::error!(reason, message, "failed, and will not be tried again before it changes");
                if let Some(tell) = &self.settings.on_terminal {
                    tell(work.key(), reason, &message);
                }
                (Verdict::Settled, None)
            }
            Outcome::Answer(Err(Failure::Conflict(error))) => {
                let error = chain(&*error);
                tracing::debug!(error, "somebody else was faster");
                (Verdict::Conflict, self.dead(&work, error))
            }
            Outcome::Answer(Err(Failure::Transient(error))) => {
                let error = chain(&*error);
                tracing::warn!(error, "failed");
                (Verdict::Retry, self.dead(&work, error))
            }
            Outcome::Panicked(message) => {
                tracing::error!(message, "panicked");
                (Verdict::Retry, self.dead(&work, format!("panicked: {message}")))
            }
            Outcome::TimedOut(elapsed) => {
                tracing::warn!(deadline = ?elapsed.0, "took too long");
                (Verdict::Retry, self.dead(&work, elapsed.to_string()))
            }
        };
        // Before the key can be taken by the next one, who notes what comes after.
        self.queue.note(work.key(), note);
        work.finish(verdict);
    }

    /// The note for a key that has failed too often with this turn. News that came meanwhile give
    /// it a new life, but also a new turn at once, and with it a new note.
    fn dead(&self, work: &Work<'_>, message: String) -> Option<Note> {
        let failures = work.failures().saturating_add(1);
        (failures >= self.settings.pace.dead_after).then(|| {
            tracing::error!(failures, "given up for dead: tried again rarely, or when something changes");
            Note::Dead { failures, message, since: self.world.wall() }
        })
    }
}

impl Outcome {
    /// Under which of controller-runtime's results it is counted.
    fn label(&self) -> Outcomes {
        match self {
            Outcome::Answer(Ok(Next::Settled | Next::WaitFor(_))) => Outcomes::Success,
            Outcome::Answer(Ok(Next::CheckAfter(_))) => Outcomes::RequeueAfter,
            // No error: the normal price of working beside others.
            Outcome::Answer(Err(Failure::Conflict(_))) => Outcomes::Requeue,
            Outcome::Answer(Err(Failure::Transient(_))) => Outcomes::Error,
            Outcome::Answer(Err(Failure::Terminal { .. })) => Outcomes::Terminal,
            Outcome::Panicked(_) => Outcomes::Panic,
            Outcome::TimedOut(_) => Outcomes::Timeout,
        }
    }
}

/// The error and what caused it, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

async fn let_others_run() {
    let mut has_waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { workers: 1, deadline: DEADLINE, pace: Pace::default(), on_terminal: None }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { workers, deadline, pace, on_terminal: _ } = self;
        let mut out = out.debug_struct("Settings");
        out.field("workers", workers).field("deadline", deadline).field("pace", pace).finish_non_exhaustive()
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Workers({})", self.crew.controller)
    }
}

#[cfg(test)]
mod tests;
