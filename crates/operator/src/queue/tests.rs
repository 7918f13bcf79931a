//! The queue on a simulated world: who gets which key, when, and who is woken for it.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn key(name: impl fmt::Display) -> Key {
    Key::new(Some("n"), &name.to_string())
}

/// Runs `story` under several seeds.
fn simulate<F: Future<Output = ()>>(story: impl Fn(World) -> F) {
    for seed in 0..20 {
        world::simulate(seed, &story).expect("nobody waits for ever");
    }
}

#[test]
fn fresh_keys_go_first_but_not_for_ever() {
    simulate(|world| async move {
        let queue = Queue::new(world, Pace { fresh_in_a_row: 3, ..Pace::default() });
        for name in ["r1", "r2"] {
            queue.add(&key(name), Why::Resync);
        }
        for name in ["f1", "f2", "f3", "f4", "f5"] {
            queue.add(&key(name), Why::Changed);
        }
        queue.add(&key("r2"), Why::Changed);
        let mut order = vec![];
        while !queue.is_empty() {
            let work = queue.take().await.expect("open");
            order.push(work.key().name().to_owned());
            work.finish(Verdict::Settled);
        }
        assert_eq!(order, ["f1", "f2", "f3", "r1", "f4", "f5", "r2"]);
        assert!(queue.is_idle());
    });
}

#[test]
fn a_key_is_never_worked_on_twice_at_a_time() {
    simulate(|world| async move {
        let queue = Queue::new(world.clone(), Pace::default());
        let (busy, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (world, queue, busy, turns) = (world.clone(), queue.clone(), busy.clone(), turns.clone());
                world.clone().spawn("worker", async move {
                    while let Some(work) = queue.take().await {
                        assert_eq!(busy.fetch_add(1, Relaxed), 0);
                        world.sleep(Duration::from_millis(10)).await;
                        busy.fetch_sub(1, Relaxed);
                        turns.fetch_add(1, Relaxed);
                        work.finish(Verdict::Settled);
                    }
                })
            })
            .collect();
        for _ in 0..10 {
            queue.add(&key("a"), Why::Changed);
            world.sleep(Duration::from_millis(7)).await;
        }
        world.sleep(Duration::from_millis(50)).await;
        assert!(queue.is_idle());
        // Added every 7 ms, each look takes 10: none is missed, and some stand for two.
        assert_eq!(turns.load(Relaxed), 8);
        queue.close();
        for worker in workers {
            worker.await.expect("ends when the queue is closed");
        }
    });
}

#[test]
fn delays_end_on_time_and_the_earlier_wins() {
    simulate(|world| async move {
        let queue = Queue::new(world.clone(), Pace::default());
        let start = world.now();
        queue.add_after(&key("late"), Why::Asked, Duration::from_secs(3600));
        queue.add_after(&key("soon"), Why::Asked, Duration::from_secs(60));
        queue.add_after(&key("soon"), Why::Asked, Duration::from_secs(30));
        queue.add_after(&key("soon"), Why::Asked, Duration::from_secs(90));
        assert_eq!(queue.next_due(), Some(start + Duration::from_secs(30)));
        assert!(queue.is_idle(), "what is to come does not count");
        let earliest = world.spawn("adder", {
            let (world, queue) = (world.clone(), queue.clone());
            async move {
                world.sleep(Duration::from_secs(5)).await;
                queue.add_after(&key("sooner"), Why::Asked, Duration::from_secs(5));
            }
        });
        for (name, second) in [("sooner", 10), ("soon", 30), ("late", 3600)] {
            let work = queue.take().await.expect("open");
            assert_eq!((work.key().name(), world.now().since(start).as_secs()), (name, second));
            work.finish(Verdict::Settled);
        }
        earliest.await.expect("ends");
    });
}

#[test]
fn failures_rest_longer_each_time_until_something_changes() {
    simulate(|world| async move {
        let pace = Pace { dead_after: 4, longest_pause: Duration::from_secs(60), ..Pace::default() };
        let queue = Queue::new(world.clone(), pace);
        queue.add(&key("a"), Why::Changed);
        let mut rests = vec![];
        for failures in 1..=6 {
            let before = world.now();
            let work = queue.take().await.expect("open");
            rests.push(world.now().since(before).as_millis());
            let standing = work.finish(Verdict::Retry);
            assert_eq!(standing, Standing { failures, is_dead: failures >= 4 });
            assert_eq!(queue.is_idle(), standing.is_dead, "a dead key keeps nobody waiting");
        }
        assert_eq!(rests, [0, 5, 10, 20, 60_000, 60_000]);
        queue.add(&key("a"), Why::Resync);
        let work = queue.take().await.expect("open");
        assert_eq!(work.failures(), 6, "a resync is no news");
        assert_eq!(work.finish(Verdict::Retry).failures, 7);
        queue.add(&key("a"), Why::Changed);
        let work = queue.take().await.expect("open");
        assert_eq!(work.failures(), 0);
        assert_eq!(work.finish(Verdict::Retry).failures, 1);
    });
}

#[test]
fn work_that_is_dropped_comes_back() {
    simulate(|world| async move {
        let queue = Queue::new(world, Pace::default());
        queue.add(&key("a"), Why::Changed);
        drop(queue.take().await.expect("open"));
        let work = queue.take().await.expect("open");
        assert_eq!((work.key(), work.why(), work.failures()), (&key("a"), Why::Changed, 0));
    });
}

#[test]
fn a_taker_that_leaves_passes_its_call_on() {
    simulate(|world| async move {
        let queue = Queue::new(world.clone(), Pace::default());
        let impatient = world.spawn("impatient", {
            let (world, queue) = (world.clone(), queue.clone());
            async move { world.timeout(Duration::from_millis(5), queue.take()).await.is_ok() }
        });
        let patient = world.spawn("patient", {
            let queue = queue.clone();
            async move { queue.take().await.is_some() }
        });
        world.sleep(Duration::from_millis(5)).await;
        queue.add(&key("a"), Why::Changed);
        impatient.cancel();
        assert!(patient.await.expect("one of the two gets the key, or both"));
    });
}

#[test]
fn rate_holds_over_all_keys() {
    simulate(|world| async move {
        let rate = Some(Rate { per_second: 10.0, burst: 2 });
        let queue = Queue::new(world.clone(), Pace { rate, ..Pace::default() });
        let start = world.now();
        (0..5).for_each(|name| queue.add(&key(name), Why::Changed));
        let mut times = vec![];
        for _ in 0..5 {
            let work = queue.take().await.expect("open");
            times.push(world.now().since(start).as_millis());
            work.finish(Verdict::Settled);
        }
        assert_eq!(times, [0, 0, 100, 200, 300]);
    });
}

#[test]
fn what_finds_no_room_comes_in_later() {
    simulate(|world| async move {
        for (keys, refused) in [(10, 0), (11, 1), (14, 4), (95, 85)] {
            let queue = Queue::new(world.clone(), Pace { limit: 10, ..Pace::default() });
            queue.refill_from(move || (0..keys).map(key).collect());
            (0..keys).for_each(|name| queue.add(&key(name), Why::Changed));
            assert_eq!((queue.len(), queue.census().refused), (10, refused));
            let mut seen = std::collections::BTreeSet::new();
            while !queue.is_empty() {
                let work = queue.take().await.expect("open");
                seen.insert(work.key().clone());
                work.finish(Verdict::Settled);
            }
            assert_eq!(seen.len(), keys);
        }
    });
}
