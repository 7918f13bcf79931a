//! One seed, one run: the guarantees of a simulated world, and that the real one keeps time too.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use world::{Stopped, Stuck, World, simulate};

/// Several tasks that sleep, draw and talk; the trace is what they did, in order.
async fn busy_program(world: World) -> Vec<String> {
    let trace = Arc::new(Mutex::new(Vec::new()));
    let (sender, mut inbox) = tokio::sync::mpsc::channel(4);
    let mut tasks = Vec::new();
    for number in 0..5 {
        let (world, trace, sender) = (world.clone(), Arc::clone(&trace), sender.clone());
        tasks.push(world.clone().spawn("worker", async move {
            for round in 0..10 {
                let pause = world.jitter(Duration::from_millis(10), 2.0);
                world.sleep(pause).await;
                let word = format!("{} {number}.{round} {}", world.wall(), world.name_suffix());
                trace.lock().unwrap().push(word);
                sender.send(world.pick(0..1000)).await.unwrap();
            }
        }));
    }
    drop(sender);
    while let Some(number) = inbox.recv().await {
        trace.lock().unwrap().push(format!("got {number}"));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let uid = world.uid();
    let mut trace = std::mem::take(&mut *trace.lock().unwrap());
    trace.push(uid);
    trace
}

#[test]
fn same_seed_same_trace_and_another_seed_another() {
    let first = simulate(7, busy_program).unwrap();
    let again = simulate(7, busy_program).unwrap();
    let other = simulate(8, busy_program).unwrap();
    assert_eq!(first.output, again.output);
    assert_eq!((first.fingerprint, first.turns), (again.fingerprint, again.turns));
    assert_ne!(first.output, other.output);
    assert_ne!(first.fingerprint, other.fingerprint);
    assert_eq!(first.output.len(), 101);
}

#[test]
fn the_seed_decides_which_ready_task_runs_first() {
    async fn race(world: World) -> Vec<u32> {
        let order = Arc::new(Mutex::new(Vec::new()));
        let runners = (0..4).map(|number| {
            let order = Arc::clone(&order);
            world.spawn("runner", async move { order.lock().unwrap().push(number) })
        });
        for runner in runners.collect::<Vec<_>>() {
            runner.await.unwrap();
        }
        std::mem::take(&mut order.lock().unwrap())
    }
    let orders: std::collections::BTreeSet<_> =
        (0..200).map(|seed| simulate(seed, race).unwrap().output).collect();
    assert_eq!(orders.len(), 24, "200 seeds find every one of the 4! orders");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "measures the machine's own clock")]
fn an_hour_of_timers_passes_without_waiting() {
    const PERIODS: [u64; 10] = [1, 2, 3, 4, 5, 6, 8, 9, 10, 12];
    let before = std::time::Instant::now();
    let run = simulate(1, |world| async move {
        let tickers: Vec<_> = PERIODS
            .into_iter()
            .map(|period| {
                let world = world.clone();
                world.clone().spawn("ticker", async move {
                    let mut ticks = 0;
                    while ticks * period < 3600 {
                        world.sleep(Duration::from_secs(period)).await;
                        ticks += 1;
                    }
                    ticks
                })
            })
            .collect();
        let mut all = 0;
        for ticker in tickers {
            all += ticker.await.unwrap();
        }
        all
    })
    .unwrap();
    assert_eq!(run.elapsed.as_secs(), 3600);
    assert_eq!(run.output, PERIODS.map(|period| 3600 / period).into_iter().sum::<u64>());
    // Ten thousand timers; a machine a hundred times slower than ours would still pass.
    assert!(before.elapsed() < Duration::from_secs(30));
}

#[test]
fn deadlocks_are_reported_with_task_names() {
    let stuck = simulate(3, |world| async move {
        let (_keep, never) = tokio::sync::oneshot::channel::<()>();
        world.spawn("hopeful", async move { drop(never.await) }).await
    })
    .unwrap_err();
    assert_eq!(stuck, Stuck { seed: 3, waiting: vec!["main", "hopeful"] });
}

#[test]
fn dropped_tasks_are_cancelled_and_detached_ones_go_on() {
    let run = simulate(5, |world| async move {
        let count = Arc::new(Mutex::new(0));
        let add = |amount: u32| {
            let (world, count) = (world.clone(), Arc::clone(&count));
            async move {
                world.sleep(Duration::from_secs(1)).await;
                *count.lock().unwrap() += amount;
            }
        };
        drop(world.spawn("dropped", add(1)));
        world.spawn("detached", add(10)).detach();
        let cancelled = world.spawn("cancelled", add(100));
        cancelled.cancel();
        assert_eq!(cancelled.await, Err(Stopped));
        world.sleep(Duration::from_secs(2)).await;
        std::mem::take(&mut *count.lock().unwrap())
    })
    .unwrap();
    assert_eq!(run.output, 10);
}

#[test]
fn a_timeout_cuts_off_at_its_limit() {
    let run = simulate(5, |world| async move {
        let late = world.timeout(Duration::from_secs(5), world.sleep(Duration::from_secs(6))).await;
        let soon = world.timeout(Duration::from_secs(5), world.sleep(Duration::from_secs(4))).await;
        (late.is_err(), soon.is_ok())
    })
    .unwrap();
    assert_eq!((run.output, run.elapsed), ((true, true), Duration::from_secs(9)));
}

#[test]
fn uids_and_suffixes_have_their_form() {
    let check = |world: &World| {
        let uid = world.uid();
        let parts: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{uid}");
        assert_eq!(&uid[14..15], "4", "{uid}");
        assert!("89ab".contains(&uid[19..20]), "{uid}");
        assert!(world.name_suffix().bytes().all(|letter| b"bcdfghjklmnpqrstvwxz2456789".contains(&letter)));
        assert_eq!(world.pick(3..3), 3);
        assert!((5..8).contains(&world.pick(5..8)));
        assert!(!world.chance(0.0) && world.chance(1.0));
    };
    simulate(9, |world| async move { check(&world) }).unwrap();
    world::run(|world| async move { check(&world) }).unwrap();
}

#[test]
fn the_real_world_sleeps_spawns_and_blocks() {
    let slept = world::run(|world| async move {
        let before = world.now();
        let task = world.spawn("sleeper", {
            let world = world.clone();
            async move { world.sleep(Duration::from_millis(20)).await }
        });
        task.await.unwrap();
        assert_eq!(world.blocking(|| 6 * 7).await, 42);
        world.now().since(before)
    })
    .unwrap();
    assert!(slept >= Duration::from_millis(20), "{slept:?}");
}

#[test]
fn a_simulated_world_has_no_threads() {
    let run = simulate(1, |world| async move { world.thread("writer", || ()).map(drop) }).unwrap();
    assert_eq!(run.output.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
}
