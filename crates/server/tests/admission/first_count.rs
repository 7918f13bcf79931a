//! A quota created during other writes: its first count includes them.

use super::Cluster;
use crate::slow_store::{Slow, StoreAccess};
use serde_json::{Value, json};
use server::{Config, Server};
use std::{sync::Arc, time::Duration};
use world::World;

/// Each write is delayed by a different time.
fn late(world: &World) -> Arc<dyn store::Store> {
    let source = world.clone();
    Arc::new(Slow::new(world, move |asked| match asked {
        StoreAccess::Commit => Duration::from_micros(source.pick(0..3000)),
        StoreAccess::Get(_) => Duration::ZERO,
    }))
}

#[test]
fn a_new_quota_counts_concurrent_writes() {
    for seed in 1..=12 {
        let run = world::simulate(seed, |world| async move {
            let server = Server::start(&world, late(&world), Config::default()).await.unwrap();
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
