//! Runs a test with a cluster, once or with several seeds; a failure prints the seed.

use crate::Cluster;
use world::Run;

/// How many seeds [`run`] tries.
const SEEDS: u64 = 5;
/// The environment variable with the seed to replay.
const SEED_VARIABLE: &str = "SETPOINT_SEED";

/// Runs `test` with a new cluster; the seed decides every random choice and the order of tasks.
///
/// # Panics
/// If the test does, or if all tasks wait for ever.
pub fn simulate<T, F>(seed: u64, test: impl FnOnce(Cluster) -> F) -> Run<T>
where
    F: Future<Output = T>,
{
    let run = world::simulate(seed, |world| async move { test(Cluster::start(&world).await).await });
    run.unwrap_or_else(|stuck| panic!("{stuck}"))
}

/// Runs `test` with several seeds. With `SETPOINT_SEED` set to a seed that has failed, runs it once, exactly
/// as then.
pub fn run<F>(test: impl Fn(Cluster) -> F)
where
    F: Future<Output = ()>,
{
    let replayed: Option<u64> = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seeds = replayed.map_or(1..=SEEDS, |seed| seed..=seed);
    for seed in seeds {
        simulate(seed, &test);
    }
}
