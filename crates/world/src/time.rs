//! The two clocks of a world: a monotonic one, and the wall clock.

use crate::{Clock, Kind, Timestamp, World, clock::Alarm};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    task::{Unconstrained, unconstrained},
    time::{Instant, Sleep},
};

/// The wall clock of every simulated world starts here (2026-01-01T00:00:00Z).
const SIMULATED_EPOCH_SECOND: i64 = 1_767_225_600;

/// Replaces all later moments that the clock cannot represent: 30 years.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// A point on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Instant);

impl Moment {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub(crate) fn now() -> Moment {
        Moment(Instant::now())
    }

    pub(crate) fn from_instant(instant: Instant) -> Moment {
        Moment(instant)
    }

    pub(crate) fn instant(self) -> Instant {
        self.0
    }

    /// The time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Moment) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }
}

impl std::ops::Add<Duration> for Moment {
    type Output = Moment;
    /// A sum that the clock cannot count is a moment in the far future.
    fn add(self, later: Duration) -> Moment {
        Moment(self.0.checked_add(later).unwrap_or_else(|| self.0 + FAR_FUTURE))
    }
}

/// A timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not done after {0:?}")]
pub struct Elapsed(pub Duration);

#[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
impl World {
    pub fn now(&self) -> Moment {
        match &self.0 {
            Kind::Real(_) | Kind::Simulated(_) => Moment::now(),
            Kind::Steered(steered) => steered.clock.now(),
        }
    }

    /// The wall clock. It may jump: measure with [`World::now`].
    pub fn wall(&self) -> Timestamp {
        match &self.0 {
            Kind::Real(_) => Timestamp::now(),
            Kind::Steered(steered) => steered.clock.wall(),
            Kind::Simulated(simulation) => {
                let epoch = Timestamp::constant(SIMULATED_EPOCH_SECOND, 0);
                epoch.saturating_add(simulation.elapsed(self.now())).unwrap_or(Timestamp::MAX)
            }
        }
    }

    pub async fn sleep(&self, duration: Duration) {
        match self.clock() {
            Some(clock) => clock.alarm(clock.now() + duration).await,
            None => tokio::time::sleep(duration).await,
        }
    }

    pub async fn sleep_until(&self, moment: Moment) {
        match self.clock() {
            Some(clock) => clock.alarm(moment).await,
            None => tokio::time::sleep_until(moment.0).await,
        }
    }

    /// Limits `work` to `limit`, counted from when it first has to wait; then it is dropped.
    pub fn timeout<T>(
        &self,
        limit: Duration,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T, Elapsed>> {
        Timeout { work, limit, clock: self.clock().cloned(), timer: None }
    }

    /// The clock that someone may steer.
    fn clock(&self) -> Option<&Clock> {
        match &self.0 {
            Kind::Steered(steered) => Some(&steered.clock),
            Kind::Real(_) | Kind::Simulated(_) => None,
        }
    }
}

pin_project! {
    /// Work with a limit. Most work never waits, and then needs no timer, which is large.
    struct Timeout<F> {
        #[pin]
        work: F,
        limit: Duration,
        clock: Option<Clock>,
        timer: Option<Timer>,
    }
}

enum Timer {
    OfRuntime(Pin<Box<Unconstrained<Sleep>>>),
    OfClock(Pin<Box<Unconstrained<Alarm>>>),
}

impl Timer {
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    fn start(clock: Option<&Clock>, limit: Duration) -> Timer {
        match clock {
            None => Timer::OfRuntime(Box::pin(unconstrained(tokio::time::sleep(limit)))),
            Some(clock) => Timer::OfClock(Box::pin(unconstrained(clock.alarm(clock.now() + limit)))),
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        match self {
            Timer::OfRuntime(timer) => timer.as_mut().poll(context),
            Timer::OfClock(timer) => timer.as_mut().poll(context),
        }
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.work.poll(context) {
            return Poll::Ready(Ok(output));
        }
        // Unconstrained: work that has used up its cooperative budget must not keep the timer from firing.
        let timer = this.timer.get_or_insert_with(|| Timer::start(this.clock.as_ref(), *this.limit));
        timer.poll(context).map(|()| Err(Elapsed(*this.limit)))
    }
}
