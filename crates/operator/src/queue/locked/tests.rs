//! Threads that take and add keys, in many orders that shuttle chooses.

use super::*;
use shuttle::{
    future::block_on,
    sync::Mutex as TriedMutex,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    thread,
};
use std::{future::poll_fn, sync::Arc, task::Poll};

const ORDERS: usize = 2000;

impl<T> Lock<T> for TriedMutex<T> {
    fn new(content: T) -> TriedMutex<T> {
        TriedMutex::new(content)
    }

    fn with<R>(&self, action: impl FnOnce(&mut T) -> R) -> R {
        action(&mut self.lock().unwrap())
    }
}

type TriedQueue = Locked<TriedMutex<WaitQueue>>;

/// [`super::super::Take`] without its clock.
async fn take(queue: &TriedQueue) -> Option<QueueItem> {
    let mut waiter = None;
    poll_fn(|context| match queue.take(waiter.take(), Time::ZERO, context.waker()) {
        TakeResult::Item(item) => Poll::Ready(Some(item)),
        TakeResult::Closed => Poll::Ready(None),
        TakeResult::Wait(next, _) => {
            waiter = Some(next);
            Poll::Pending
        }
    })
    .await
}

/// Three threads take keys, two add the same keys. A lost wake-up ends in a deadlock, which shuttle
/// reports; a key that is in progress twice shows in `busy`.
#[test]
fn no_key_is_lost_or_in_progress_twice() {
    shuttle::check_random(
        || {
            let queue = Arc::new(TriedQueue::new(Pace::default()));
            let [busy, done]: [Arc<[AtomicUsize; 2]>; 2] = std::array::from_fn(|_| Arc::default());
            let workers: Vec<_> = (0..3)
                .map(|_| {
                    let (queue, busy, done) = (queue.clone(), busy.clone(), done.clone());
                    thread::spawn(move || {
                        block_on(async {
                            while let Some(item) = take(&queue).await {
                                let which: usize = item.key.name().parse().unwrap();
                                assert_eq!(busy[which].fetch_add(1, SeqCst), 0, "two work on one key");
                                busy[which].fetch_sub(1, SeqCst);
                                done[which].fetch_add(1, SeqCst);
                                queue.finish(&item, Requeue::No, Time::ZERO);
                            }
                        });
                    })
                })
                .collect();
            let adders: Vec<_> = (0..2)
                .map(|_| {
                    let queue = queue.clone();
                    thread::spawn(move || {
                        for name in ["0", "1", "0"] {
                            queue.add(&Key::parse(name), Reason::Changed, Time::ZERO);
                        }
                    })
                })
                .collect();
            adders.into_iter().for_each(|adder| adder.join().unwrap());
            while queue.read(|sets| sets.stats(Time::ZERO)).in_progress
                + queue.read(|sets| sets.available(Time::ZERO))
                > 0
            {
                thread::yield_now();
            }
            queue.close(Time::ZERO);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            let counts = done.each_ref().map(|done| done.load(SeqCst));
            assert!((1..=4).contains(&counts[0]) && (1..=2).contains(&counts[1]), "{counts:?}");
        },
        ORDERS,
    );
}

/// A waiter that is woken and cancelled at the same time: another is woken instead.
#[test]
fn a_cancelled_waiter_passes_its_wake_up_on() {
    shuttle::check_random(
        || {
            let queue = Arc::new(TriedQueue::new(Pace::default()));
            let cancelled = thread::spawn({
                let queue = queue.clone();
                move || {
                    let waker = futures::task::noop_waker();
                    match queue.take(None, Time::ZERO, &waker) {
                        TakeResult::Wait(waiter, _) => queue.cancel(waiter, Time::ZERO),
                        TakeResult::Item(item) => {
                            queue.finish(&item, Requeue::Unfinished, Time::ZERO);
                        }
                        TakeResult::Closed => {}
                    }
                }
            });
            let waiting = thread::spawn({
                let queue = queue.clone();
                move || block_on(take(&queue)).expect("it is open")
            });
            queue.add(&Key::parse("a"), Reason::Changed, Time::ZERO);
            cancelled.join().unwrap();
            assert_eq!(waiting.join().unwrap().key, Key::parse("a"));
        },
        ORDERS,
    );
}

/// One key wakes one waiter; the others sleep on.
#[test]
fn as_many_waiters_are_woken_as_there_are_keys() {
    use std::{
        sync::atomic::{AtomicUsize as Count, Ordering::Relaxed},
        task::Wake,
    };
    struct Counter(Count);
    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let queue: Locked<Mutex<WaitQueue>> = Locked::new(Pace::default());
    let woken = Arc::new(Counter(Count::new(0)));
    let waker = Waker::from(woken.clone());
    let at = Duration::from_secs;
    for _ in 0..5 {
        assert!(matches!(queue.take(None, at(0), &waker), TakeResult::Wait(_, None)));
    }
    // The key, its delay, the time, and how many waiters have been woken by then.
    for (name, delay, now, calls) in [
        ("a", 0, 0, 1),
        ("a", 0, 0, 1),
        ("b", 0, 0, 2),
        // Two are awake; if they find no key, one of them becomes the timekeeper.
        ("c", 9, 0, 2),
        ("d", 0, 1, 3),
    ] {
        match delay {
            0 => queue.add(&Key::parse(name), Reason::Changed, at(now)),
            delay => queue.add_after(&Key::parse(name), Reason::Changed, at(delay), at(now)),
        };
        assert_eq!(woken.0.load(Relaxed), calls, "{name}");
    }
}
