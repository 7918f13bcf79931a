//! The cache before a server that misbehaves: watches break, lists expire, answers are late or lost.

mod own_writes;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
    core::ObjectMeta,
};
use operator::{
    Key,
    cache::{Caches, Origin, Scope, View},
};
use serde_json::json;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use testkit::{Cluster, Fault};

fn config(name: &str, value: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some("default".to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("value".to_owned(), value.to_owned())])),
        ..ConfigMap::default()
    }
}

fn key(name: &str) -> Key {
    Key::new(Some("default"), name)
}

async fn open(cluster: &Cluster) -> (Caches, View<ConfigMap>) {
    let caches = Caches::new(cluster.world().clone(), cluster.client());
    let view = caches.kind::<ConfigMap>(Scope::default().in_namespace("default"));
    view.synced().await;
    (caches, view)
}

fn value(view: &View<ConfigMap>, name: &str) -> Option<String> {
    let config = view.get(&key(name)).expect("a config map is a config map")?;
    config.data.as_ref()?.get("value").cloned()
}

/// The cache is as the server is.
async fn assert_equal(cluster: &Cluster, view: &View<ConfigMap>) {
    let served: Vec<ConfigMap> = cluster.list("default").await;
    let text = |object: &ConfigMap| {
        let mut object = object.clone();
        object.metadata.managed_fields = None;
        serde_json::to_string(&object).expect("a config map is JSON")
    };
    let cached: Vec<String> = view.list().expect("all are config maps").iter().map(|it| text(it)).collect();
    assert_eq!(cached, served.iter().map(text).collect::<Vec<_>>());
}

/// Records each change: `+name`, `~name` or `-name`, and its origin.
fn record_deltas(view: &View<ConfigMap>) -> Arc<Mutex<Vec<String>>> {
    let deltas = Arc::new(Mutex::new(Vec::new()));
    let recorded = Arc::clone(&deltas);
    view.subscribe(Arc::new(move |delta| {
        let sign = match (&delta.before, &delta.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        let origin = match delta.origin {
            Origin::InitialList => "initial",
            Origin::Watch => "watched",
            Origin::OwnWrite => "own",
            Origin::Resync => "resync",
        };
        let name = delta.item().expect("a delta has an object").key().name().to_owned();
        recorded.lock().unwrap().push(format!("{sign}{name} {origin}"));
    }));
    deltas
}

fn take(deltas: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *deltas.lock().unwrap())
}

#[test]
fn each_object_and_each_change_is_reported_once() {
    testkit::run(|cluster| async move {
        cluster.create(&config("a", "1")).await;
        let (_caches, view) = open(&cluster).await;
        let deltas = record_deltas(&view);
        assert_eq!(take(&deltas), ["+a initial"]);
        cluster.create(&config("b", "1")).await;
        cluster.patch::<ConfigMap>("default", "a", &json!({"data": {"value": "2"}})).await;
        cluster.delete::<ConfigMap>("default", "b").await;
        cluster.settle().await;
        assert_eq!(take(&deltas), ["+b watched", "~a watched", "-b watched"]);
        assert_equal(&cluster, &view).await;
        cluster.advance(Duration::from_secs(12 * 3600)).await;
        assert_eq!(take(&deltas), ["~a resync"]);
    });
}

#[test]
fn views_of_the_same_kind_and_scope_share_one_watch() {
    testkit::run(|cluster| async move {
        let (caches, view) = open(&cluster).await;
        caches.kind::<ConfigMap>(Scope::default().in_namespace("default")).synced().await;
        assert_eq!(cluster.trace().of("watch", "configmaps").len(), 1);
        caches.metadata::<ConfigMap>(Scope::default()).synced().await;
        assert_eq!(cluster.trace().of("watch", "configmaps").len(), 2);
        drop(view);
    });
}

#[test]
fn a_broken_watch_resumes_where_it_was() {
    testkit::run(|cluster| async move {
        cluster.create(&config("a", "1")).await;
        let (_caches, view) = open(&cluster).await;
        let deltas = record_deltas(&view);
        take(&deltas);
        for (round, name) in ["b", "c", "d"].iter().enumerate() {
            assert_eq!(cluster.drop_watches("configmaps"), 1, "round {round}");
            cluster.create(&config(name, "1")).await;
            cluster.advance(Duration::from_secs(10)).await;
        }
        assert_eq!(take(&deltas), ["+b watched", "+c watched", "+d watched"]);
        assert_equal(&cluster, &view).await;
    });
}

#[test]
fn a_watch_that_breaks_in_the_first_list_starts_over() {
    testkit::run(|cluster| async move {
        for name in ["a", "b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        let cut = cluster.inject(Fault::on("watch", "configmaps").times(2).cut_after(2));
        let (_caches, view) = open(&cluster).await;
        assert_eq!(cut.hits(), 2);
        assert_equal(&cluster, &view).await;
    });
}

#[test]
fn after_an_expired_version_the_new_list_reports_deletions() {
    testkit::run(|cluster| async move {
        for name in ["a", "b"] {
            cluster.create(&config(name, "1")).await;
        }
        let (_caches, view) = open(&cluster).await;
        let deltas = record_deltas(&view);
        take(&deltas);
        let away = cluster.inject(Fault::on("watch", "configmaps").times(3).lose_request());
        cluster.drop_watches("configmaps");
        cluster.world().sleep(Duration::from_millis(10)).await;
        cluster.delete::<ConfigMap>("default", "a").await;
        cluster.patch::<ConfigMap>("default", "b", &json!({"data": {"value": "2"}})).await;
        cluster.compact().await;
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(away.hits(), 3);
        assert_eq!(take(&deltas), ["~b watched", "-a watched"]);
        assert_equal(&cluster, &view).await;
    });
}

#[test]
fn an_expiry_as_an_error_event_leads_to_a_new_list() {
    testkit::run(|cluster| async move {
        cluster.create(&config("a", "1")).await;
        let (_caches, view) = open(&cluster).await;
        cluster.inject(Fault::on("watch", "configmaps").nth(1).expire_after(1));
        cluster.drop_watches("configmaps");
        cluster.advance(Duration::from_secs(5)).await;
        for name in ["b", "c"] {
            cluster.create(&config(name, "1")).await;
        }
        cluster.advance(Duration::from_secs(60)).await;
        assert_equal(&cluster, &view).await;
    });
}

#[test]
fn a_server_without_streamed_lists_is_listed_in_pages() {
    testkit::run(|cluster| async move {
        for number in 0..3 {
            cluster.create(&config(&format!("a-{number}"), "1")).await;
        }
        let refused = cluster.inject(Fault::on("watch", "configmaps").nth(1).error(422, "Invalid"));
        let (_caches, view) = open(&cluster).await;
        assert_eq!(refused.hits(), 1);
        assert_eq!(cluster.trace().of("list", "configmaps").len(), 1);
        cluster.create(&config("b", "1")).await;
        cluster.advance(Duration::from_secs(5)).await;
        assert_equal(&cluster, &view).await;
    });
}

#[test]
fn a_failing_server_is_asked_with_growing_pauses() {
    testkit::run(|cluster| async move {
        let ill = cluster.inject(Fault::on("watch", "configmaps").always().error(503, "ServiceUnavailable"));
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let view = caches.kind::<ConfigMap>(Scope::default());
        cluster.world().sleep(Duration::from_secs(600)).await;
        assert!(!view.is_synced());
        assert!((15..45).contains(&ill.hits()), "{} times in ten minutes", ill.hits());
        cluster.lift_faults();
        view.synced().await;
    });
}

#[test]
fn an_object_that_leaves_the_scope_leaves_the_cache() {
    testkit::run(|cluster| async move {
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let view = caches.kind::<ConfigMap>(Scope::default().labelled("app=web"));
        view.synced().await;
        let configs: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        let held = cluster.hold_watches("configmaps");
        let mut web = config("a", "1");
        web.metadata.labels = Some(BTreeMap::from([("app".to_owned(), "web".to_owned())]));
        configs.create(&PostParams::default(), &web).await.expect("it is new");
        configs.create(&PostParams::default(), &config("b", "1")).await.expect("it is new");
        assert_eq!(view.keys(), [key("a")]);
        let patch = Patch::Merge(json!({"metadata": {"labels": {"app": "db"}}}));
        configs.patch("a", &PatchParams::default(), &patch).await.expect("it is there");
        assert!(view.is_empty());
        drop(held);
        cluster.settle().await;
        assert!(view.is_empty());
    });
}

#[test]
fn a_metadata_view_keeps_only_metadata() {
    testkit::run(|cluster| async move {
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let view = caches.metadata::<ConfigMap>(Scope::default().in_namespace("default"));
        cluster.create(&config("a", "1")).await;
        view.synced().await;
        let configs: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        configs.create(&PostParams::default(), &config("b", "1")).await.expect("it is new");
        for name in ["a", "b"] {
            let item = view.item(&key(name)).expect("it is there");
            assert!(!item.json().contains("\"data\""), "{}", item.json());
            let typed = view.get(&key(name)).expect("it fits").expect("it is there");
            assert_eq!(typed.metadata.name.as_deref(), Some(name));
        }
    });
}

#[test]
fn after_many_faults_the_cache_equals_the_server() {
    testkit::run(|cluster| async move {
        let (caches, view) = open(&cluster).await;
        let configs: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        let world = cluster.world().clone();
        for round in 0..60 {
            let name = format!("a-{}", world.pick(0..5));
            let value = round.to_string();
            match world.pick(0..8) {
                0 => drop(cluster.drop_watches("configmaps")),
                1 => cluster.compact().await,
                2 => drop(cluster.inject(Fault::on("watch", "configmaps").expire_after(1))),
                3 => drop(cluster.inject(Fault::on("*", "configmaps").lose_answer())),
                4 => drop(configs.delete(&name, &DeleteParams::default()).await),
                5 => drop(cluster.try_delete::<ConfigMap>("default", &name).await),
                _ => {
                    let apply = PatchParams::apply("test").force();
                    let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": value}});
                    if configs.patch(&name, &apply, &Patch::Apply(&wanted)).await.is_ok() {
                        assert_eq!(self::value(&view, &name), Some(value), "round {round}");
                    }
                }
            }
            if world.chance(0.3) {
                world.sleep(Duration::from_millis(world.pick(0..400))).await;
            }
        }
        cluster.lift_faults();
        cluster.drop_watches("configmaps");
        cluster.advance(Duration::from_secs(120)).await;
        assert_equal(&cluster, &view).await;
    });
}
