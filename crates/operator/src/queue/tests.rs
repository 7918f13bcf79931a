//! The queue in a simulated world: which key is taken when.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

fn key(name: impl fmt::Display) -> Key {
    Key::new(Some("n"), &name.to_string())
}

/// Runs `story` under several seeds.
fn simulate<F: Future<Output = ()>>(story: impl Fn(World) -> F) {
    for seed in 0..20 {
        world::simulate(seed, &story).expect("no task waits for ever");
    }
}

#[test]
fn fresh_keys_go_first_but_background_keys_get_a_turn() {
    simulate(|world| async move {
        let queue = Queue::new(world, Pace { fresh_in_a_row: 3, ..Pace::default() });
        for name in ["r1", "r2"] {
            queue.add(&key(name), Reason::Resync);
        }
        for name in ["f1", "f2", "f3", "f4", "f5"] {
            queue.add(&key(name), Reason::Changed);
        }
        queue.add(&key("r2"), Reason::Changed);
        let mut order = vec![];
        while !queue.is_empty() {
            let taken = queue.take().await.expect("open");
            order.push(taken.key().name().to_owned());
            taken.finish(Requeue::No);
        }
        assert_eq!(order, ["f1", "f2", "f3", "r1", "f4", "f5", "r2"]);
        assert!(queue.is_idle());
    });
}

#[test]
fn a_key_is_never_in_progress_twice() {
    simulate(|world| async move {
        let queue = Queue::new(world.clone(), Pace::default());
        let (busy, turns) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (world, queue, busy, turns) = (world.clone(), queue.clone(), busy.clone(), turns.clone());
                world.clone().spawn("worker", async move {
                    while let Some(taken) = queue.take().await {
                        assert_eq!(busy.fetch_add(1, Relaxed), 0);
                        world.sleep(Duration::from_millis(10)).await;
                        busy.fetch_sub(1, Relaxed);
                        turns.fetch_add(1, Relaxed);
                        taken.finish(Requeue::No);
                    }
                })
            })
            .collect();
        for _ in 0..10 {
            queue.add(&key("a"), Reason::Changed);
            world.sleep(Duration::from_millis(7)).await;
        }
        world.sleep(Duration::from_millis(50)).await;
        assert!(queue.is_idle());
        // Added every 7 ms while a reconcile takes 10 ms: none is missed, and some reconciles serve two adds.
        assert_eq!(turns.load(Relaxed), 8);
        queue.close();
        for worker in workers {
            worker.await.expect("ends when the queue is closed");
        }
    });
}

#[test]
fn of_two_delays_the_shorter_counts() {
    simulate(|world| async move {
        let queue = Queue::new(world.clone(), Pace::default());
        let start = world.now();
        queue.add_after(&key("late"), Reason::Asked, Duration::from_secs(3600));
        queue.add_after(&key("soon"), Reason::Asked, Duration::from_secs(60));
        queue.add_after(&key("soon"), Reason::Asked, Duration::from_secs(30));
        queue.add_after(&key("soon"), Reason::Asked, Duration::from_secs(90));
        assert_eq!(queue.next_due(), Some(start + Duration::from_secs(30)));
        assert!(queue.is_idle(), "delayed keys do not count");
        let earliest = world.spawn("adder", {
            let (world, queue) = (world.clone(), queue.clone());
            async move {
                world.sleep(Duration::from_secs(5)).await;
                queue.add_after(&key("sooner"), Reason::Asked, Duration::from_secs(5));
            }
        });
        for (name, second) in [("sooner", 10), ("soon", 30), ("late", 3600)] {
            let taken = queue.take().await.expect("open");
            assert_eq!((taken.key().name(), world.now().since(start).as_secs()), (name, second));
            taken.finish(Requeue::No);
        }
        earliest.await.expect("ends");
    });
}

#[test]
fn pauses_grow_with_each_failure_until_the_object_changes() {
    simulate(|world| async move {
        let longest_pause = Duration::from_secs(60);
        let pace = Pace { dead_after: 4, longest_pause, jitter: 0.0, ..Pace::default() };
        let queue = Queue::new(world.clone(), pace);
        queue.add(&key("a"), Reason::Changed);
        let mut pauses = vec![];
        for failures in 1..=6 {
            let before = world.now();
            let taken = queue.take().await.expect("open");
            pauses.push(world.now().since(before).as_millis());
            let finished = taken.finish(Requeue::WithBackoff);
            assert_eq!((finished.failures, finished.is_dead), (failures, failures >= 4));
            assert_eq!(queue.is_idle(), finished.is_dead, "a dead key does not count as busy");
        }
        assert_eq!(pauses, [0, 5, 10, 20, 60_000, 60_000]);
        queue.add(&key("a"), Reason::Resync);
        let taken = queue.take().await.expect("open");
        assert_eq!(taken.failures(), 6, "a resync does not reset failures");
        assert_eq!(taken.finish(Requeue::WithBackoff).failures, 7);
        queue.add(&key("a"), Reason::Changed);
        let taken = queue.take().await.expect("open");
        assert_eq!(taken.failures(), 0);
        assert_eq!(taken.finish(Requeue::WithBackoff).failures, 1);
    });
}

#[test]
fn a_key_that_is_dropped_goes_back() {
    simulate(|world| async move {
        let queue = Queue::new(world, Pace::default());
        queue.add(&key("a"), Reason::Changed);
        drop(queue.take().await.expect("open"));
        let taken = queue.take().await.expect("open");
        assert_eq!((taken.key(), taken.reason(), taken.failures()), (&key("a"), Reason::Changed, 0));
    });
}

#[test]
fn a_cancelled_take_wakes_another() {
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
        queue.add(&key("a"), Reason::Changed);
        impatient.cancel();
        assert!(patient.await.expect("one of the two gets the key, or both"));
    });
}

#[test]
fn the_rate_limits_all_keys_together() {
    simulate(|world| async move {
        let rate = Some(Rate { per_second: 10.0, burst: 2 });
        let queue = Queue::new(world.clone(), Pace { rate, ..Pace::default() });
        let start = world.now();
        (0..5).for_each(|name| queue.add(&key(name), Reason::Changed));
        let mut times = vec![];
        for _ in 0..5 {
            let taken = queue.take().await.expect("open");
            times.push(world.now().since(start).as_millis());
            taken.finish(Requeue::No);
        }
        assert_eq!(times, [0, 0, 100, 200, 300]);
    });
}

#[test]
fn keys_that_were_refused_are_added_later() {
    simulate(|world| async move {
        for (keys, refused) in [(10, 0), (11, 1), (14, 4), (95, 85)] {
            let queue = Queue::new(world.clone(), Pace { limit: 10, ..Pace::default() });
            queue.refill_from(move || (0..keys).map(key).collect());
            (0..keys).for_each(|name| queue.add(&key(name), Reason::Changed));
            assert_eq!((queue.len(), queue.stats().refused), (10, refused));
            let mut seen = std::collections::BTreeSet::new();
            while !queue.is_empty() {
                let taken = queue.take().await.expect("open");
                seen.insert(taken.key().clone());
                taken.finish(Requeue::No);
            }
            assert_eq!(seen.len(), keys);
        }
    });
}
