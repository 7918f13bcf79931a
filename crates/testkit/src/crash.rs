//! Repeats a story with a crash of the operator at every write.

use crate::{Cluster, Fault, run::seeds, simulate};
use futures::future::{Either, select};
use std::{fmt, pin::pin};
use testing::Reached;

/// More writes than this are an endless loop.
const MAX_WRITES: u64 = 10_000;

/// What [`crash_everywhere`] has tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crashes {
    /// Writes of the operator, each with a crash before and after it.
    pub writes: u64,
    /// Runs of the story.
    pub runs: u64,
}

impl fmt::Display for Crashes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "crashed before and after each of {} writes, in {} runs", self.writes, self.runs)
    }
}

/// Runs `story` again and again: in each run the operator crashes right before or right after one of its
/// writes (also of an event), and is started anew. The story says what must be true in the end.
///
/// `start` starts a process of the operator, whose requests come as `user`; to drop what it returns is the
/// crash. It is called twice in a run. The runs go from the first write to the last one that the operator
/// makes. With `SETPOINT_SEEDS`, all that is repeated with other orders of tasks.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use kube::{Api, api::PostParams};
/// # use testkit::Cluster;
/// // An operator of one write: it creates a ConfigMap.
/// let start = async |cluster: &Cluster| {
///     let client = cluster.client_as("operator", &["system:masters"]);
///     cluster.world().spawn("operator", async move {
///         let maps: Api<ConfigMap> = Api::namespaced(client, "default");
///         let mut map = ConfigMap::default();
///         map.metadata.name = Some("made".into());
///         drop(maps.create(&PostParams::default(), &map).await);
///     })
/// };
/// let crashes = testkit::crash_everywhere("operator", start, |cluster| async move {
///     cluster.settle().await;
///     cluster.get::<ConfigMap>("default", "made").await;
/// });
/// assert_eq!(crashes.writes, 1);
/// ```
///
/// # Panics
/// If a story does; the message says where the operator crashed.
pub fn crash_everywhere<P, F>(
    user: &str,
    start: impl AsyncFn(&Cluster) -> P,
    story: impl Fn(Cluster) -> F,
) -> Crashes
where
    F: Future<Output = ()>,
{
    let mut crashes = Crashes::default();
    for seed in seeds(1) {
        for nth in 1.. {
            assert!(nth <= MAX_WRITES, "{user:?} writes for ever");
            let crash = |is_carried_out| Crash { user, nth, is_carried_out };
            let is_reached = [false, true].map(|is_carried_out| {
                crashes.runs += 1;
                let crash = crash(is_carried_out);
                simulate(seed, |cluster| crash.play(cluster, &start, &story)).output
            });
            if is_reached == [false, false] {
                break;
            }
            crashes.writes = crashes.writes.max(nth);
        }
    }
    crashes
}

/// Where the operator crashes in one run.
#[derive(Clone, Copy)]
struct Crash<'a> {
    user: &'a str,
    /// Of its writes, counted from 1.
    nth: u64,
    /// After the write; otherwise before it.
    is_carried_out: bool,
}

impl Crash<'_> {
    /// Returns whether the operator made that write.
    async fn play<P, F>(
        self,
        cluster: Cluster,
        start: &impl AsyncFn(&Cluster) -> P,
        story: &impl Fn(Cluster) -> F,
    ) -> bool
    where
        F: Future<Output = ()>,
    {
        let _named_on_failure = NamedOnFailure(self);
        let reached = Reached::default();
        let rule = Fault::on("write", "*").by(self.user).nth(self.nth);
        let fault = cluster.inject(rule.hang(self.is_carried_out, reached.clone()));
        let process = start(&cluster).await;
        let story = pin!(story(cluster.clone()));
        let story = match select(story, pin!(reached.wait())).await {
            Either::Left(_) => return false,
            Either::Right(((), story)) => story,
        };
        drop(process);
        fault.lift();
        let _process = start(&cluster).await;
        story.await;
        true
    }
}

/// Prints the crash if the story fails.
struct NamedOnFailure<'a>(Crash<'a>);

impl Drop for NamedOnFailure<'_> {
    #[expect(clippy::print_stderr, reason = "it explains the panic")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

impl fmt::Display for Crash<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Crash { user, nth, is_carried_out } = self;
        let side = if *is_carried_out { "after" } else { "before" };
        write!(out, "the operator had crashed {side} write {nth} of {user:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_story_tells_where_the_operator_had_crashed() {
        let crash = |nth, is_carried_out| Crash { user: "op", nth, is_carried_out }.to_string();
        assert_eq!(crash(3, false), "the operator had crashed before write 3 of \"op\"");
        assert_eq!(crash(1, true), "the operator had crashed after write 1 of \"op\"");
    }
}
