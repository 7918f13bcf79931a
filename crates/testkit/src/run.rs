//! Runs a test with a cluster, once or with several seeds; a failure prints the seed.

use crate::{Cluster, Setup};
use futures::FutureExt;
use std::{
    ops::RangeInclusive,
    panic::{AssertUnwindSafe, resume_unwind},
};
use world::Run;

/// How many seeds a test runs with, unless [`SEEDS_VARIABLE`] says otherwise.
const SEEDS: u64 = 5;
/// The environment variable with the number of seeds.
const SEEDS_VARIABLE: &str = "SETPOINT_SEEDS";
/// The environment variable with the first of that many seeds.
const FIRST_SEED_VARIABLE: &str = "SETPOINT_FIRST_SEED";
/// The environment variable with the seed to replay.
pub(crate) const SEED_VARIABLE: &str = "SETPOINT_SEED";
/// The environment variable that lets failing tests pause.
const PAUSE_VARIABLE: &str = "SETPOINT_PAUSE";

/// Runs `test` with a new cluster; the seed decides every random choice and the order of tasks.
///
/// ```
/// use std::time::Duration;
///
/// let night = testkit::simulate(7, |cluster| async move {
///     cluster.advance(Duration::from_secs(8 * 3600)).await;
///     cluster.trace().to_string()
/// });
/// assert!(night.elapsed >= Duration::from_secs(8 * 3600), "in virtual time");
/// ```
///
/// # Panics
/// If the test does, or if all tasks wait for ever.
pub fn simulate<T, F>(seed: u64, test: impl FnOnce(Cluster) -> F) -> Run<T>
where
    F: Future<Output = T>,
{
    Setup::default().simulate(seed, test)
}

/// Runs `test` with five seeds, or as many as `SETPOINT_SEEDS` says. With `SETPOINT_SEED` set to a seed that
/// has failed, runs it once, exactly as then. With `SETPOINT_PAUSE=1`, a test that fails waits until you have
/// looked into its cluster ([`Cluster::pause`]).
pub fn run<F>(test: impl Fn(Cluster) -> F)
where
    F: Future<Output = ()>,
{
    Setup::default().run(test);
}

impl Setup {
    /// As [`simulate`], with a cluster of these settings.
    ///
    /// # Panics
    /// If the test does, or if all tasks wait for ever.
    pub fn simulate<T, F>(self, seed: u64, test: impl FnOnce(Cluster) -> F) -> Run<T>
    where
        F: Future<Output = T>,
    {
        let pauses = std::env::var_os(PAUSE_VARIABLE).is_some_and(|value| !value.is_empty() && value != "0");
        let mut waiting = None;
        let waiting_cluster = &mut waiting;
        let run = world::simulate(seed, |world| async move {
            let cluster = self.start(&world).await;
            *waiting_cluster = Some(cluster.clone());
            if !pauses {
                return test(cluster).await;
            }
            let other = cluster.clone();
            match AssertUnwindSafe(test(cluster)).catch_unwind().await {
                Ok(output) => output,
                Err(panic) => {
                    other.pause().await;
                    resume_unwind(panic)
                }
            }
        });
        run.unwrap_or_else(|stuck| {
            waiting.iter().for_each(Cluster::tell);
            panic!("{stuck}")
        })
    }

    /// As [`run`], with clusters of these settings.
    pub fn run<F>(self, test: impl Fn(Cluster) -> F)
    where
        F: Future<Output = ()>,
    {
        for seed in seeds(SEEDS) {
            self.clone().simulate(seed, &test);
        }
    }
}

/// The seeds of a test: `usual` many, unless the environment says otherwise (`SETPOINT_SEEDS`, `SETPOINT_FIRST_SEED`,
/// `SETPOINT_SEED`).
///
/// # Panics
/// If a variable holds no number.
pub fn seeds(usual: u64) -> RangeInclusive<u64> {
    let variable = |name: &str| std::env::var(name).ok();
    choose(
        usual,
        variable(SEED_VARIABLE).as_deref(),
        variable(SEEDS_VARIABLE).as_deref(),
        variable(FIRST_SEED_VARIABLE).as_deref(),
    )
}

/// # Panics
/// If a variable holds no number: a test that ran with other seeds than asked for would prove nothing.
fn choose(
    usual: u64,
    replayed: Option<&str>,
    count: Option<&str>,
    first: Option<&str>,
) -> RangeInclusive<u64> {
    let number = |variable: &str, text: &str| -> u64 {
        text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: set it to a number"))
    };
    if let Some(seed) = replayed {
        let seed = number(SEED_VARIABLE, seed);
        return seed..=seed;
    }
    let first = first.map_or(1, |first| number(FIRST_SEED_VARIABLE, first));
    let count = count.map_or(usual, |count| number(SEEDS_VARIABLE, count));
    first..=first.saturating_add(count) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_chooses_the_seeds() {
        assert_eq!(choose(5, None, None, None), 1..=5);
        assert_eq!(choose(5, None, Some("100"), None), 1..=100);
        assert_eq!(choose(5, None, Some("100"), Some("41")), 41..=140);
        assert_eq!(choose(5, Some("7"), Some("100"), Some("41")), 7..=7);
    }

    #[test]
    #[should_panic(expected = "SETPOINT_SEEDS is \"many\": set it to a number")]
    fn a_number_of_seeds_that_cannot_be_read_fails_the_test() {
        choose(5, None, Some("many"), None);
    }
}
