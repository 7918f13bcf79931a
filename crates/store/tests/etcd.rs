//! The contract on a real etcd, and what only a cluster has: restarts, TLS, many processes.
//!
//! `cargo xtask test` finds or fetches the program and sets `SETPOINT_ETCD` to it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that panics has failed")]

mod contract;
mod etcd_server;

use contract::{LIMITS, Stage};
use etcd_server::EtcdServer;
use std::{sync::Arc, time::Duration};
use store::{
    Batch, Embedded, Error, Etcd, EtcdOptions, Event, Feed, Memory, Options, Range, ReadStore, Revision,
    Store,
};
use world::World;

/// Durability is etcd's own responsibility, so these tests skip its fsync.
const FAST: &[&str] = &["--unsafe-no-fsync"];

async fn fixture(world: World) -> Stage {
    let server = EtcdServer::start(FAST);
    let store = Arc::new(connect(&world, &server).await);
    Stage { world, store, scratch: tempfile::tempdir().unwrap(), behind: Box::new(server) }
}

contract::run_contract!(fixture);

async fn connect(world: &World, server: &EtcdServer) -> Etcd {
    let mut options = EtcdOptions::new([server.url()]);
    options.limits = LIMITS;
    options.tls = server.tls();
    Etcd::connect(world, options).await.unwrap()
}

async fn next(world: &World, feed: &mut Feed) -> Revision {
    match world.timeout(Duration::from_secs(30), feed.next()).await.expect("the feed goes on").unwrap() {
        Event::Commit(commit) => commit.revision,
        Event::Progress(revision) => panic!("progress to {revision} instead of a commit"),
    }
}

/// Retries a commit until the server is back.
async fn commit_at_last(world: &World, store: &Etcd, key: &'static str) -> Revision {
    loop {
        match store.commit(Batch::new().put(key, "v")).await {
            Ok(revision) => return revision,
            Err(Error::Unavailable(_) | Error::OutcomeUnknown(_)) => {
                world.sleep(Duration::from_millis(20)).await;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_feed_survives_restarts_of_etcd() {
    world::run(|world| async move {
        let mut server = EtcdServer::start(FAST);
        let store = connect(&world, &server).await;
        let mut feed = store.feed("/f/".into(), None).await.unwrap();
        let mut expected = store.commit(Batch::new().put("/f/0", "v")).await.unwrap();
        assert_eq!(next(&world, &mut feed).await, expected);
        for round in 0..3 {
            if round == 1 {
                // The feed must also deliver commits by others during the outage.
                server.kill();
                server.restart();
                let other = connect(&world, &server).await;
                expected = commit_at_last(&world, &other, "/f/other").await;
            } else {
                server.kill();
                let while_down = store.commit(Batch::new().put("/f/lost", "v"));
                let refused = world.timeout(Duration::from_millis(200), while_down).await;
                assert!(!matches!(refused, Ok(Ok(_))), "no etcd is there to take it");
                server.restart();
                expected = commit_at_last(&world, &store, "/f/next").await;
            }
            while next(&world, &mut feed).await < expected {}
        }
        assert_eq!(store.revision().await.unwrap(), expected);
    })
    .unwrap();
}

#[test]
fn many_processes_share_a_cluster() {
    world::run(|world| async move {
        let server = EtcdServer::start(FAST);
        let mut stores = Vec::new();
        for _ in 0..4 {
            stores.push(Arc::new(connect(&world, &server).await));
        }
        let start = stores[0].commit(Batch::new().create("/count", "0")).await.unwrap();
        let mut feeds = Vec::new();
        for store in &stores {
            feeds.push(store.feed("/count".into(), Some(start)).await.unwrap());
        }
        let counters = stores.iter().map(|store| {
            let store = Arc::clone(store);
            world.spawn("counter", async move {
                let mut done = 0;
                while done < 10 {
                    let entry = store.get("/count".into(), None).await.unwrap().entry.unwrap();
                    let count: u32 = str::from_utf8(&entry.value).unwrap().parse().unwrap();
                    let batch = Batch::new().replace("/count", (count + 1).to_string(), entry.revision);
                    done += u32::from(store.commit(batch).await.is_ok());
                }
            })
        });
        for counter in counters.collect::<Vec<_>>() {
            counter.await.unwrap();
        }
        assert_eq!(stores[0].get("/count".into(), None).await.unwrap().entry.unwrap().value, "40");
        for feed in &mut feeds {
            for number in 1..=40 {
                assert_eq!(next(&world, feed).await.0, start.0 + number);
            }
        }
        // A compaction by one process applies to all.
        stores[0].compact(stores[0].revision().await.unwrap()).await.unwrap();
        let past = stores[1].get("/count".into(), Some(start)).await.unwrap_err();
        assert!(matches!(past, Error::Compacted { .. }), "{past:?}");
    })
    .unwrap();
}

#[test]
fn etcd_over_tls_asks_for_a_certificate_and_gets_it() {
    world::run(|world| async move {
        let server = EtcdServer::start_with_tls();
        let store = connect(&world, &server).await;
        let revision = store.commit(Batch::new().put("/a", "1")).await.unwrap();
        let mut feed = store.feed("/".into(), Some(Revision(revision.0 - 1))).await.unwrap();
        assert_eq!(next(&world, &mut feed).await, revision);
        let mut anonymous = EtcdOptions::new([server.url()]);
        anonymous.tls = server.tls().map(|tls| store::EtcdTls { identity: None, ..tls });
        let refused = Etcd::connect(&world, anonymous).await;
        assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
        let without_ca = Etcd::connect(&world, EtcdOptions::new([server.url()])).await;
        assert!(matches!(without_ca, Err(Error::Invalid(_))), "{without_ca:?}");
    })
    .unwrap();
}

#[test]
fn dead_endpoints_are_passed_over() {
    world::run(|world| async move {
        let server = EtcdServer::start(FAST);
        let dead = format!("http://127.0.0.1:{}", etcd_server::free_port());
        let store =
            Etcd::connect(&world, EtcdOptions::new([dead.clone(), server.url(), dead])).await.unwrap();
        let revision = store.commit(Batch::new().put("/a", "1")).await.unwrap();
        assert_eq!(store.get("/a".into(), None).await.unwrap().entry.unwrap().revision, revision);
    })
    .unwrap();
}

#[test]
fn an_unreachable_cluster_is_a_clear_error() {
    world::run(|world| async move {
        let dead = format!("http://127.0.0.1:{}", etcd_server::free_port());
        let refused = Etcd::connect(&world, EtcdOptions::new([dead])).await.unwrap_err().to_string();
        assert!(refused.contains("cannot be reached") && refused.contains("refused"), "{refused}");
        let none: [String; 0] = [];
        let refused = Etcd::connect(&world, EtcdOptions::new(none)).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
    })
    .unwrap();
}

#[test]
fn the_cluster_compacts_by_itself_whichever_process_does_it() {
    world::run(|world| async move {
        let server = EtcdServer::start(FAST);
        let mut options = EtcdOptions::new([server.url()]);
        options.compaction_interval = Some(Duration::from_millis(100));
        let first = Etcd::connect(&world, options.clone()).await.unwrap();
        let _second = Etcd::connect(&world, options).await.unwrap();
        let revision = first.commit(Batch::new().put("/a", "1")).await.unwrap();
        first.commit(Batch::new().put("/a", "2")).await.unwrap();
        let forgotten = async {
            loop {
                match first.get("/a".into(), Some(revision)).await {
                    Ok(_) => world.sleep(Duration::from_millis(20)).await,
                    Err(Error::Compacted { .. }) => return,
                    Err(other) => panic!("{other}"),
                }
            }
        };
        world.timeout(Duration::from_secs(30), forgotten).await.expect("compaction runs");
        // The key that the processes agree through is in no range, feed or backup.
        assert_eq!(first.range(Range::all()).await.unwrap().entries.len(), 1);
    })
    .unwrap();
}

#[test]
fn a_backup_moves_a_store_to_etcd_and_back() {
    world::run(|world| async move {
        let scratch = tempfile::tempdir().unwrap();
        let (out, back) = (scratch.path().join("out"), scratch.path().join("back"));
        let directory = scratch.path().join("data");
        let embedded = Embedded::open(&world, &directory, Options::default()).await.unwrap();
        for number in 0..300 {
            let batch = Batch::new().put(format!("/k/{number}"), vec![number as u8; 9000]);
            embedded.commit(batch).await.unwrap();
        }
        embedded.backup(out.clone()).await.unwrap();

        let server = EtcdServer::start(FAST);
        let etcd = connect(&world, &server).await;
        let revision = etcd.restore(&out).await.unwrap();
        assert_eq!(etcd.revision().await.unwrap(), revision);
        let refused = etcd.restore(&out).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");
        etcd.backup(back.clone()).await.unwrap();

        let contents = async |store: &dyn Store| {
            let entries = store.range(Range::all()).await.unwrap().entries;
            entries.into_iter().map(|entry| (entry.key, entry.value)).collect::<Vec<_>>()
        };
        let expected = contents(&embedded).await;
        assert_eq!(expected.len(), 300);
        assert_eq!(contents(&etcd).await, expected);
        assert_eq!(contents(&Memory::restore(&back).unwrap()).await, expected);
    })
    .unwrap();
}
