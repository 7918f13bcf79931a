//! Threads at the door, in every order that a scheduler of our own makes up.

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

    fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.lock().unwrap())
    }
}

type TriedDoor = Door<TriedMutex<Inside>>;

/// A taker as [`super::super::Take`] is one, without its clock.
async fn take(door: &TriedDoor) -> Option<Turn> {
    let mut ticket = None;
    poll_fn(|context| match door.ask(ticket.take(), Time::ZERO, context.waker()) {
        Answer::Turn(turn) => Poll::Ready(Some(turn)),
        Answer::Closed => Poll::Ready(None),
        Answer::Wait(next, _) => {
            ticket = Some(next);
            Poll::Pending
        }
    })
    .await
}

/// Three threads work, two add the same keys. A call that goes nowhere ends in a deadlock, which
/// shuttle reports; a key that is handed out twice at a time shows in `busy`.
#[test]
fn no_key_is_lost_and_none_is_worked_on_twice_at_a_time() {
    shuttle::check_random(
        || {
            let door = Arc::new(TriedDoor::new(Pace::default()));
            let [busy, done]: [Arc<[AtomicUsize; 2]>; 2] = std::array::from_fn(|_| Arc::default());
            let workers: Vec<_> = (0..3)
                .map(|_| {
                    let (door, busy, done) = (door.clone(), busy.clone(), done.clone());
                    thread::spawn(move || {
                        block_on(async {
                            while let Some(turn) = take(&door).await {
                                let which: usize = turn.key.name().parse().unwrap();
                                assert_eq!(busy[which].fetch_add(1, SeqCst), 0, "two work on one key");
                                busy[which].fetch_sub(1, SeqCst);
                                done[which].fetch_add(1, SeqCst);
                                door.finish(&turn, Verdict::Settled, Time::ZERO);
                            }
                        });
                    })
                })
                .collect();
            let adders: Vec<_> = (0..2)
                .map(|_| {
                    let door = door.clone();
                    thread::spawn(move || {
                        for name in ["0", "1", "0"] {
                            door.add(&Key::parse(name), Why::Changed, Time::ZERO);
                        }
                    })
                })
                .collect();
            adders.into_iter().for_each(|adder| adder.join().unwrap());
            while door.look(|sets| sets.census(Time::ZERO)).in_work
                + door.look(|sets| sets.available(Time::ZERO))
                > 0
            {
                thread::yield_now();
            }
            door.close(Time::ZERO);
            workers.into_iter().for_each(|worker| worker.join().unwrap());
            let turns = done.each_ref().map(|done| done.load(SeqCst));
            assert!((1..=4).contains(&turns[0]) && (1..=2).contains(&turns[1]), "{turns:?}");
        },
        ORDERS,
    );
}

/// Somebody who is called and leaves at the same time: the call goes to the other.
#[test]
fn leaving_passes_the_call_on() {
    shuttle::check_random(
        || {
            let door = Arc::new(TriedDoor::new(Pace::default()));
            let leaver = thread::spawn({
                let door = door.clone();
                move || {
                    let waker = futures::task::noop_waker();
                    match door.ask(None, Time::ZERO, &waker) {
                        Answer::Wait(ticket, _) => door.leave(ticket, Time::ZERO),
                        Answer::Turn(turn) => {
                            door.finish(&turn, Verdict::Unfinished, Time::ZERO);
                        }
                        Answer::Closed => {}
                    }
                }
            });
            let stayer = thread::spawn({
                let door = door.clone();
                move || block_on(take(&door)).expect("it is open")
            });
            door.add(&Key::parse("a"), Why::Changed, Time::ZERO);
            leaver.join().unwrap();
            assert_eq!(stayer.join().unwrap().key, Key::parse("a"));
        },
        ORDERS,
    );
}

/// One key calls one sleeper; the rest sleep on.
#[test]
fn as_many_are_woken_as_there_are_keys() {
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
    let door: Door<Mutex<Inside>> = Door::new(Pace::default());
    let woken = Arc::new(Counter(Count::new(0)));
    let waker = Waker::from(woken.clone());
    let at = Duration::from_secs;
    for _ in 0..5 {
        assert!(matches!(door.ask(None, at(0), &waker), Answer::Wait(_, None)));
    }
    // What is added, when, and how many have been woken by then.
    for (name, delay, now, calls) in [
        ("a", 0, 0, 1),
        ("a", 0, 0, 1),
        ("b", 0, 0, 2),
        // Two are on their way; if they find nothing, one of them will mind the clock.
        ("c", 9, 0, 2),
        ("d", 0, 1, 3),
    ] {
        match delay {
            0 => door.add(&Key::parse(name), Why::Changed, at(now)),
            delay => door.add_after(&Key::parse(name), Why::Changed, at(delay), at(now)),
        };
        assert_eq!(woken.0.load(Relaxed), calls, "{name}");
    }
}
