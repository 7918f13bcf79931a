//! The simulated world: one thread, virtual time, and a seed that decides which task runs next.
//!
//! It uses a paused tokio runtime, so that code with tokio's own timers (client libraries) has the same
//! virtual time. Tasks of the world are kept here and polled one by one in the order of the seed.

use crate::{
    Moment, World,
    chance::{Seeded, scale},
};
use futures::future::{BoxFuture, poll_fn};
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

/// If every task waits and no timer ends before this, nothing will ever happen again. (A year; tokio's timers
/// reach two.)
const HORIZON: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a simulated program ended.
#[derive(Debug)]
pub struct Run<T> {
    pub output: T,
    /// Virtual time from the start to the end.
    pub elapsed: Duration,
    /// How many times a task was polled.
    pub turns: u64,
    /// A digest of which task was polled when: equal for equal runs.
    pub fingerprint: u64,
}

/// A deadlock: every task waits for something that will not come.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: nothing can happen any more; still waiting: {}", waiting.join(", "))]
pub struct Stuck {
    pub seed: u64,
    /// The names of the tasks that have not ended.
    pub waiting: Vec<&'static str>,
}

/// Runs `main` in a simulated world to its end. Tasks that are still alive then are dropped.
///
/// # Panics
/// Where `main` or one of its tasks panics, after the seed has been printed.
pub fn simulate<T, F>(seed: u64, main: impl FnOnce(World) -> F) -> Result<Run<T>, Stuck>
where
    F: Future<Output = T>,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing from the machine");
    let tell_seed = PrintSeedOnPanic(seed);
    let result = runtime.block_on(drive(seed, main));
    drop(tell_seed);
    result
}

async fn drive<T, F>(seed: u64, main: impl FnOnce(World) -> F) -> Result<Run<T>, Stuck>
where
    F: Future<Output = T>,
{
    let start = Moment::now();
    let simulation =
        Arc::new(Simulation { seed, start, turn: Arc::default(), state: Mutex::new(State::new(seed)) });
    let world = World::simulated(Arc::clone(&simulation));
    let mut main = pin!(main(world.clone()));
    let mut horizon = pin!(world.sleep(HORIZON));
    simulation.turn.wake(MAIN);
    let driver = poll_fn(|context| {
        if horizon.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Stuck { seed, waiting: simulation.names() }));
        }
        simulation.turn.listen(context);
        // One poll for each wake of the runtime, so that tasks that libraries spawn on it get their turn.
        let Some(id) = simulation.next_turn() else { return Poll::Pending };
        let waker = Waker::from(Arc::new(TaskWaker { id, turn: Arc::clone(&simulation.turn) }));
        let mut turn = Context::from_waker(&waker);
        if id == MAIN {
            if let Poll::Ready(output) = main.as_mut().poll(&mut turn) {
                return Poll::Ready(Ok(simulation.finish(output)));
            }
        } else if let Some(mut task) = simulation.take(id) {
            match task.body.as_mut().poll(&mut turn) {
                Poll::Pending => simulation.put_back(id, task),
                // Dropped here, outside the lock: its destructor may spawn or wake others.
                Poll::Ready(()) => drop(task),
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    // Tokio's cooperative budget is per runtime task; the driver is one task, and polls all of ours.
    let result = tokio::task::coop::unconstrained(driver).await;
    simulation.clear();
    result
}

type TaskId = u64;
const MAIN: TaskId = 0;

/// The state shared by the handles of one simulated world.
#[derive(Debug)]
pub(crate) struct Simulation {
    seed: u64,
    start: Moment,
    turn: Arc<Turns>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    chance: Seeded,
    /// Separate from `chance`, so that a program's random numbers do not depend on other tasks.
    order: Seeded,
    tasks: BTreeMap<TaskId, SimulatedTask>,
    last_id: TaskId,
    turns: u64,
    fingerprint: u64,
}

struct SimulatedTask {
    name: &'static str,
    body: BoxFuture<'static, ()>,
}

impl std::fmt::Debug for SimulatedTask {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name)
    }
}

impl State {
    fn new(seed: u64) -> State {
        State {
            chance: Seeded::new(seed),
            order: Seeded::new(!seed),
            tasks: BTreeMap::new(),
            last_id: MAIN,
            turns: 0,
            fingerprint: 0,
        }
    }
}

impl Simulation {
    pub(crate) fn add(&self, name: &'static str, body: BoxFuture<'static, ()>) {
        let mut state = lock(&self.state);
        state.last_id += 1;
        let id = state.last_id;
        state.tasks.insert(id, SimulatedTask { name, body });
        drop(state);
        self.turn.wake(id);
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn draw(&self) -> u64 {
        lock(&self.state).chance.draw()
    }

    pub(crate) fn elapsed(&self, now: Moment) -> Duration {
        now.since(self.start)
    }

    /// Chooses one of the ready tasks and adds it to the fingerprint.
    fn next_turn(&self) -> Option<TaskId> {
        let mut state = lock(&self.state);
        let id = self.turn.choose(|ready| scale(state.order.draw(), ready as u64) as usize)?;
        let millisecond = self.elapsed(Moment::now()).as_millis() as u64;
        state.turns += 1;
        state.fingerprint = Seeded::new(state.fingerprint ^ id.rotate_left(32) ^ millisecond).draw();
        Some(id)
    }

    fn take(&self, id: TaskId) -> Option<SimulatedTask> {
        lock(&self.state).tasks.remove(&id)
    }

    fn put_back(&self, id: TaskId, task: SimulatedTask) {
        lock(&self.state).tasks.insert(id, task);
    }

    fn names(&self) -> Vec<&'static str> {
        let state = lock(&self.state);
        std::iter::once("main").chain(state.tasks.values().map(|task| task.name)).collect()
    }

    fn finish<T>(&self, output: T) -> Run<T> {
        let elapsed = self.elapsed(Moment::now());
        let state = lock(&self.state);
        Run { output, elapsed, turns: state.turns, fingerprint: state.fingerprint }
    }

    /// Drops the remaining tasks. They hold handles on this simulation: without this, the cycle would leak
    /// both.
    fn clear(&self) {
        loop {
            let tasks = std::mem::take(&mut lock(&self.state).tasks);
            if tasks.is_empty() {
                return;
            }
            drop(tasks);
        }
    }
}

/// The ready tasks, each once, and the waker of the driver.
#[derive(Debug, Default)]
struct Turns(Mutex<Ready>);

#[derive(Debug, Default)]
struct Ready {
    ids: Vec<TaskId>,
    /// The same ids, for fast lookup.
    waiting: BTreeSet<TaskId>,
    driver: Option<Waker>,
}

impl Turns {
    fn wake(&self, id: TaskId) {
        let mut ready = lock(&self.0);
        if ready.waiting.insert(id) {
            ready.ids.push(id);
        }
        let driver = ready.driver.clone();
        drop(ready);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    fn listen(&self, context: &Context<'_>) {
        lock(&self.0).driver = Some(context.waker().clone());
    }

    fn choose(&self, among: impl FnOnce(usize) -> usize) -> Option<TaskId> {
        let mut ready = lock(&self.0);
        if ready.ids.is_empty() {
            return None;
        }
        let index = among(ready.ids.len());
        let id = ready.ids.swap_remove(index);
        ready.waiting.remove(&id);
        Some(id)
    }
}

struct TaskWaker {
    id: TaskId,
    turn: Arc<Turns>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.turn.wake(self.id);
    }
}

struct PrintSeedOnPanic(u64);

impl Drop for PrintSeedOnPanic {
    #[expect(clippy::print_stderr, reason = "the seed must be next to the panic message")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the simulation ran with seed {}", self.0);
        }
    }
}

/// A panicking task ends the whole simulation, so no other code sees a half-made change under a poisoned
/// lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
