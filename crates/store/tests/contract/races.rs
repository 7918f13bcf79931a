//! Many tasks at once: writers, feeds and a backup.

use super::{Stage, conflict, next};
use std::{collections::BTreeMap, sync::Arc};
use store::{Batch, Bytes, Change, Memory, Range, ReadStore as _, Store as _};

pub(crate) async fn two_writers_race_and_one_wins(stage: Stage) {
    let mut standing = stage.commit(Batch::new().create("/prize", "start")).await;
    for round in 0..50 {
        let racers = ["left", "right"].map(|name| {
            let store = Arc::clone(&stage.store);
            let batch = Batch::new().replace("/prize", name, standing);
            stage
                .world
                .spawn("racer", async move { store.commit(batch).await.map(|revision| (name, revision)) })
        });
        let mut winners = Vec::new();
        for racer in racers {
            match racer.await.unwrap() {
                Ok(winner) => winners.push(winner),
                Err(error) => drop(conflict(error)),
            }
        }
        let [(name, revision)] = winners[..] else { panic!("round {round}: {winners:?}") };
        let prize = stage.store.get("/prize".into(), None).await.unwrap().entry.unwrap();
        assert_eq!((prize.value, prize.revision), (name.into(), revision));
        standing = revision;
    }
}

pub(crate) async fn counting_with_conditions_loses_nothing(stage: Stage) {
    stage.commit(Batch::new().create("/count", "0")).await;
    let counters = (0..8).map(|_| {
        let store = Arc::clone(&stage.store);
        stage.world.spawn("counter", async move {
            for _ in 0..20 {
                loop {
                    let entry = store.get("/count".into(), None).await.unwrap().entry.unwrap();
                    let count: u32 = str::from_utf8(&entry.value).unwrap().parse().unwrap();
                    let batch = Batch::new().replace("/count", (count + 1).to_string(), entry.revision);
                    match store.commit(batch).await {
                        Ok(_) => break,
                        Err(error) => drop(conflict(error)),
                    }
                }
            }
        })
    });
    for counter in counters.collect::<Vec<_>>() {
        counter.await.unwrap();
    }
    assert_eq!(stage.value("/count").await.unwrap(), "160");
}

pub(crate) async fn feeds_see_concurrent_commits_in_order(stage: Stage) {
    let start = stage.revision().await;
    let mut feeds = Vec::new();
    for _ in 0..4 {
        feeds.push(stage.store.feed("/f/".into(), Some(start)).await.unwrap());
    }
    let writers = (0..5).map(|writer| {
        let store = Arc::clone(&stage.store);
        stage.world.spawn("writer", async move {
            for number in 0..50 {
                let key = format!("/f/{writer}");
                store.commit(Batch::new().put(key, format!("{number}"))).await.unwrap();
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    for feed in &mut feeds {
        let mut latest: BTreeMap<Bytes, u32> = BTreeMap::new();
        for number in 1..=250 {
            let commit = next(&stage.world, feed).await;
            assert_eq!(commit.revision.0, start.0 + number, "no gap and no duplicate");
            let [Change { key, value: Some(value), .. }] = &commit.changes[..] else { panic!("{commit:?}") };
            let value: u32 = str::from_utf8(value).unwrap().parse().unwrap();
            let before = latest.insert(key.clone(), value);
            assert_eq!(value, before.map_or(0, |before| before + 1), "each writer's order is kept");
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

pub(crate) async fn a_backup_under_load_holds_one_revision(stage: Stage) {
    // Two keys that always change together: a backup that mixes revisions would tell them apart.
    stage.commit(Batch::new().put("/0", "0").put("/z", "0")).await;
    for page in 0..20 {
        let batch =
            (0..100).fold(Batch::new(), |batch, number| batch.put(format!("/k/{page}/{number}"), "v"));
        stage.commit(batch).await;
    }
    let writer = {
        let store = Arc::clone(&stage.store);
        stage.world.spawn("writer", async move {
            for number in 1.. {
                let value = number.to_string();
                store.commit(Batch::new().put("/0", value.clone()).put("/z", value)).await.unwrap();
                tokio::task::yield_now().await;
            }
        })
    };
    let file = stage.scratch.path().join("backup");
    let revision = stage.store.backup(file.clone()).await.unwrap();
    assert!(stage.store.backup(file.clone()).await.is_err(), "a backup never replaces a file");
    drop(writer);
    let restored = Memory::restore(&file).unwrap();
    assert_eq!(restored.revision().await.unwrap(), revision);
    let page = restored.range(Range::all()).await.unwrap();
    assert_eq!(page.entries.len(), 2002);
    assert_eq!(page.entries[0].value, page.entries[2001].value);
    let live = stage.store.range(Range::prefix("/k/")).await.unwrap().entries;
    assert_eq!(live, page.entries[1..2001]);
    // What is restored goes on from where the backup was made.
    assert_eq!(restored.commit(Batch::new().put("/new", "v")).await.unwrap().0, revision.0 + 1);
}
