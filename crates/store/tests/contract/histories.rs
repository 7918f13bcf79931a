//! Random writes, compared with a model of plain maps.

use super::{Stage, conflict, next};
use std::collections::{BTreeMap, BTreeSet};
use store::{Batch, Range, Revision};

/// What a store held at a revision: for each key the step that wrote it, and its revision.
type Snapshot = (Revision, BTreeMap<String, (u64, Revision)>);

/// Writes at random, and compares every read, now and in the past, with plain maps.
#[expect(clippy::print_stdout, reason = "the seed, shown when the test fails")]
pub(crate) async fn random_histories_agree_with_a_model(stage: Stage) {
    let seed = stage.world.draw();
    println!("seed {seed}");
    let mut random = Random(seed);
    let start = stage.revision().await;
    let mut feed = stage.store.feed("/m/".into(), Some(start)).await.unwrap();
    let mut model: Vec<Snapshot> = vec![(start, BTreeMap::new())];
    for step in 0..250 {
        let (revision, mut state) = model.last().cloned().unwrap();
        let mut batch = Batch::new();
        let mut changed = BTreeSet::new();
        let mut holds = true;
        for number in random.distinct(1 + random.peek() % 4, 12) {
            let key = format!("/m/{number}");
            let standing = state.get(&key).map(|(_, revision)| *revision);
            let (write, fits) = match random.below(6) {
                0 => (batch.create(key.clone(), step.to_string()), standing.is_none()),
                1 => (
                    batch.replace(
                        key.clone(),
                        step.to_string(),
                        Revision(revision.0 - random.below(3).min(revision.0)),
                    ),
                    false,
                ),
                2 | 3 => (batch.put(key.clone(), step.to_string()), true),
                _ => (batch.delete(key.clone()), true),
            };
            let write_ok = match write.writes().last().unwrap().condition {
                store::Condition::At(at) => standing == Some(at),
                _ => fits,
            };
            holds &= write_ok;
            let next = Revision(revision.0 + 1);
            match write.writes().last().unwrap().value {
                Some(_) => drop((state.insert(key.clone(), (step, next)), changed.insert(key))),
                None => drop(state.remove(&key).map(|_| changed.insert(key))),
            }
            batch = write;
        }
        match stage.store.commit(batch).await {
            Ok(at) if changed.is_empty() => assert_eq!(at, revision),
            Ok(at) => {
                assert!(holds, "step {step}");
                assert_eq!(at.0, revision.0 + 1);
                model.push((at, state));
                let told = next(&stage.world, &mut feed).await;
                let keys: BTreeSet<_> = told
                    .changes
                    .iter()
                    .map(|change| String::from_utf8(change.key.to_vec()).unwrap())
                    .collect();
                assert_eq!((told.revision, keys), (at, changed), "step {step}");
            }
            Err(error) => {
                conflict(error);
                assert!(!holds, "step {step}");
            }
        }
        let past = &model[random.below(model.len() as u64) as usize];
        if past.0 > start {
            assert_eq!(&read(&stage, past.0).await, past, "step {step}");
        }
    }
}

/// What the store says it held at a revision.
async fn read(stage: &Stage, at: Revision) -> Snapshot {
    let page = stage.store.range(Range::prefix("/m/").at(at)).await.unwrap();
    let entries = page.entries.iter().map(|entry| {
        let value = str::from_utf8(&entry.value).unwrap().parse().unwrap();
        (String::from_utf8(entry.key.to_vec()).unwrap(), (value, entry.revision))
    });
    (at, entries.collect())
}

/// Small deterministic choices for generated histories.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, width: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % width
    }

    fn peek(&self) -> u64 {
        self.0 >> 40
    }

    /// `count` different numbers below `width`.
    fn distinct(&mut self, count: u64, width: u64) -> BTreeSet<u64> {
        (0..count).map(|_| self.below(width)).collect()
    }
}
