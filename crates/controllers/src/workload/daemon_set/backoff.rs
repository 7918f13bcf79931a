//! Pauses between the deletions of failed pods on one node: a kubelet that refuses a pod would refuse the next one.

use std::{collections::BTreeMap, time::Duration};
use world::Moment;

/// Kubernetes: the first pause; each further one is twice as long.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The pauses by the UID and generation of a set, and by node. They begin anew with the process.
#[derive(Debug, Default)]
pub(super) struct FailedPods(BTreeMap<(String, String), FailedPodPause>);

#[derive(Clone, Copy, Debug)]
struct FailedPodPause {
    since: Moment,
    length: Duration,
}

impl FailedPods {
    /// The nodes on which failed pods of a set stay for now, and for how long.
    pub(super) fn paused(&self, set: &str, now: Moment) -> BTreeMap<String, Duration> {
        let of_set = self.0.iter().filter(|((of, _), _)| of == set);
        let left =
            of_set.map(|((_, node), pause)| (node, pause.length.saturating_sub(now.since(pause.since))));
        left.filter(|(_, left)| !left.is_zero()).map(|(node, left)| (node.clone(), left)).collect()
    }

    /// Starts the next pause of a node.
    pub(super) fn delete_on(&mut self, set: &str, node: &str, now: Moment) {
        // Kubernetes: forgotten after twice the longest pause; this also limits how many there are.
        self.0.retain(|_, pause| now.since(pause.since) <= LONGEST * 2);
        let pause = self.0.entry((set.to_owned(), node.to_owned()));
        pause
            .and_modify(|pause| {
                *pause = FailedPodPause { since: now, length: (pause.length * 2).min(LONGEST) }
            })
            .or_insert(FailedPodPause { since: now, length: FIRST });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_quarter_of_an_hour_and_are_forgotten() {
        let run = world::simulate(1, |world| async move {
            let mut failed = FailedPods::default();
            let mut lengths = Vec::new();
            for _ in 0..12 {
                failed.delete_on("s", "n", world.now());
                let left = failed.paused("s", world.now())["n"];
                lengths.push(left.as_secs());
                world.sleep(left).await;
                assert!(failed.paused("s", world.now()).is_empty());
            }
            assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
            world.sleep(LONGEST * 2).await;
            failed.delete_on("s", "n", world.now());
            assert_eq!(failed.paused("s", world.now())["n"], FIRST);
            assert!(failed.paused("other", world.now()).is_empty());
        });
        run.unwrap();
    }
}
