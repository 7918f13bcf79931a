//! Adoption, release and two objects that want one namespace, with a control plane in the test.

use example_application_namespace::{ApplicationNamespace, FINALIZER, Ownership, controller, ownership};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use operator::{Manager, Running, definition};
use serde_json::json;
use std::time::Duration;
use testkit::{Cluster, Fault};

const SHOP: &str = "{apiVersion: example.com/v1, kind: ApplicationNamespace, metadata: {name: shop}, spec: {namespaceName: shop-prod}}";

async fn begin(cluster: &Cluster) -> Running {
    cluster.apply(&definition::yaml(&definition::of::<ApplicationNamespace>())).await;
    let client = cluster.client_as("adopter", &["system:masters"]);
    cluster.run(Manager::new("adopter", cluster.world(), client).controller(controller()))
}

async fn namespace(cluster: &Cluster, name: &str) {
    cluster.apply(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}")).await;
}

/// Who controls the namespace, and the reason in the condition of the object.
async fn see(cluster: &Cluster, name: &str, space: &str) -> (Ownership, String) {
    let application: ApplicationNamespace = cluster.get(None, name).await;
    let found = ownership(&application, cluster.find::<Namespace>(None, space).await.as_ref());
    let conditions = application.status.map(|status| status.conditions).unwrap_or_default();
    (found, conditions.first().map(|condition| condition.reason.clone()).unwrap_or_default())
}

fn is(ownership: Ownership, reason: &str) -> (Ownership, String) {
    (ownership, reason.to_owned())
}

#[test]
fn a_namespace_is_made_or_adopted() {
    testkit::run(|cluster| async move {
        let _operator = begin(&cluster).await;
        cluster.apply(SHOP).await;
        cluster.settle().await;
        assert_eq!(see(&cluster, "shop", "shop-prod").await, is(Ownership::Mine, "InCharge"));

        namespace(&cluster, "old").await;
        let before: Namespace = cluster.get(None, "old").await;
        cluster.apply(&SHOP.replace("name: shop", "name: legacy").replace("shop-prod", "old")).await;
        cluster.settle().await;
        assert_eq!(see(&cluster, "legacy", "old").await, is(Ownership::Mine, "InCharge"));
        let after: Namespace = cluster.get(None, "old").await;
        assert_eq!(after.uid(), before.uid(), "it is the one that was there");
    });
}

#[test]
fn who_comes_second_waits_until_the_first_lets_go() {
    testkit::run(|cluster| async move {
        let _operator = begin(&cluster).await;
        cluster.apply(SHOP).await;
        cluster.settle().await;
        cluster.apply(&SHOP.replace("name: shop", "name: rival")).await;
        cluster.settle().await;
        let taken = Ownership::Taken("ApplicationNamespace shop".to_owned());
        assert_eq!(see(&cluster, "rival", "shop-prod").await, is(taken, "Taken"));

        let uid = cluster.get::<Namespace>(None, "shop-prod").await.uid();
        cluster.delete::<ApplicationNamespace>(None, "shop").await;
        cluster.settle().await;
        assert!(cluster.find::<ApplicationNamespace>(None, "shop").await.is_none());
        assert_eq!(see(&cluster, "rival", "shop-prod").await, is(Ownership::Mine, "InCharge"));
        assert_eq!(cluster.get::<Namespace>(None, "shop-prod").await.uid(), uid, "nothing was lost");
    });
}

#[test]
fn a_change_of_mind_releases_the_one_before() {
    testkit::run(|cluster| async move {
        let _operator = begin(&cluster).await;
        cluster.apply(SHOP).await;
        cluster.settle().await;
        cluster
            .patch::<ApplicationNamespace>(None, "shop", &json!({"spec": {"namespaceName": "shop-next"}}))
            .await;
        cluster.settle().await;
        assert_eq!(see(&cluster, "shop", "shop-prod").await.0, Ownership::Orphan);
        assert_eq!(see(&cluster, "shop", "shop-next").await, is(Ownership::Mine, "InCharge"));
    });
}

#[test]
fn deletion_says_what_becomes_of_the_namespace() {
    for (on_delete, owners) in [("Release", 0), ("Delete", 1)] {
        testkit::run(|cluster| async move {
            let _operator = begin(&cluster).await;
            cluster.apply(&SHOP.replace("shop-prod}", &format!("shop-prod, onDelete: {on_delete}}}"))).await;
            cluster.settle().await;
            assert_eq!(cluster.get::<ApplicationNamespace>(None, "shop").await.finalizers(), [FINALIZER]);
            cluster.delete::<ApplicationNamespace>(None, "shop").await;
            cluster.settle().await;
            assert!(cluster.find::<ApplicationNamespace>(None, "shop").await.is_none());
            // With Delete it is left to garbage collection, which deletes children of deleted owners.
            if let Some(left) = cluster.find::<Namespace>(None, "shop-prod").await {
                assert_eq!(left.owner_references().len(), owners, "{on_delete}");
            }
        });
    }
}

#[test]
fn conflicts_and_lost_answers_change_nothing() {
    for nth in 1..=5 {
        testkit::run(|cluster| async move {
            cluster.inject(Fault::on("*", "*").by("adopter").nth(nth + 4).lose_answer());
            cluster.inject(Fault::on("patch", "namespaces").by("adopter").nth(1).conflict());
            namespace(&cluster, "shop-prod").await;
            let _operator = begin(&cluster).await;
            cluster.apply(SHOP).await;
            cluster.advance(Duration::from_secs(2)).await;
            assert_eq!(see(&cluster, "shop", "shop-prod").await, is(Ownership::Mine, "InCharge"));
        });
    }
}

#[test]
fn the_definition_is_sound() {
    assert_eq!(definition::review(&definition::of::<ApplicationNamespace>()), []);
}
