//! When a cluster counts as settled, and the panic if it never does.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::ListParams};
use serde_json::json;
use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use testkit::{Cluster, Fault, Setup, simulate};

const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web}, data: {count: '0'}}";

/// The text of the panic that a story ends with.
fn failure<F: Future<Output = ()>>(story: impl FnOnce(Cluster) -> F) -> String {
    words(&*catch_unwind(AssertUnwindSafe(|| simulate(1, story))).unwrap_err())
}

fn words(panic: &dyn Any) -> String {
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn settling_waits_for_work_and_not_for_long_timers() {
    testkit::run(|cluster| async move {
        cluster.apply(MAP).await;
        let idle = Arc::new(AtomicBool::new(false));
        cluster.watch_idle("worker", {
            let idle = Arc::clone(&idle);
            move || idle.load(Ordering::SeqCst)
        });
        let (world, worker) = (cluster.world().clone(), cluster.clone());
        let task = cluster.world().spawn("worker", async move {
            // A back-off, then a slow write.
            world.sleep(Duration::from_secs(90)).await;
            worker.inject(Fault::on("patch", "configmaps").delay(Duration::from_secs(30)));
            worker.patch::<ConfigMap>("default", "web", &json!({"data": {"count": "1"}})).await;
            idle.store(true, Ordering::SeqCst);
            world.sleep(Duration::from_secs(3000)).await;
            worker.delete::<ConfigMap>("default", "web").await;
        });
        cluster.settle().await;
        let web: ConfigMap = cluster.get("default", "web").await;
        assert_eq!(web.data.unwrap()["count"], "1");
        cluster.advance(Duration::from_secs(3000)).await;
        assert!(cluster.find::<ConfigMap>("default", "web").await.is_none());
        task.await.unwrap();
    });
}

#[test]
fn the_panic_names_what_never_settles() {
    let text = failure(|cluster| async move {
        cluster.watch_idle("queue of buckets", || false);
        cluster.settle().await;
    });
    assert!(text.contains("still busy: queue of buckets"), "{text}");

    let told = catch_unwind(|| {
        world::simulate(1, |world| async move {
            let setup = Setup { max_requests: 300, ..Setup::default() };
            let cluster = setup.start(&world).await;
            let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client());
            let asking = world.spawn("asks for ever", async move {
                loop {
                    maps.list(&ListParams::default()).await.unwrap();
                }
            });
            cluster.settle().await;
            drop(asking);
        })
    });
    let text = words(&*told.unwrap_err());
    assert!(text.contains("300 requests"), "{text}");
}
