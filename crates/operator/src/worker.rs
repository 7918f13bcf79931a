//! Workers: take a key out of the queue, call your reconcile, and finish the key as its result says.

mod guard;
mod log;

use crate::{
    Failure, Key, Next, Reconcile,
    context::ControllerContext,
    manager::HaltFlag,
    metrics::{Metrics, Reconciles, ResultLabel},
    queue::{Note, Pace, Queue, Requeue, TakenKey, WorkerSettings},
};
use futures::future::join_all;
use guard::Outcome;
use log::SampledLog;
use std::{error::Error, fmt, future::poll_fn, sync::Arc, task::Poll, time::Duration};
use tracing::Instrument;
use world::{Task, World};

/// A reconcile that takes longer is cancelled and retried. Most take milliseconds; this is for slow
/// cloud APIs.
const DEADLINE: Duration = Duration::from_secs(300);
/// A worker that finds a key each time, without waiting, yields to other tasks after so many.
const KEYS_IN_A_ROW: u32 = 32;

/// How often a reconcile is tried again while another object is in the way.
const RETRY_BLOCKED: Duration = Duration::from_secs(300);

/// The settings of one controller.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) workers: usize,
    /// For one reconcile.
    pub(crate) deadline: Duration,
    pub(crate) pace: Pace,
    pub(crate) on_failure: Option<OnFailure>,
    pub(crate) halt: HaltFlag,
}

/// Is called for a failure that a person must look at, with the key, the reason and the message.
pub(crate) type OnFailure = Arc<dyn Fn(&Key, &'static str, &str) + Send + Sync>;

/// The workers of one controller. Dropping them cancels their reconciles.
pub(crate) struct Workers {
    pool: Arc<Pool>,
    tasks: Vec<Task<()>>,
}

/// What the workers of one controller share.
struct Pool {
    world: World,
    controller: String,
    queue: Queue,
    reconciler: Arc<dyn Reconcile>,
    settings: Settings,
    reconciles: Reconciles,
    log: SampledLog,
}

/// A queue for the controller of this name, with metrics.
pub(crate) fn queue(world: &World, controller: &str, settings: &Settings, metrics: &Metrics) -> Queue {
    let queue = Queue::new(world.clone(), settings.pace.clone());
    metrics.watch_queue(controller, &queue);
    queue
}

/// Starts the workers of a controller.
pub(crate) fn start(
    context: &ControllerContext,
    queue: Queue,
    reconciler: Arc<dyn Reconcile>,
    settings: Settings,
    metrics: &Metrics,
) -> Workers {
    spawn(&context.world, &context.controller, queue, reconciler, settings, metrics)
}

fn spawn(
    world: &World,
    controller: &str,
    queue: Queue,
    reconciler: Arc<dyn Reconcile>,
    settings: Settings,
    metrics: &Metrics,
) -> Workers {
    let workers = settings.workers.max(1);
    queue.set_workers(WorkerSettings { workers, deadline: settings.deadline });
    let (log, world, controller) = (SampledLog::new(world), world.clone(), controller.to_owned());
    let reconciles = metrics.reconciles(&controller, workers);
    let pool = Arc::new(Pool { world, controller, queue, reconciler, settings, reconciles, log });
    let tasks = (0..workers).map(|_| pool.world.spawn("worker", Arc::clone(&pool).work())).collect();
    Workers { pool, tasks }
}

impl Workers {
    /// Takes no more keys, and waits up to `grace` for reconciles in progress. Those that have not ended
    /// by then are cancelled, and their keys returned.
    pub(crate) async fn stop(self, grace: Duration) -> Vec<Key> {
        self.pool.queue.close();
        if self.pool.world.timeout(grace, join_all(self.tasks)).await.is_ok() {
            return Vec::new();
        }
        let unfinished: Vec<_> = self.pool.queue.in_progress().into_iter().map(|work| work.key).collect();
        tracing::warn!(controller = self.pool.controller, ?unfinished, "reconciles did not end in time");
        unfinished
    }
}

impl Pool {
    async fn work(self: Arc<Pool>) {
        let mut count = 0;
        while let Some(taken) = self.queue.take().await {
            self.reconcile(taken).await;
            count += 1;
            if count % KEYS_IN_A_ROW == 0 {
                yield_now().await;
            }
        }
    }

    async fn reconcile(&self, taken: TakenKey<'_>) {
        let span = tracing::info_span!(
            "reconcile",
            controller = self.controller,
            object = taken.key().as_str(),
            cause = taken.reason().as_str(),
            failures = taken.failures(),
        );
        let timer = self.reconciles.start(taken.waited());
        let begun = self.world.now();
        let call = guard::call(&self.world, &*self.reconciler, &taken, self.settings.deadline);
        let call = self.settings.halt.around(call);
        let outcome = call.instrument(span.clone()).await;
        let took = self.world.now().since(begun);
        timer.stop(took, outcome.label());
        let _in_span = span.enter();
        self.log_outcome(&outcome, took);
        self.finish(taken, outcome);
    }

    /// One line for each reconcile; of those without a failure, only the first of each second.
    fn log_outcome(&self, outcome: &Outcome, took: Duration) {
        let result = outcome.label();
        let error = match outcome {
            Outcome::Returned(Ok(_) | Err(Failure::Conflict(_))) => {
                let Some(left_out) = self.log.admit() else { return };
                return tracing::info!(?result, ?took, left_out, "reconciled");
            }
            Outcome::Returned(Err(Failure::Terminal { reason, message })) => {
                let text = "failed, and is not retried before the object changes";
                return tracing::error!(?result, ?took, reason, message, "{text}");
            }
            Outcome::Panicked(message) => return tracing::error!(?result, ?took, message, "panicked"),
            Outcome::Returned(Err(Failure::Blocked { reason, message })) => {
                return tracing::warn!(?result, ?took, reason, message, "another object is in the way");
            }
            Outcome::Returned(Err(Failure::Transient(error))) => chain(&**error),
            Outcome::TimedOut(elapsed) => elapsed.to_string(),
        };
        tracing::warn!(?result, ?took, error, "failed");
    }

    /// Records a failure that a person must look at as an event.
    fn record(&self, taken: &TakenKey<'_>, reason: &'static str, message: &str) {
        if let Some(on_failure) = &self.settings.on_failure {
            on_failure(taken.key(), reason, message);
        }
    }

    /// Requeues the key as the reconcile ended.
    fn finish(&self, taken: TakenKey<'_>, outcome: Outcome) {
        let (requeue, note) = match outcome {
            Outcome::Returned(Ok(Next::Settled)) => (Requeue::No, None),
            Outcome::Returned(Ok(Next::CheckAfter(delay))) => (Requeue::After(delay), None),
            Outcome::Returned(Ok(Next::WaitFor(what))) => {
                tracing::debug!(what, "waits");
                (Requeue::No, Some(Note::WaitsFor(what)))
            }
            Outcome::Returned(Err(Failure::Blocked { reason, message })) => {
                self.record(&taken, reason, &message);
                (Requeue::After(RETRY_BLOCKED), None)
            }
            Outcome::Returned(Err(Failure::Terminal { reason, message })) => {
                self.record(&taken, reason, &message);
                (Requeue::No, None)
            }
            Outcome::Returned(Err(Failure::Conflict(error))) => {
                let error = chain(&*error);
                tracing::debug!(error, "the object has changed meanwhile");
                (Requeue::AfterConflict, self.dead_letter(&taken, error))
            }
            Outcome::Returned(Err(Failure::Transient(error))) => {
                (Requeue::WithBackoff, self.dead_letter(&taken, chain(&*error)))
            }
            Outcome::Panicked(message) => {
                (Requeue::WithBackoff, self.dead_letter(&taken, format!("panicked: {message}")))
            }
            Outcome::TimedOut(elapsed) => {
                (Requeue::WithBackoff, self.dead_letter(&taken, elapsed.to_string()))
            }
        };
        // Before the key can be taken again: the next reconcile replaces the note.
        self.queue.set_note(taken.key(), note);
        taken.finish(requeue);
    }

    /// The note for a key that has now failed too often. If its object changes meanwhile, the failures
    /// are reset and the key is reconciled at once, which replaces the note.
    fn dead_letter(&self, taken: &TakenKey<'_>, message: String) -> Option<Note> {
        let failures = taken.failures().saturating_add(1);
        (failures >= self.settings.pace.dead_after).then(|| {
            tracing::error!(failures, "failed too often: retried rarely, or when the object changes");
            Note::Dead { failures, message, since: self.world.wall() }
        })
    }
}

impl Outcome {
    /// The result under which the metrics count it, as in controller-runtime.
    fn label(&self) -> ResultLabel {
        match self {
            Outcome::Returned(Ok(Next::Settled | Next::WaitFor(_))) => ResultLabel::Success,
            Outcome::Returned(Ok(Next::CheckAfter(_))) => ResultLabel::RequeueAfter,
            // No error: conflicts are normal when several clients write.
            Outcome::Returned(Err(Failure::Conflict(_))) => ResultLabel::Requeue,
            Outcome::Returned(Err(Failure::Transient(_) | Failure::Blocked { .. })) => ResultLabel::Error,
            Outcome::Returned(Err(Failure::Terminal { .. })) => ResultLabel::Terminal,
            Outcome::Panicked(_) => ResultLabel::Panic,
            Outcome::TimedOut(_) => ResultLabel::Timeout,
        }
    }
}

/// The error and its causes, in one line.
fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Lets other tasks run once.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            workers: 1,
            deadline: DEADLINE,
            pace: Pace::default(),
            on_failure: None,
            halt: HaltFlag::default(),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { workers, deadline, pace, .. } = self;
        let mut out = out.debug_struct("Settings");
        out.field("workers", workers).field("deadline", deadline).field("pace", pace).finish_non_exhaustive()
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Workers({})", self.pool.controller)
    }
}

#[cfg(test)]
mod tests;
