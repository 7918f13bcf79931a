//! Sets of children on a server: applied, pruned, remembered.

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret, Service},
    events::v1::Event,
};
use kube::{Api, Resource, ResourceExt};
use operator::{
    Context, Controller, Failure, Manager, Next, all,
    apply::{self, Applied, Error, Force, SET_LABEL, Set},
    owner::{self, OwnerError},
};
use serde_json::json;
use std::time::Duration;
use testkit::{Cluster, Fault};

const MANAGER: &str = "web.example.com";
const RECORD: &str = "setpoint.dev/web-example-com-children-";

async fn owner(cluster: &Cluster) -> ConfigMap {
    let object = json!({ "metadata": { "name": "owner", "namespace": "default" } });
    cluster.create(&serde_json::from_value(object).unwrap()).await
}

fn map(name: &str) -> ConfigMap {
    let mut map: ConfigMap = named(name);
    map.metadata.namespace = Some("default".into());
    map
}

fn named<K: Resource + Default>(name: &str) -> K {
    let mut object = K::default();
    object.meta_mut().name = Some(name.into());
    object
}

/// Applies these maps and secrets for the owner as it is now.
async fn apply(cluster: &Cluster, maps: &[&str], secrets: &[&str]) -> Result<Applied, Error> {
    let owner: ConfigMap = cluster.get("default", "owner").await;
    let mut set = Set::of(&owner, MANAGER)?;
    for name in maps {
        set.add(named::<ConfigMap>(name))?;
    }
    for name in secrets {
        set.add(named::<Secret>(name))?;
    }
    set.apply(&cluster.client(), Force::Yes).await
}

/// All objects but the owner.
async fn children(cluster: &Cluster) -> String {
    let mut names: Vec<String> = Vec::new();
    names.extend(cluster.list::<ConfigMap>("default").await.iter().map(ResourceExt::name_any));
    names.extend(cluster.list::<Secret>("default").await.iter().map(ResourceExt::name_any));
    names.retain(|name| name != "owner" && name != "kube-root-ca.crt");
    names.join(" ")
}

async fn record(cluster: &Cluster) -> String {
    let owner: ConfigMap = cluster.get("default", "owner").await;
    let mut records = owner.annotations().iter().filter(|(key, _)| key.starts_with(RECORD));
    records.next().map(|(_, kinds)| kinds.clone()).unwrap_or_default()
}

#[test]
fn children_that_left_the_set_are_pruned_before_their_kind_is_forgotten() {
    testkit::run(|cluster| async move {
        owner(&cluster).await;
        let story = [
            (&["a", "b"][..], &["s"][..], "a b s", "configmaps.v1,secrets.v1", 0),
            (&["a", "b"], &["s"], "a b s", "configmaps.v1,secrets.v1", 0),
            (&["a"], &["s"], "a s", "configmaps.v1,secrets.v1", 1),
            // The kind was in the set before: it is pruned until no object is found.
            (&["a"], &[], "a", "configmaps.v1,secrets.v1", 1),
            (&["a"], &[], "a", "configmaps.v1", 0),
            (&[], &["a"], "a", "configmaps.v1,secrets.v1", 1),
            (&[], &[], "", "secrets.v1", 1),
            (&[], &[], "", "", 0),
        ];
        for (maps, secrets, left, kinds, deleted) in story {
            let applied = apply(&cluster, maps, secrets).await.unwrap();
            assert_eq!(applied.pruned.deleted.len(), deleted, "{maps:?} {secrets:?}");
            assert_eq!(applied.children.len(), maps.len() + secrets.len());
            assert_eq!((children(&cluster).await.as_str(), record(&cluster).await.as_str()), (left, kinds));
        }
    });
}

#[test]
fn children_are_controlled_and_labelled() {
    testkit::run(|cluster| async move {
        let owner = owner(&cluster).await;
        apply(&cluster, &["a"], &[]).await.unwrap();
        let child: ConfigMap = cluster.get("default", "a").await;
        assert!(owner::is_controlled_by(&child, &owner));
        assert!(child.labels()[SET_LABEL].starts_with("web-example-com-"));
        let managers: Vec<_> = child.managed_fields().iter().map(|entry| entry.manager.as_deref()).collect();
        assert_eq!(managers, [Some(MANAGER)]);
    });
}

#[test]
fn children_that_the_owner_does_not_control_stay() {
    testkit::run(|cluster| async move {
        owner(&cluster).await;
        apply(&cluster, &["a", "b"], &[]).await.unwrap();
        // Somebody took this one over, label and all.
        cluster.patch::<ConfigMap>("default", "b", &json!({ "metadata": { "ownerReferences": null } })).await;
        let applied = apply(&cluster, &[], &[]).await.unwrap();
        let spared: Vec<_> = applied.pruned.spared.iter().map(|member| member.name.as_str()).collect();
        assert_eq!((spared, children(&cluster).await.as_str()), (vec!["b"], "b"));
    });
}

#[test]
fn a_child_of_another_controller_is_refused() {
    testkit::run(|cluster| async move {
        owner(&cluster).await;
        let object = json!({ "metadata": { "name": "rival", "namespace": "default" } });
        let rival: ConfigMap = cluster.create(&serde_json::from_value(object).unwrap()).await;
        let mut theirs: Secret = named("s");
        owner::control(&rival, &mut theirs).unwrap();
        cluster.create(&theirs).await;
        let error = apply(&cluster, &[], &["s"]).await.unwrap_err();
        assert!(matches!(Failure::from(error), Failure::Blocked { .. }));
        assert!(owner::is_controlled_by(&cluster.get::<Secret>("default", "s").await, &rival));
    });
}

/// Applies Secret `s` for the ConfigMap of this name.
async fn apply_secret(cluster: &Cluster, owner: &str, force: Force) -> Result<Applied, Error> {
    let owner: ConfigMap = cluster.get("default", owner).await;
    let mut set = Set::of(&owner, MANAGER)?;
    set.add(named::<Secret>("s"))?;
    set.apply(&cluster.client(), force).await
}

#[test]
fn a_child_is_not_taken_from_another_owner_of_the_same_manager() {
    testkit::run(|cluster| async move {
        for owner in ["first", "second"].map(map) {
            cluster.create(&owner).await;
        }
        apply_secret(&cluster, "first", Force::No).await.unwrap();
        let child: Secret = cluster.get("default", "s").await;
        for force in [Force::No, Force::Yes] {
            let error = apply_secret(&cluster, "second", force).await.unwrap_err();
            assert!(matches!(error, Error::Owner(OwnerError::Controlled { .. })), "{error}");
            let uid = owner::controller_of(&child).unwrap().uid.clone();
            let message = format!(r#"child "s" is controlled by ConfigMap "first" ({uid})"#);
            assert_eq!(error.to_string(), message);
        }
        assert_eq!(cluster.get::<Secret>("default", "s").await, child);

        // The garbage collector has not deleted the child of the deleted owner yet.
        cluster.delete::<ConfigMap>("default", "first").await;
        apply_secret(&cluster, "second", Force::No).await.unwrap();
        let second: ConfigMap = cluster.get("default", "second").await;
        assert!(owner::is_controlled_by(&cluster.get::<Secret>("default", "s").await, &second));
    });
}

#[test]
fn an_object_without_a_controller_is_adopted_only_if_the_set_adopts() {
    testkit::run(|cluster| async move {
        let owner = owner(&cluster).await;
        let mut orphan: Secret = named("s");
        orphan.metadata.namespace = Some("default".into());
        let orphan = cluster.create(&orphan).await;
        let error = apply(&cluster, &[], &["s"]).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"child "s" exists and has no controller: let the set adopt it, or use another name"#
        );
        assert_eq!(cluster.get::<Secret>("default", "s").await, orphan);

        let owner_now: ConfigMap = cluster.get("default", "owner").await;
        let mut set = Set::of(&owner_now, MANAGER).unwrap().adopting();
        set.add(named::<Secret>("s")).unwrap();
        set.apply(&cluster.client(), Force::No).await.unwrap();
        assert!(owner::is_controlled_by(&cluster.get::<Secret>("default", "s").await, &owner));
    });
}

#[test]
fn two_owners_with_one_child_name_do_not_write_for_ever() {
    testkit::run(|cluster| async move {
        let controller = Controller::new("owners", all::<ConfigMap>().labelled("wants=s"))
            .owns(all::<Secret>())
            .workers(2)
            .reconcile((), |context: Context<()>, key| async move {
                let Some(owner) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
                let mut set = Set::of(owner.as_ref(), MANAGER)?;
                set.add(named::<Secret>("s"))?;
                set.apply(&context.client(), Force::No).await?;
                Ok(Next::Settled)
            });
        let manager = Manager::new("owners", cluster.world(), cluster.client_as("op", &["system:masters"]));
        let running = manager.controller(controller).start();
        cluster.watch_idle("owners", running.idle_probe());
        // Both workers see no child, and both would create it.
        cluster.inject(Fault::on("patch", "secrets").always().delay(Duration::from_millis(200)));
        for name in ["first", "second"] {
            let mut owner = map(name);
            owner.metadata.labels = Some([("wants".to_owned(), "s".to_owned())].into());
            cluster.create(&owner).await;
        }
        cluster.settle().await;
        let child: Secret = cluster.get("default", "s").await;
        assert_eq!(cluster.trace().of("patch", "secrets").len(), 1, "the second worker did not take it");
        cluster.advance(Duration::from_secs(11 * 3600)).await;
        assert_eq!(cluster.get::<Secret>("default", "s").await, child);
        let events: Vec<Event> = cluster.list("default").await;
        let refusals = events.iter().filter(|event| event.reason.as_deref() == Some("Controlled"));
        assert!(refusals.count() > 0, "the owner without a child says why");
    });
}

#[test]
fn nothing_is_pruned_if_a_child_cannot_be_applied() {
    testkit::run(|cluster| async move {
        owner(&cluster).await;
        apply(&cluster, &["a"], &[]).await.unwrap();
        cluster.inject(Fault::on("patch", "secrets").nth(1).error(500, "InternalError"));
        let error = apply(&cluster, &["b"], &["s"]).await.unwrap_err();
        assert_eq!(error.to_string(), r#"Secret "s" was not written"#);
        assert_eq!(children(&cluster).await, "a b");
        // The kind was written down before the first of it was tried.
        assert_eq!(record(&cluster).await, "configmaps.v1,secrets.v1");
        apply(&cluster, &["b"], &["s"]).await.unwrap();
        assert_eq!(children(&cluster).await, "b s");
    });
}

#[test]
fn a_stale_owner_does_not_overwrite_the_record_of_kinds() {
    testkit::run(|cluster| async move {
        let stale = owner(&cluster).await;
        apply(&cluster, &["a"], &["s"]).await.unwrap();
        let mut set = Set::of(&stale, MANAGER).unwrap();
        set.add(named::<Service>("x")).unwrap();
        let error = set.apply(&cluster.client(), Force::Yes).await.unwrap_err();
        assert!(matches!(Failure::from(error), Failure::Conflict(_)));
        assert_eq!(record(&cluster).await, "configmaps.v1,secrets.v1");
    });
}

#[test]
fn a_field_of_another_manager_is_a_conflict_unless_forced() {
    testkit::run(|cluster| async move {
        let api: Api<ConfigMap> = Api::namespaced(cluster.client(), "default");
        let map = |value: &str| -> ConfigMap {
            let object = json!({ "metadata": { "name": "m" }, "data": { "k": value } });
            serde_json::from_value(object).unwrap()
        };
        apply::object(&api, &map("1"), "one", Force::No).await.unwrap();
        let error = apply::object(&api, &map("2"), "two", Force::No).await.unwrap_err();
        assert!(operator::retry::is_conflict(&error), "{error}");
        let forced = apply::object(&api, &map("2"), "two", Force::Yes).await.unwrap();
        assert_eq!(forced.data.unwrap()["k"], "2");
    });
}
