//! The contract on the stores of this machine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod contract;
mod durability;

use contract::{LIMITS, Stage};
use std::sync::Arc;
use store::{Embedded, Memory, Options};
use world::World;

mod memory {
    use super::contract;
    use super::*;

    async fn fixture(world: World) -> Stage {
        let scratch = tempfile::tempdir().unwrap();
        Stage { world, store: Arc::new(Memory::with_limits(LIMITS)), scratch, behind: Box::new(()) }
    }

    contract::run_contract!(fixture);

    #[test]
    fn a_fork_has_the_history_and_a_future_of_its_own() {
        use store::{Batch, Error, Event, Read, ReadStore, Revision, Store};
        let run = world::simulate(1, |_| async move {
            let put = |value: &'static str| Batch::new().put("a", value);
            let store = Memory::with_limits(LIMITS);
            let mut revisions = Vec::new();
            for value in ["1", "2", "3"] {
                revisions.push(store.commit(put(value)).await.unwrap());
            }
            store.compact(revisions[0]).await.unwrap();
            let fork = store.fork();
            store.commit(put("here")).await.unwrap();
            drop(store);

            assert_eq!(fork.revision().await.unwrap(), revisions[2]);
            let Read { entry, .. } = fork.get("a".into(), Some(revisions[1])).await.unwrap();
            assert_eq!(entry.unwrap().value, "2");
            let mut feed = fork.feed("a".into(), Some(revisions[0])).await.unwrap();
            let there = fork.commit(put("there")).await.unwrap();
            let mut seen = Vec::new();
            while seen.len() < 3 {
                if let Event::Commit(commit) = feed.next().await.unwrap() {
                    seen.push((commit.revision, commit.changes[0].value.clone().unwrap()));
                }
            }
            let expected = [(revisions[1], "2".into()), (revisions[2], "3".into()), (there, "there".into())];
            assert_eq!(seen, expected);
            let compacted = fork.feed("a".into(), Some(Revision(0))).await;
            assert!(matches!(compacted, Err(Error::Compacted { .. })));
        });
        run.unwrap();
    }
}

mod embedded {
    use super::contract;
    use super::*;

    async fn fixture(world: World) -> Stage {
        let scratch = tempfile::tempdir().unwrap();
        let options = Options { limits: LIMITS, ..Options::default() };
        let store = Embedded::open(&world, &scratch.path().join("data"), options).await.unwrap();
        Stage { world, store: Arc::new(store), scratch, behind: Box::new(()) }
    }

    contract::run_contract!(fixture);
}
