//! Time, random numbers and tasks through one cheap handle: real, or simulated on one thread from one seed.
//!
//! Everything that makes two runs of a program differ comes through a [`World`]. In the real one, time is the
//! machine's and tasks run on tokio's threads. In a simulated one, an hour of timers passes as soon as every
//! task waits for it, the seed decides which of the ready tasks runs next and every random number, and the
//! same seed gives the same run:
//!
//! ```
//! use std::time::Duration;
//!
//! let run = world::simulate(42, |world| async move {
//!     let hour = world.spawn("sleeper", {
//!         let world = world.clone();
//!         async move { world.sleep(Duration::from_secs(3600)).await }
//!     });
//!     hour.await.expect("the sleeper is not cancelled");
//!     world.name_suffix()
//! })
//! .expect("every task can finish");
//! assert_eq!(run.elapsed, Duration::from_secs(3600));
//! assert_eq!(run.output.len(), 5);
//! ```

mod chance;
mod clock;
mod simulation;
mod task;
mod time;
pub mod watch;

pub use clock::Clock;
pub use jiff::Timestamp;
pub use simulation::{Run, Stuck, simulate};
pub use task::{Stopped, Task};
pub use time::{Elapsed, Moment};

use simulation::Simulation;
use std::{future::Future, io, sync::Arc, thread};

/// The handle for time, random numbers and tasks.
#[derive(Clone, Debug)]
pub struct World(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real(tokio::runtime::Handle),
    /// Real but for its time.
    Steered(Arc<Steered>),
    Simulated(Arc<Simulation>),
}

/// A real world with another clock. Behind an `Arc`, so that handles stay small: they are in most futures.
#[derive(Debug)]
struct Steered {
    runtime: tokio::runtime::Handle,
    clock: Clock,
}

impl World {
    /// The real world, on the tokio runtime that calls this.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn real() -> World {
        World(Kind::Real(tokio::runtime::Handle::current()))
    }

    /// The real world with a clock that can be frozen and moved on, on the tokio runtime that calls this.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn steered(clock: &Clock) -> World {
        let runtime = tokio::runtime::Handle::current();
        World(Kind::Steered(Arc::new(Steered { runtime, clock: clock.clone() })))
    }

    fn simulated(simulation: Arc<Simulation>) -> World {
        World(Kind::Simulated(simulation))
    }

    /// Runs `work` concurrently. The task is cancelled when its [`Task`] is dropped.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let (body, task) = task::split(work);
        match &self.0 {
            Kind::Real(runtime) => drop(runtime.spawn(body)),
            Kind::Steered(steered) => drop(steered.runtime.spawn(steered.clock.counted(body))),
            Kind::Simulated(simulation) => simulation.add(name, Box::pin(body)),
        }
        task
    }

    /// Runs `work`, which may block its thread, without holding up other tasks. A simulated world has one
    /// thread and runs it in place.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self.runtime() {
            Some(runtime) => match runtime.spawn_blocking(work).await {
                Ok(output) => output,
                Err(stopped) => std::panic::resume_unwind(stopped.into_panic()),
            },
            None => work(),
        }
    }

    /// Runs `work`, which takes much processor time, on this thread; other tasks of this thread move to
    /// others. A simulated world has one thread.
    pub fn long<T>(&self, work: impl FnOnce() -> T) -> T {
        use tokio::runtime::RuntimeFlavor::CurrentThread;
        match self.runtime() {
            // A runtime of one thread has no other thread to run the other tasks.
            Some(runtime) if runtime.runtime_flavor() == CurrentThread => work(),
            Some(_) => tokio::task::block_in_place(work),
            None => work(),
        }
    }

    /// Whether every thread that runs tasks waits for something: then nothing happens in this process before a timer, a
    /// socket or another thread wakes a task.
    pub fn do_threads_wait(&self) -> bool {
        let Some(runtime) = self.runtime() else { return false };
        let metrics = runtime.metrics();
        // A thread counts each time that it begins and ends to wait.
        let waits = |worker| metrics.worker_park_unpark_count(worker) % 2 == 1;
        metrics.global_queue_depth() == 0 && (0..metrics.num_workers()).all(waits)
    }

    /// The runtime of a world that is not simulated.
    fn runtime(&self) -> Option<&tokio::runtime::Handle> {
        match &self.0 {
            Kind::Real(runtime) => Some(runtime),
            Kind::Steered(steered) => Some(&steered.runtime),
            Kind::Simulated(_) => None,
        }
    }

    /// Runs `work` on its own thread, for loops that block on a disk. A simulated world has one thread, and
    /// fails.
    pub fn thread(
        &self,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<thread::JoinHandle<()>> {
        match &self.0 {
            Kind::Real(_) | Kind::Steered(..) => thread::Builder::new().name(name.to_owned()).spawn(work),
            Kind::Simulated(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated world has a single thread"))
            }
        }
    }
}

/// Starts a real world on all cores and runs `main` in it to the end.
pub fn run<T, F: Future<Output = T>>(main: impl FnOnce(World) -> F) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let output = runtime.block_on(async { main(World::real()).await });
    // Pending blocking work must not hold up the exit of the process.
    runtime.shutdown_background();
    Ok(output)
}

/// Runs `main` in a real world on a thread of its own, beside a simulated one: for the sockets of a test. The
/// thread ends with `main`; other tasks of that world are dropped then.
pub fn run_beside<F: Future<Output = ()>>(
    name: &str,
    main: impl FnOnce(World) -> F + Send + 'static,
) -> io::Result<thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        runtime.block_on(async { main(World::real()).await });
        runtime.shutdown_background();
    })
}
