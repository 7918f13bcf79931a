//! Sources: indexes of any kind, and objects that are made smaller before they are kept.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{Api, ResourceExt, api::PostParams, core::Selector};
use operator::{
    Context, Controller, Failure, Key, Manager, Next, all,
    cache::{Caches, Scope, Transform},
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
};

type Seen = mpsc::SyncSender<String>;

/// Tells which secrets have the name of the map as their type.
async fn find(context: Context<Seen>, key: Key) -> Result<Next, Failure> {
    let found = context.view::<Secret>()?.indexed("type", key.name())?;
    let names: Vec<String> = found.iter().map(|secret| secret.name_any()).collect();
    if !names.is_empty() {
        drop(context.state().send(format!("{}: {}", key.name(), names.join(" "))));
    }
    Ok(Next::Settled)
}

#[test]
fn a_source_of_any_kind_has_indexes() {
    testkit::run(|cluster| async move {
        let (seen, calls) = mpsc::sync_channel(1000);
        let secrets = all::<Secret>().index("type", |secret| secret.type_.iter().cloned().collect());
        let controller = Controller::new("finder", all::<ConfigMap>()).reads(secrets).reconcile(seen, find);
        for name in ["one", "two"] {
            cluster
                .apply(&format!("{{apiVersion: v1, kind: Secret, type: web, metadata: {{name: {name}}}}}"))
                .await;
        }
        cluster.apply("{apiVersion: v1, kind: Secret, type: db, metadata: {name: three}}").await;
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}").await;
        let running = Manager::new("test", cluster.world(), cluster.client()).controller(controller).start();
        cluster.watch_idle("test", running.idle_probe());
        cluster.settle().await;
        assert_eq!(calls.try_iter().collect::<Vec<_>>(), ["web: one two"]);
    });
}

#[test]
fn two_functions_under_one_index_name_end_the_manager() {
    fn types(secret: &Secret) -> Vec<String> {
        secret.type_.iter().cloned().collect()
    }
    testkit::run(|cluster| async move {
        let finder = |name: &str, secrets| {
            let (seen, _) = mpsc::sync_channel(1000);
            Controller::new(name, all::<ConfigMap>()).reads(secrets).reconcile(seen, find)
        };
        let of_types = || all::<Secret>().index("type", types);
        let manager = || Manager::new("test", cluster.world(), cluster.client());

        let shared = manager().controller(finder("one", of_types())).controller(finder("two", of_types()));
        let running = shared.start();
        cluster.watch_idle("test", running.idle_probe());
        cluster.settle().await;
        running.stop().await.expect("one function in two controllers is one index");

        let of_names = all::<Secret>().index("type", |secret| vec![secret.name_any()]);
        let contested = manager().controller(finder("one", of_types())).controller(finder("two", of_names));
        let ended = contested.start().ended().await;
        assert_eq!(
            ended.unwrap_err().to_string(),
            "two functions are given for the index \"type\" of Secret: share one function, or use two names"
        );
    });
}

fn names_only(map: &mut Value) {
    for text in map["data"].as_object_mut().into_iter().flat_map(|data| data.values_mut()) {
        *text = "".into();
    }
}

#[test]
fn transforms_change_what_lists_watches_and_own_writes_leave_in_the_cache() {
    testkit::run(|cluster| async move {
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: listed}, data: {a: long}}").await;
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let transform = Transform::new(names_only);
        let small =
            caches.kind::<ConfigMap>(Scope::default().in_namespace("default").transformed(&transform));
        let whole = caches.kind::<ConfigMap>(Scope::default().in_namespace("default"));
        small.synced().await;
        whole.synced().await;
        cluster.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: watched}, data: {b: long}}").await;
        cluster.settle().await;
        let maps: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        let own = json!({"metadata": {"name": "own"}, "data": {"c": "long"}});
        maps.create(&PostParams::default(), &serde_json::from_value(own).unwrap()).await.unwrap();
        for (name, entry) in [("listed", "a"), ("watched", "b"), ("own", "c")] {
            let data = |text: &str| Some(BTreeMap::from([(entry.to_owned(), text.to_owned())]));
            let key = Key::new(Some("default"), name);
            assert_eq!(small.get(&key).unwrap().unwrap().data, data(""), "{name}");
            assert_eq!(whole.get(&key).unwrap().unwrap().data, data("long"), "{name}");
        }
        let again =
            caches.kind::<ConfigMap>(Scope::default().in_namespace("default").transformed(&transform));
        assert!(again.is_synced(), "a clone of the transform shares the cache");
    });
}

/// Its digest would be that of the smaller object: a change of what is not kept would stay.
#[test]
fn an_apply_is_sent_if_the_cache_does_not_keep_whole_objects() {
    testkit::run(|cluster| async move {
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let maps = caches.kind::<ConfigMap>(Scope::default().without(&["data"]));
        maps.synced().await;
        let api: Api<ConfigMap> = Api::namespaced(caches.client(), "default");
        let wanted =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"a": "b"}});
        let apply = kube::api::PatchParams::apply("test").force();
        api.patch("web", &apply, &kube::api::Patch::Apply(&wanted)).await.unwrap();
        cluster.patch::<ConfigMap>("default", "web", &json!({"data": {"a": "by hand"}})).await;
        cluster.settle().await;
        api.patch("web", &apply, &kube::api::Patch::Apply(&wanted)).await.unwrap();
        let data = cluster.get::<ConfigMap>("default", "web").await.data.unwrap();
        assert_eq!(data["a"], "b");
    });
}

#[test]
fn label_indexes_follow_changes_and_are_not_needed_for_every_label() {
    testkit::run(|cluster| async move {
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let maps = caches.kind::<ConfigMap>(Scope::default().in_namespace("default"));
        maps.synced().await;
        let labels: BTreeMap<String, String> =
            (0..12).map(|n| (format!("label-{n}"), "yes".to_owned())).collect();
        let found = |label: &str| {
            let selector = Selector::from_iter([(label.to_owned(), "yes".to_owned())]);
            let names = |found: Vec<Arc<ConfigMap>>| {
                found.iter().map(|map| map.name_any()).collect::<Vec<_>>().join(" ")
            };
            let everywhere = names(maps.labelled(&selector).unwrap());
            assert_eq!(names(maps.labelled_in("default", &selector).unwrap()), everywhere);
            // A namespace whose name begins like another one.
            assert!(maps.labelled_in("defaul", &selector).unwrap().is_empty());
            everywhere
        };
        // The first eight make indexes.
        labels.keys().for_each(|label| assert_eq!(found(label), "", "{label}"));
        for name in ["a", "b"] {
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}});
            cluster.apply(&map.to_string()).await;
        }
        cluster.settle().await;
        labels.keys().for_each(|label| assert_eq!(found(label), "a b", "{label}"));
        let removed: BTreeMap<&String, Value> = labels.keys().map(|label| (label, Value::Null)).collect();
        cluster.patch::<ConfigMap>("default", "a", &json!({"metadata": {"labels": removed}})).await;
        cluster.settle().await;
        labels.keys().for_each(|label| assert_eq!(found(label), "b", "{label}"));
    });
}
