//! Runs CPU-heavy requests, a few at a time, beside the threads that serve sockets.

use futures::future::BoxFuture;
use std::{
    collections::VecDeque,
    future::Future,
    num::NonZero,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    thread::available_parallelism,
};
use world::World;

/// Requests with larger bodies run here. Smaller ones are done before others notice.
pub(crate) const LONG: usize = 64 << 10;

/// Limits concurrent work to the number of processors. More would only take turns.
#[derive(Debug)]
pub(crate) struct Workplaces(Mutex<FreePlaces>);

#[derive(Debug)]
struct FreePlaces {
    free: usize,
    waiting: VecDeque<Waker>,
}

impl Default for Workplaces {
    fn default() -> Workplaces {
        let free = available_parallelism().map_or(1, NonZero::get);
        Workplaces(Mutex::new(FreePlaces { free, waiting: VecDeque::new() }))
    }
}

impl Workplaces {
    /// Runs the work of a request with a body of that many bytes.
    pub(crate) async fn run<T>(&self, world: &World, size: usize, work: BoxFuture<'_, T>) -> T {
        if size < LONG {
            return work.await;
        }
        Long { places: self, world, work }.await
    }

    /// Takes a place; without one, `waker` is woken when there is.
    fn enter(&self, waker: &Waker) -> Option<TakenPlace<'_>> {
        let mut places = self.lock();
        if places.free == 0 {
            places.waiting.push_back(waker.clone());
            return None;
        }
        places.free -= 1;
        Some(TakenPlace(self))
    }

    fn lock(&self) -> MutexGuard<'_, FreePlaces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A taken place, freed on drop.
struct TakenPlace<'a>(&'a Workplaces);

impl Drop for TakenPlace<'_> {
    fn drop(&mut self) {
        let mut places = self.0.lock();
        places.free += 1;
        // Wake all: the first one's request may have been dropped.
        let waiting = std::mem::take(&mut places.waiting);
        drop(places);
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Work that holds a place while it runs, and none while it waits.
struct Long<'a, T> {
    places: &'a Workplaces,
    world: &'a World,
    work: BoxFuture<'a, T>,
}

impl<T> Future for Long<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(_place) = self.places.enter(context.waker()) else { return Poll::Pending };
        let Long { world, work, .. } = &mut *self;
        world.long(|| work.as_mut().poll(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Barrier};

    #[test]
    fn short_requests_run_while_long_ones_work() {
        world::run(|world| async move {
            let places = Arc::new(Workplaces::default());
            let many = available_parallelism().map_or(1, NonZero::get) * 4;
            let until = Arc::new(Barrier::new(2));
            let work = |number: usize| {
                let (places, world, until) = (Arc::clone(&places), world.clone(), Arc::clone(&until));
                world.clone().spawn("long", async move {
                    let block = Box::pin(async move {
                        // The first blocks its thread until the short request below is done.
                        if number == 0 {
                            until.wait();
                        }
                    });
                    places.run(&world, LONG, block).await;
                })
            };
            let long: Vec<_> = (0..many).map(work).collect();
            for _ in 0..many {
                let small = world.spawn("small", async {});
                small.await.unwrap();
            }
            until.wait();
            for task in long {
                task.await.unwrap();
            }
            assert_eq!(places.lock().free, available_parallelism().map_or(1, NonZero::get));
        })
        .unwrap();
    }
}
