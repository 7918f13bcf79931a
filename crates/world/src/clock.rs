//! A clock beside the real one that can be frozen and moved on: for tests of programs that run in real time.
//!
//! A [`World::steered`](crate::World::steered) reads this clock, and all its timers wait for it. Until someone steers it,
//! it goes as the real one does. It also counts the tasks of that world that are running or ready to run, so that who
//! moves it can wait until nothing is left to do at the present moment.

use crate::{Moment, Timestamp};
use futures::task::AtomicWaker;
use pin_project_lite::pin_project;
use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};
use tokio::time::{Instant, Sleep};

/// A clock that can be steered. Clones share it.
#[derive(Clone)]
pub struct Clock(Arc<Shared>);

struct Shared {
    state: Mutex<ClockState>,
    /// Tasks that are running or ready to run.
    active: Arc<AtomicUsize>,
}

struct ClockState {
    /// What the clock showed when it was last steered, …
    shown: Instant,
    /// … and when that was, in real time.
    steered: Instant,
    is_frozen: bool,
    /// The wall clock at `wall_origin`.
    wall: Timestamp,
    wall_origin: Instant,
    /// Rises each time the clock is steered.
    generation: u64,
    /// Waiting timers, the next one first.
    timers: BTreeMap<(Instant, u64), Waker>,
    last_timer: u64,
}

impl ClockState {
    fn now(&self) -> Instant {
        match self.is_frozen {
            true => self.shown,
            false => self.shown + real_now().saturating_duration_since(self.steered),
        }
    }

    /// Changes how the clock goes; returns the timers that must look at it again.
    fn steer(&mut self, shown: Instant, is_frozen: bool) -> Vec<Waker> {
        let was_going = !(self.is_frozen && is_frozen);
        (self.shown, self.steered, self.is_frozen) = (shown, real_now(), is_frozen);
        self.generation += 1;
        let woken = if was_going {
            std::mem::take(&mut self.timers)
        } else {
            let later = self.timers.split_off(&(shown, u64::MAX));
            std::mem::replace(&mut self.timers, later)
        };
        woken.into_values().collect()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
fn real_now() -> Instant {
    Instant::now()
}

impl Clock {
    /// A clock that shows the real time, and goes.
    #[expect(clippy::new_without_default, reason = "it reads the real clock")]
    pub fn new() -> Clock {
        Clock::at(real_now(), Timestamp::now(), false)
    }

    fn at(shown: Instant, wall: Timestamp, is_frozen: bool) -> Clock {
        let state = ClockState {
            shown,
            steered: real_now(),
            is_frozen,
            wall,
            wall_origin: shown,
            generation: 0,
            timers: BTreeMap::new(),
            last_timer: 0,
        };
        Clock(Arc::new(Shared { state: Mutex::new(state), active: Arc::default() }))
    }

    /// Another clock that shows the same time and goes in the same way, without timers and tasks.
    pub fn fork(&self) -> Clock {
        let (now, wall, is_frozen) = (self.now(), self.wall(), self.is_frozen());
        Clock::at(now.instant(), wall, is_frozen)
    }

    pub fn now(&self) -> Moment {
        Moment::from_instant(self.state().now())
    }

    pub fn wall(&self) -> Timestamp {
        let state = self.state();
        let elapsed = state.now().saturating_duration_since(state.wall_origin);
        state.wall.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    pub fn is_frozen(&self) -> bool {
        self.state().is_frozen
    }

    /// Stops the clock, or lets it go on from what it shows.
    pub fn freeze(&self, is_frozen: bool) {
        let woken = {
            let mut state = self.state();
            let now = state.now();
            state.steer(now, is_frozen)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// Moves the clock on, and fires the timers that are due then. It never goes back.
    pub fn move_to(&self, moment: Moment) {
        let woken = {
            let mut state = self.state();
            let shown = moment.instant().max(state.now());
            let is_frozen = state.is_frozen;
            state.steer(shown, is_frozen)
        };
        woken.into_iter().for_each(Waker::wake);
    }

    /// When the next timer is due.
    pub fn next_timer(&self) -> Option<Moment> {
        self.state().timers.keys().next().map(|(due, _)| Moment::from_instant(*due))
    }

    /// How many tasks are running or ready to run.
    pub fn active_tasks(&self) -> usize {
        self.0.active.load(SeqCst)
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn alarm(&self, due: Moment) -> Alarm {
        Alarm { clock: self.clone(), due: due.instant(), id: None, timer: None }
    }

    pub(crate) fn counted<F>(&self, work: F) -> Counted<F> {
        let meter = TaskMeter {
            active: Arc::clone(&self.0.active),
            is_ready: AtomicBool::new(true),
            runtime: AtomicWaker::new(),
        };
        self.0.active.fetch_add(1, SeqCst);
        Counted { work, meter: Arc::new(meter) }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let mut fields = out.debug_struct("Clock");
        fields.field("is_frozen", &state.is_frozen).field("timers", &state.timers.len());
        fields.finish_non_exhaustive()
    }
}

/// Waits until a clock shows a moment.
pub(crate) struct Alarm {
    clock: Clock,
    due: Instant,
    /// Its number among the timers of the clock.
    id: Option<u64>,
    /// A real timer while the clock goes, and the generation of the clock that it is for.
    timer: Option<(u64, Pin<Box<Sleep>>)>,
}

impl Future for Alarm {
    type Output = ();

    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            let (left, generation) = {
                let mut state = this.clock.state();
                let left = this.due.saturating_duration_since(state.now());
                let id = *this.id.get_or_insert_with(|| {
                    state.last_timer += 1;
                    state.last_timer
                });
                if left.is_zero() {
                    state.timers.remove(&(this.due, id));
                    return Poll::Ready(());
                }
                state.timers.insert((this.due, id), context.waker().clone());
                ((!state.is_frozen).then_some(left), state.generation)
            };
            let Some(left) = left else {
                this.timer = None;
                return Poll::Pending;
            };
            let timer = this.timer.take().filter(|(made_in, _)| *made_in == generation);
            let (_, timer) =
                this.timer.insert(timer.unwrap_or_else(|| (generation, Box::pin(tokio::time::sleep(left)))));
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            // Steered in the meantime, or a rounding error: look again.
            this.timer = None;
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.clock.state().timers.remove(&(self.due, id));
        }
    }
}

pin_project! {
    /// A task that is counted while it runs or is ready to run.
    pub(crate) struct Counted<F> {
        #[pin]
        work: F,
        meter: Arc<TaskMeter>,
    }
    impl<F> PinnedDrop for Counted<F> {
        fn drop(this: Pin<&mut Self>) {
            let meter = &this.meter;
            // It stays marked, so that later wakes do not count.
            if meter.is_ready.swap(true, SeqCst) {
                meter.active.fetch_sub(1, SeqCst);
            }
        }
    }
}

struct TaskMeter {
    active: Arc<AtomicUsize>,
    /// Woken, and not polled since.
    is_ready: AtomicBool,
    runtime: AtomicWaker,
}

impl Wake for TaskMeter {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_ready.swap(true, SeqCst) {
            self.active.fetch_add(1, SeqCst);
        }
        self.runtime.wake();
    }
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        this.meter.runtime.register(context.waker());
        if !this.meter.is_ready.swap(false, SeqCst) {
            this.meter.active.fetch_add(1, SeqCst);
        }
        let waker = Waker::from(Arc::clone(this.meter));
        let polled = this.work.poll(&mut Context::from_waker(&waker));
        this.meter.active.fetch_sub(1, SeqCst);
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::World;
    use std::time::Duration;

    const HOUR: Duration = Duration::from_secs(3600);

    /// Waits until no task of the world can run.
    async fn rest(clock: &Clock) {
        while clock.active_tasks() > 0 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn a_frozen_clock_fires_timers_only_when_it_is_moved() {
        crate::run(|_real| async {
            let clock = Clock::new();
            clock.freeze(true);
            let world = World::steered(&clock);
            let (begun, wall) = (world.now(), world.wall());
            let sleeper = world.clone();
            let task = world.spawn("sleeper", async move {
                sleeper.sleep(HOUR).await;
                let late = sleeper.timeout(HOUR, std::future::pending::<()>()).await;
                (late.is_err(), sleeper.now())
            });
            rest(&clock).await;
            assert_eq!(clock.next_timer(), Some(begun + HOUR));
            assert_eq!((world.now(), world.wall()), (begun, wall));
            clock.move_to(begun + HOUR / 2);
            rest(&clock).await;
            clock.move_to(begun + HOUR);
            rest(&clock).await;
            assert_eq!(clock.next_timer(), Some(begun + HOUR * 2));
            clock.move_to(begun + HOUR * 2);
            assert_eq!(task.await, Ok((true, begun + HOUR * 2)));
            assert_eq!(world.wall().duration_since(wall), jiff::SignedDuration::from_hours(2));
            assert_eq!(clock.next_timer(), None);
        })
        .unwrap();
    }

    #[test]
    fn a_clock_that_goes_fires_timers_by_itself_and_can_be_moved_on() {
        crate::run(|_real| async {
            let clock = Clock::new();
            let world = World::steered(&clock);
            let begun = world.now();
            world.sleep(Duration::from_millis(2)).await;
            assert!(world.now().since(begun) >= Duration::from_millis(2));
            let sleeper = world.clone();
            let task = world.spawn("sleeper", async move { sleeper.sleep(HOUR).await });
            rest(&clock).await;
            clock.move_to(world.now() + HOUR);
            assert_eq!(task.await, Ok(()));
            let fork = clock.fork();
            fork.move_to(fork.now() + HOUR);
            assert!(fork.now().since(clock.now()) > HOUR / 2, "each goes its own way");
        })
        .unwrap();
    }
}
