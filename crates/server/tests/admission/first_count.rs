//! A quota that comes while others write: its first count misses nobody.

use super::Cluster;
use bytes::Bytes;
use serde_json::{Value, json};
use server::{Config, Server};
use std::{path::PathBuf, sync::Arc, time::Duration};
use store::{Answer, Batch, Feed, Memory, Page, Range, Read, Revision, Store};
use world::World;

/// A store that takes its time to write, each time another.
#[derive(Debug)]
struct Late {
    store: Memory,
    world: World,
}

impl Store for Late {
    fn commit(&self, batch: Batch) -> Answer<'_, Revision> {
        Box::pin(async move {
            self.world.sleep(Duration::from_micros(self.world.pick(0..3000))).await;
            self.store.commit(batch).await
        })
    }
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read> {
        self.store.get(key, at)
    }
    fn range(&self, range: Range) -> Answer<'_, Page> {
        self.store.range(range)
    }
    fn count(&self, range: Range) -> Answer<'_, u64> {
        self.store.count(range)
    }
    fn revision(&self) -> Answer<'_, Revision> {
        self.store.revision()
    }
    fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Answer<'_, Feed> {
        self.store.feed(prefix, since)
    }
    fn compact(&self, floor: Revision) -> Answer<'_, ()> {
        self.store.compact(floor)
    }
    fn backup(&self, file: PathBuf) -> Answer<'_, Revision> {
        self.store.backup(file)
    }
}

#[test]
fn writes_that_are_under_way_when_a_quota_comes_are_counted() {
    for seed in 1..=12 {
        let run = world::simulate(seed, |world| async move {
            let store = Arc::new(Late { store: Memory::new(), world: world.clone() });
            let server = Server::start(&world, store, Config::default()).await.unwrap();
            let cluster = Cluster { world: world.clone(), server };
            cluster.made("POST /api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
            let creators: Vec<_> = (0..64)
                .map(|number| {
                    let (world, cluster) = (world.clone(), cluster.clone());
                    world.clone().spawn("creator", async move {
                        world.sleep(Duration::from_micros(world.pick(0..20_000))).await;
                        let map = json!({"metadata": {"name": format!("m{number}")}});
                        let made = cluster.send("POST /api/v1/namespaces/n/configmaps", map).await.code;
                        if made == 201 && number % 4 == 0 {
                            let path = format!("DELETE /api/v1/namespaces/n/configmaps/m{number}");
                            cluster.send(&path, Value::Null).await;
                        }
                        made
                    })
                })
                .collect();
            world.sleep(Duration::from_millis(5)).await;
            let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "24"}}});
            let path = "/api/v1/namespaces/n/resourcequotas";
            cluster.made(&format!("POST {path}"), quota).await;
            let codes: Vec<u16> =
                futures::future::join_all(creators).await.into_iter().map(Result::unwrap).collect();
            assert!(codes.iter().all(|code| [201, 403].contains(code)), "{codes:?}");
            let found = cluster.get("/api/v1/namespaces/n/configmaps").await;
            let found = found["items"].as_array().unwrap().len();
            let used = &cluster.get(&format!("{path}/q")).await["status"]["used"]["count/configmaps"];
            assert_eq!(used.as_str(), Some(found.to_string().as_str()), "seed {seed}");
            assert!(found <= 24, "seed {seed}: {found}");
        });
        run.unwrap();
    }
}
