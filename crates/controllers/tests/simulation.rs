//! Random workloads under random faults: whatever happened, in the end everything is as the specs say.

mod driver;
mod faults;
mod oracle;

use driver::{Outcome, play};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

/// So many stories run in every test run; `cargo xtask simulate` runs more.
const SEEDS: u64 = 24;
/// Failing seeds that are looked at before the test stops.
const MAX_FAILURES: usize = 20;

/// Plays the story of a seed.
fn simulate(seed: u64) -> Outcome {
    testkit::simulate(seed, |cluster| play(cluster, seed)).output
}

#[test]
fn workloads_under_faults_end_as_their_specs_say() {
    let seeds = testkit::seeds(SEEDS);
    let (mut failed, mut requests, mut simulated) = (Vec::new(), 0, Duration::ZERO);
    for seed in seeds.clone() {
        match catch_unwind(AssertUnwindSafe(|| simulate(seed))) {
            Ok(outcome) => {
                requests += outcome.requests;
                simulated += outcome.elapsed;
            }
            Err(_) => failed.push(seed),
        }
        if failed.len() >= MAX_FAILURES {
            break;
        }
        if seed % 100 == 0 {
            println!("{seed} of {}; failed: {failed:?}", seeds.end());
        }
    }
    println!("{requests} requests in {} simulated hours", simulated.as_secs() / 3600);
    assert!(failed.is_empty(), "failed: {failed:?}; SETPOINT_SEED=… runs one again, exactly");
}

#[test]
fn a_seed_gives_the_same_trace_twice() {
    for seed in 1..=3 {
        let traces = [(); 2].map(|()| simulate(seed).trace);
        assert!(traces[0].len() > 100, "{}", traces[0].len());
        let first = traces[0].iter().zip(&traces[1]).position(|(one, other)| one != other);
        let lines = first.map(|at| (at, &traces[0][at], &traces[1][at]));
        assert_eq!((lines, traces[0].len()), (None, traces[1].len()), "seed {seed}");
    }
}
