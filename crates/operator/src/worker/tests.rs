//! Reconciles that end in every possible way, and what becomes of their keys.

use super::*;
use crate::queue::Reason;
use futures::future::BoxFuture;
use std::{
    collections::BTreeMap,
    sync::Mutex,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Does what the name of its key says: `settle`, `check`, `wait`, `fail`, `conflict`, `terminal`,
/// `panic`, `hang`; and counts.
struct Named {
    world: World,
    turns: Mutex<BTreeMap<String, usize>>,
}

impl Reconcile for Named {
    fn reconcile(&self, key: Key, _: Reason) -> BoxFuture<'static, Result<Next, Failure>> {
        let mut turns = self.turns.lock().unwrap();
        let turn = turns.entry(key.name().to_owned()).or_default();
        *turn += 1;
        let turn = *turn;
        drop(turns);
        assert!(key.name() != "panic at once", "before the first await");
        let world = self.world.clone();
        Box::pin(async move {
            match key.name() {
                "check" => Ok(Next::CheckAfter(Duration::from_secs(100))),
                "wait" => Ok(Next::WaitFor("rain")),
                "fail" => Err(Failure::transient("no luck")),
                "fail twice" if turn <= 2 => Err(Failure::transient("no luck")),
                "conflict" => Err(Failure::Conflict("too late".into())),
                "terminal" => Err(Failure::terminal("Broken", "beyond repair")),
                "panic" => panic!("a bug"),
                "hang" => std::future::pending().await,
                "slow" => {
                    world.sleep(Duration::from_secs(10)).await;
                    Ok(Next::Settled)
                }
                _ => Ok(Next::Settled),
            }
        })
    }
}

struct Shop {
    world: World,
    queue: Queue,
    named: Arc<Named>,
    told: Arc<Mutex<Vec<String>>>,
    metrics: Metrics,
    workers: Workers,
}

impl Shop {
    fn open(world: &World, pace: Pace) -> Shop {
        let (metrics, told) = (Metrics::default(), Arc::<Mutex<Vec<String>>>::default());
        let on_failure: OnFailure = Arc::new({
            let told = told.clone();
            move |key, reason, message| told.lock().unwrap().push(format!("{key}: {reason}: {message}"))
        });
        let settings = Settings {
            workers: 3,
            deadline: Duration::from_secs(30),
            pace,
            on_failure: Some(on_failure),
            ..Settings::default()
        };
        let queue = queue(world, "shop", &settings, &metrics);
        let named = Arc::new(Named { world: world.clone(), turns: Mutex::default() });
        let workers = spawn(world, "shop", queue.clone(), named.clone(), settings, &metrics);
        Shop { world: world.clone(), queue, named, told, metrics, workers }
    }

    fn add(&self, name: &str) {
        self.queue.add(&Key::parse(name), Reason::Changed);
    }

    fn turns(&self, name: &str) -> usize {
        self.named.turns.lock().unwrap().get(name).copied().unwrap_or(0)
    }

    fn sample(&self, name: &str) -> String {
        let page = self.metrics.render();
        let line = page.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.rsplit(' ').next().unwrap_or_default().to_owned()
    }
}

fn simulate<F: Future<Output = ()>>(story: impl Fn(World) -> F) {
    for seed in 0..5 {
        world::simulate(seed, &story).expect("no task waits for ever");
    }
}

#[test]
fn every_outcome_requeues_its_key_accordingly() {
    // The name of the key, how often it was reconciled in 90 seconds, and where it is then.
    let cases = [
        ("settle", 1, "nowhere"),
        ("check", 1, "delayed"),
        ("wait", 1, "nowhere"),
        // 0, 1, 3, 7, 15, 31 and 63 seconds.
        ("fail", 7, "resting"),
        ("fail twice", 3, "nowhere"),
        // Three more at once; then as if each of those had been a failure: 8, 24, 56 seconds.
        ("conflict", 7, "resting"),
        ("terminal", 1, "nowhere"),
        ("panic", 7, "resting"),
        ("panic at once", 7, "resting"),
        // Each takes 30 seconds: 0, 31, 63.
        ("hang", 3, "in work"),
    ];
    simulate(|world| async move {
        for (name, turns, place) in cases {
            let shop = Shop::open(
                &world,
                Pace { first_pause: Duration::from_secs(1), jitter: 0.0, ..Pace::default() },
            );
            shop.add(name);
            shop.world.sleep(Duration::from_secs(90)).await;
            let stats = shop.queue.stats();
            let found = match (stats.in_progress, stats.in_back_off, stats.delayed) {
                (0, 0, 0) => "nowhere",
                (1, 0, 0) => "in work",
                (0, 1, 0) => "resting",
                (0, 0, 1) => "delayed",
                _ => "everywhere",
            };
            assert_eq!((shop.turns(name), found), (turns, place), "{name}");
            let waits = if name == "wait" { vec![(Key::parse(name), "rain")] } else { vec![] };
            assert_eq!(shop.queue.waits(), waits, "{name}");
            let told: &[String] =
                if name == "terminal" { &["terminal: Broken: beyond repair".to_owned()] } else { &[] };
            assert_eq!(*shop.told.lock().unwrap(), told, "{name}");
        }
    });
}

#[test]
fn a_key_that_keeps_failing_is_a_dead_letter_until_it_succeeds() {
    simulate(|world| async move {
        let longest_pause = Duration::from_secs(1000);
        let shop = Shop::open(&world, Pace { dead_after: 2, longest_pause, jitter: 0.0, ..Pace::default() });
        shop.add("fail twice");
        shop.add("fail");
        world.sleep(Duration::from_secs(60)).await;
        let letters: Vec<_> = shop.queue.dead_letters();
        let found: Vec<_> =
            letters.iter().map(|dead| (dead.key.as_str(), dead.failures, dead.message.as_str())).collect();
        assert_eq!(found, [("fail", 2, "no luck"), ("fail twice", 2, "no luck")]);
        assert!(shop.queue.is_idle());
        shop.add("fail twice");
        world.sleep(Duration::from_secs(1000)).await;
        let letters: Vec<_> = shop.queue.dead_letters();
        let found: Vec<_> = letters.iter().map(|dead| (dead.key.as_str(), dead.failures)).collect();
        assert_eq!(found, [("fail", 3)], "tried again after the longest pause");
        assert_eq!(letters[0].since.as_second() % 60, 0, "dead since the second failure");
    });
}

#[test]
fn stopping_waits_for_reconciles_up_to_the_grace_period() {
    simulate(|world| async move {
        for (name, grace, unfinished, took) in [
            ("slow", 20, vec![], 10),
            ("hang", 20, vec![Key::parse("hang")], 20),
            ("slow", 0, vec![Key::parse("slow")], 0),
        ] {
            let shop = Shop::open(&world, Pace::default());
            shop.add(name);
            world.sleep(Duration::from_millis(1)).await;
            shop.add("settle");
            shop.queue.close();
            let begun = world.now();
            let Shop { workers, queue, .. } = shop;
            assert_eq!(workers.stop(Duration::from_secs(grace)).await, unfinished, "{name}");
            assert_eq!(world.now().since(begun).as_secs(), took.min(world.now().since(begun).as_secs()));
            assert_eq!(queue.len(), 1, "a key added after the stop still waits");
        }
    });
}

#[test]
fn dropping_the_workers_cancels_their_reconciles() {
    simulate(|world| async move {
        let shop = Shop::open(&world, Pace::default());
        shop.add("hang");
        world.sleep(Duration::from_secs(1)).await;
        let Shop { workers, queue, metrics, .. } = shop;
        drop(workers);
        world.sleep(Duration::from_secs(1)).await;
        assert_eq!((queue.stats().in_progress, queue.len()), (0, 1), "the key waits for another worker");
        assert!(metrics.render().contains("controller_runtime_active_workers{controller=\"shop\"} 0\n"));
    });
}

#[test]
fn outcomes_are_counted() {
    simulate(|world| async move {
        let shop = Shop::open(&world, Pace { first_pause: Duration::from_secs(900), ..Pace::default() });
        for name in ["settle", "wait", "check", "fail", "terminal", "panic", "hang"] {
            shop.add(name);
        }
        world.sleep(Duration::from_secs(60)).await;
        for (name, count) in [
            ("controller_runtime_reconcile_total{controller=\"shop\",result=\"success\"}", "2"),
            ("controller_runtime_reconcile_total{controller=\"shop\",result=\"requeue_after\"}", "1"),
            ("controller_runtime_reconcile_total{controller=\"shop\",result=\"error\"}", "4"),
            ("controller_runtime_terminal_reconcile_errors_total", "1"),
            ("controller_runtime_reconcile_panics_total", "1"),
            ("controller_runtime_reconcile_timeouts_total", "1"),
            ("controller_runtime_active_workers", "0"),
            ("workqueue_queue_duration_seconds_count", "7"),
        ] {
            assert_eq!(shop.sample(name), count, "{name}");
        }
    });
}

#[test]
fn a_reconcile_that_blocks_its_worker_makes_the_controller_unhealthy() {
    simulate(|world| async move {
        let shop = Shop::open(&world, Pace::default());
        assert_eq!(shop.queue.health(), Ok(()), "idle is healthy");
        // Taken by the test and not by a worker, so that no deadline ends it: like a reconcile that blocks its thread.
        shop.workers.pool.queue.close();
        let queue = Queue::new(world.clone(), Pace::default());
        queue.add(&Key::parse("a"), Reason::Changed);
        world.sleep(Duration::from_secs(3600)).await;
        assert_eq!(queue.health(), Ok(()), "it has no workers yet");
        queue.set_workers(WorkerSettings { workers: 1, deadline: Duration::from_secs(30) });
        assert!(queue.health().is_err(), "a key waits and is not taken");
        let work = queue.take().await.expect("open");
        assert_eq!(queue.health(), Ok(()));
        world.sleep(Duration::from_secs(61)).await;
        assert!(queue.health().is_err(), "its deadline is over");
        work.finish(Requeue::No);
        assert_eq!(queue.health(), Ok(()));
    });
}

/// Empty reconciles, with two workers on two threads. The bench measures their rate; this only fails if
/// they become ten times slower.
#[test]
fn a_hundred_thousand_empty_reconciles_are_fast() {
    struct Empty(AtomicUsize);
    impl Reconcile for Empty {
        fn reconcile(&self, _: Key, _: Reason) -> BoxFuture<'static, Result<Next, Failure>> {
            self.0.fetch_add(1, Relaxed);
            Box::pin(std::future::ready(Ok(Next::Settled)))
        }
    }
    let keys: Vec<_> = (0..100_000).map(|name| Key::new(Some("n"), &name.to_string())).collect();
    let took = world::run(|world| async move {
        let settings = Settings { workers: 2, ..Settings::default() };
        let queue = queue(&world, "empty", &settings, &Metrics::default());
        let empty = Arc::new(Empty(AtomicUsize::new(0)));
        let begun = world.now();
        keys.iter().for_each(|key| queue.add(key, Reason::Initial));
        let workers = spawn(&world, "empty", queue.clone(), empty.clone(), settings, &Metrics::default());
        while !queue.is_idle() {
            world.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(empty.0.load(Relaxed), keys.len());
        assert_eq!(workers.stop(Duration::from_secs(1)).await, []);
        world.now().since(begun)
    });
    assert!(took.expect("a runtime") < Duration::from_secs(20));
}
