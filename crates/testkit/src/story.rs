//! A seed and a story in; the story told in a world of its own, or a panic with the seed.

use crate::Cluster;
use world::Run;

/// How many orders of events [`run`] tries.
const SEEDS: u64 = 5;
/// Names the one seed to replay.
const SEED_VARIABLE: &str = "SETPOINT_SEED";

/// Tells a story about a new cluster, with every choice made by the seed.
///
/// # Panics
/// Where the story does, or when everybody waits for something that will not come.
pub fn simulate<T, F>(seed: u64, story: impl FnOnce(Cluster) -> F) -> Run<T>
where
    F: Future<Output = T>,
{
    let told = world::simulate(seed, |world| async move { story(Cluster::start(&world).await).await });
    told.unwrap_or_else(|stuck| panic!("{stuck}"))
}

/// Tells the same story several times, each time with other choices. With `SETPOINT_SEED` set to
/// a seed that has failed, tells it once, the way it went then.
pub fn run<F>(story: impl Fn(Cluster) -> F)
where
    F: Future<Output = ()>,
{
    let replayed: Option<u64> = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
    let seeds = replayed.map_or(1..=SEEDS, |seed| seed..=seed);
    for seed in seeds {
        simulate(seed, &story);
    }
}
