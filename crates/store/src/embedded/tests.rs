//! Crashes, damage and a full disk on a simulated disk, thousands of times.

use super::{
    checkpoint::checkpoint,
    disk::Disk,
    engine::Engine,
    recover::{Recovered, recover},
    simulated_disk::SimulatedDisk,
};
use crate::{Batch, Error, Limits, Range, Revision};
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc};

const LIMITS: Limits = Limits { changes: 20, bytes: 1 << 20, live_bytes: u64::MAX };
/// So small that a short history has many segments.
const SEGMENT_BYTES: u64 = 4096;

type Model = BTreeMap<Bytes, Bytes>;

struct Random(u64);

impl Random {
    fn below(&mut self, width: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % width
    }
}

fn open(disk: &SimulatedDisk, seed: u64) -> Result<(Engine, Recovered), Error> {
    let again = |recovered: &Recovered| Recovered {
        tree: Arc::clone(&recovered.tree),
        catalog: Arc::clone(&recovered.catalog),
        current: None,
        torn: recovered.torn.clone(),
    };
    let recovered = recover(disk, LIMITS, &mut |_| ())?;
    let kept = again(&recovered);
    Ok((Engine::new(Arc::new(disk.clone()), recovered, SEGMENT_BYTES, seed), kept))
}

fn contents(engine: &Engine) -> Model {
    let page = engine.tree().range(&Range::all()).unwrap();
    page.entries.into_iter().map(|entry| (entry.key, entry.value)).collect()
}

fn commit_one(engine: &mut Engine, batch: Batch) -> Result<Revision, Error> {
    engine.commit([&batch].into_iter()).pop().unwrap()
}

fn apply(model: &mut Model, batch: &Batch) {
    for write in batch.writes() {
        match &write.value {
            Some(value) => model.insert(write.key.clone(), value.clone()),
            None => model.remove(&write.key),
        };
    }
}

fn random_group(random: &mut Random) -> Vec<Batch> {
    let batch = |random: &mut Random| {
        (0..1 + random.below(3)).fold(Batch::new(), |batch, part| {
            let key = format!("/{part}/{}", random.below(6));
            match random.below(4) {
                0 => batch.delete(key),
                _ => batch.put(key, vec![random.below(256) as u8; random.below(700) as usize]),
            }
        })
    };
    (0..1 + random.below(4)).map(|_| batch(random)).collect()
}

/// Runs random commits and checkpoints until the disk stops. Returns the state that may exist without an
/// acknowledgement.
fn live(disk: &SimulatedDisk, random: &mut Random, acknowledged: &mut Model) -> Result<Option<Model>, Error> {
    let (mut engine, _) = open(disk, random.below(u64::MAX >> 33))?;
    assert_eq!(contents(&engine), *acknowledged);
    disk.crash_after(random.below(120));
    loop {
        if random.below(12) == 0 {
            let checkpointed = checkpoint(engine.tree(), disk, engine.catalog());
            if checkpointed.is_err() {
                return Ok(None);
            }
        }
        let group = random_group(random);
        let mut possible = acknowledged.clone();
        group.iter().for_each(|batch| apply(&mut possible, batch));
        let answers = engine.commit(group.iter());
        if answers.iter().all(Result::is_ok) {
            *acknowledged = possible;
            assert_eq!(contents(&engine), *acknowledged);
        } else {
            assert!(answers.iter().all(Result::is_err), "a group is durable as one");
            assert_eq!(contents(&engine), *acknowledged, "commits are not visible before they are durable");
            return Ok(Some(possible));
        }
    }
}

#[test]
fn every_crash_keeps_acknowledged_commits() {
    for seed in 0..1500 {
        let mut random = Random(seed);
        let mut disk = SimulatedDisk::default();
        let mut acknowledged = Model::new();
        for life in 0..4 {
            let possible = live(&disk, &mut random, &mut acknowledged)
                .unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
            disk = disk.reboot(|width| random.below(width));
            let (engine, _) =
                open(&disk, 0).unwrap_or_else(|error| panic!("seed {seed}, life {life}: {error}"));
            let found = contents(&engine);
            if found != acknowledged {
                assert_eq!(
                    Some(&found),
                    possible.as_ref(),
                    "seed {seed}, life {life}: neither before nor after"
                );
                acknowledged = found;
            }
        }
    }
}

/// A log of several segments after a checkpoint, closed properly or not.
fn written_disk(orderly: bool) -> (SimulatedDisk, Model) {
    let disk = SimulatedDisk::default();
    let (mut engine, _) = open(&disk, 7).unwrap();
    for number in 0..100 {
        commit_one(&mut engine, Batch::new().put(format!("/{}", number % 30), vec![number as u8; 300]))
            .unwrap();
        if number == 60 {
            checkpoint(engine.tree(), &disk, engine.catalog()).unwrap();
        }
    }
    if orderly {
        engine.close();
    }
    let model = contents(&engine);
    (disk, model)
}

#[test]
fn a_flipped_bit_is_reported_or_harmless_but_never_read_as_data() {
    let (pristine, model) = written_disk(true);
    let names: Vec<_> = pristine.names().unwrap();
    assert!(names.iter().filter(|name| name.ends_with(".log")).count() > 3, "{names:?}");
    let mut reported = 0;
    let mut random = Random(11);
    for name in names {
        let bytes = pristine.bytes(&name).len() as u64;
        for _ in 0..300 {
            let disk = pristine.reboot(|_| 0);
            let offset = random.below(bytes) as usize;
            disk.flip(&name, offset, 1 << random.below(8));
            match open(&disk, 0) {
                Ok((engine, _)) => assert_eq!(contents(&engine), model, "{name} at {offset}"),
                Err(Error::Corrupt(corruption)) => {
                    reported += 1;
                    assert_eq!(corruption.file, disk.path(&name));
                    assert!(corruption.offset <= offset as u64 + 8, "{corruption} for {offset}");
                }
                Err(other) => panic!("{name} at {offset}: {other}"),
            }
        }
    }
    assert!(reported > 500, "{reported}");
}

#[test]
fn a_torn_tail_is_dropped_and_reported() {
    let (disk, model) = written_disk(false);
    let last = disk.names().unwrap().into_iter().rfind(|name| name.ends_with(".log")).unwrap();
    let (mut engine, _) = open(&disk, 1).unwrap();
    let before = disk.bytes(&last);
    commit_one(&mut engine, Batch::new().put("/new", vec![1; 1500])).unwrap();
    // Half of the last write is missing: zeros where its second half was.
    let after = disk.bytes(&last);
    let changed = (0..after.len()).filter(|at| before.get(*at) != Some(&after[*at])).collect::<Vec<_>>();
    for at in &changed[changed.len() / 2..] {
        disk.flip(&last, *at, after[*at]);
    }
    let (engine, recovered) = open(&disk, 2).unwrap();
    assert_eq!(contents(&engine), model);
    let torn = recovered.torn.expect("the torn write is reported");
    assert_eq!(torn.file, disk.path(&last));
    assert_eq!(torn.offset, changed[0] as u64);
}

#[test]
fn a_missing_segment_is_reported() {
    let (disk, _) = written_disk(true);
    let logs: Vec<_> = disk.names().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    disk.remove(&logs[logs.len() / 2]).unwrap();
    let refused = open(&disk, 0).map(drop).unwrap_err();
    assert!(matches!(refused, Error::Corrupt(_)), "{refused}");
}

#[test]
fn a_full_disk_refuses_writes_serves_reads_and_recovers() {
    let disk = SimulatedDisk::default();
    let (mut engine, _) = open(&disk, 1).unwrap();
    commit_one(&mut engine, Batch::new().put("/a", "1")).unwrap();
    disk.set_room(Some(0));
    let mut written = 1;
    let refused = loop {
        match commit_one(&mut engine, Batch::new().put("/a", vec![written as u8; 1000])) {
            Ok(revision) => written = revision.0,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::Full { .. }), "{refused}");
    let read = engine.tree().get(&"/a".into(), None).unwrap();
    assert_eq!(read.revision, Revision(written));
    disk.set_room(None);
    let next = commit_one(&mut engine, Batch::new().put("/b", "2")).unwrap();
    assert_eq!(next, Revision(written + 1));
    let model = contents(&engine);
    assert_eq!(contents(&open(&disk, 2).unwrap().0), model);
}

#[test]
fn a_failed_sync_is_not_retried() {
    let disk = SimulatedDisk::default();
    let (mut engine, _) = open(&disk, 1).unwrap();
    commit_one(&mut engine, Batch::new().put("/a", "1")).unwrap();
    disk.fail_next_sync();
    for _ in 0..2 {
        let refused = commit_one(&mut engine, Batch::new().put("/a", "2")).unwrap_err();
        assert!(matches!(refused, Error::Broken(_)), "{refused}");
    }
    assert_eq!(engine.tree().get(&"/a".into(), None).unwrap().entry.unwrap().value, "1");
    let (mut engine, _) = open(&disk.reboot(|width| width - 1), 2).unwrap();
    commit_one(&mut engine, Batch::new().put("/a", "3")).unwrap();
}

#[test]
fn endless_overwriting_needs_bounded_space() {
    let disk = SimulatedDisk::default();
    let (mut engine, _) = open(&disk, 1).unwrap();
    for number in 0..5000 {
        commit_one(&mut engine, Batch::new().put(format!("/{}", number % 4), vec![number as u8; 200]))
            .unwrap();
        if engine.is_checkpoint_due() {
            checkpoint(engine.tree(), &disk, engine.catalog()).unwrap();
        }
    }
    let names = disk.names().unwrap();
    assert!(names.len() < 16, "{names:?}");
    let model = contents(&engine);
    let (engine, _) = open(&disk, 2).unwrap();
    assert_eq!((contents(&engine), engine.tree().revision()), (model, Revision(5000)));
}

#[test]
fn a_segment_that_is_not_the_last_and_is_cut_short_is_damage() {
    let disk = SimulatedDisk::default();
    let (mut engine, _) = open(&disk, 1).unwrap();
    for number in 0..60 {
        commit_one(&mut engine, Batch::new().put(format!("/{number}"), vec![1; 300])).unwrap();
    }
    engine.close();
    drop(engine);
    let mut segments: Vec<String> =
        disk.names().unwrap().into_iter().filter(|name| name.ends_with(".log")).collect();
    segments.sort();
    assert!(segments.len() > 3, "{segments:?}");
    let (_, earlier) = segments.split_last().unwrap();
    for name in earlier {
        let whole = disk.bytes(name);
        let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for length in (0..used).step_by(97).chain([used - 1]) {
            disk.set_bytes(name, &whole[..length]);
            let opened = recover(&disk, LIMITS, &mut |_| ());
            assert!(matches!(opened, Err(Error::Corrupt(_))), "{name} cut to {length} of {used} bytes");
        }
        disk.set_bytes(name, &whole);
    }
    assert!(recover(&disk, LIMITS, &mut |_| ()).is_ok());
}

#[test]
fn a_group_of_batches_stays_within_the_quota_together() {
    let disk = SimulatedDisk::default();
    let limits = Limits { live_bytes: 2_000, ..LIMITS };
    let recovered = recover(&disk, limits, &mut |_| ()).unwrap();
    let mut engine = Engine::new(Arc::new(disk.clone()), recovered, SEGMENT_BYTES, 1);
    let batches: Vec<Batch> =
        (0..5).map(|number| Batch::new().create(format!("/{number}"), vec![1; 700])).collect();
    let answers = engine.commit(batches.iter());
    let taken = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!(taken, 2);
    assert!(matches!(answers[2], Err(Error::QuotaExceeded { limit: 2_000 })));
    // Batches that shrink the store are accepted, and make room.
    commit_one(&mut engine, Batch::new().delete("/0")).unwrap();
    commit_one(&mut engine, Batch::new().create("/5", vec![1; 700])).unwrap();
    drop(engine);
    // A store above a lowered quota still opens.
    let limits = Limits { live_bytes: 100, ..LIMITS };
    assert!(recover(&disk, limits, &mut |_| ()).is_ok());
}
