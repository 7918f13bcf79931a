//! Predicates on the changes of a server's objects.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::Selector;
use operator::{
    cache::{Caches, Delta, Origin, Scope},
    predicate::{Predicate, annotations, creation, deletion, generation, labelled, labels, resource_version},
};
use serde_json::json;
use std::sync::{Arc, Mutex};
use testkit::Cluster;

fn predicates() -> Vec<(&'static str, Predicate)> {
    let selector: Selector = [("size", "big")].into_iter().collect();
    vec![
        ("generation", generation()),
        ("labels", labels()),
        ("annotations", annotations()),
        ("version", resource_version()),
        ("deletion", deletion()),
        ("creation", creation()),
        ("labelled", labelled(&selector)),
        ("both", generation() & deletion()),
        ("either", labels() | annotations()),
        ("quiet", !resource_version()),
        ("own", Predicate::new(|delta| delta.origin == Origin::OwnWrite)),
    ]
}

/// What has passed since the last call.
fn taken(passed: &Mutex<Vec<String>>) -> String {
    std::mem::take(&mut *passed.lock().unwrap()).join("; ")
}

async fn make(cluster: &Cluster) {
    let object = json!({
        "metadata": { "name": "web", "namespace": "default", "finalizers": ["example.com/hold"] },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } },
    });
    cluster.create::<PodDisruptionBudget>(&serde_json::from_value(object).unwrap()).await;
}

#[test]
fn predicates_pass_the_changes_they_are_for() {
    testkit::run(|cluster| async move {
        let caches = Caches::new(cluster.world().clone(), cluster.client());
        let view = caches.kind::<PodDisruptionBudget>(Scope::default());
        let passed = Arc::new(Mutex::new(Vec::new()));
        let (predicates, list) = (predicates(), Arc::clone(&passed));
        view.subscribe(Arc::new(move |delta: &Delta| {
            let names =
                predicates.iter().filter(|(_, predicate)| predicate.pass(delta)).map(|(name, _)| *name);
            list.lock().unwrap().push(names.collect::<Vec<_>>().join(" "));
        }));
        view.synced().await;

        make(&cluster).await;
        cluster.settle().await;
        assert_eq!(taken(&passed), "generation labels annotations version creation either");
        let story = [
            (json!({ "spec": { "minAvailable": 2 } }), "generation version"),
            (json!({ "metadata": { "labels": { "size": "big" } } }), "labels version labelled either"),
            (json!({ "metadata": { "labels": { "size": "small" } } }), "labels version labelled either"),
            (json!({ "metadata": { "annotations": { "a": "b" } } }), "annotations version either"),
        ];
        for (patch, expected) in story {
            cluster.patch::<PodDisruptionBudget>("default", "web", &patch).await;
            cluster.settle().await;
            assert_eq!(taken(&passed), expected, "{patch}");
        }
        cluster
            .patch_status::<PodDisruptionBudget>(
                "default",
                "web",
                &json!({ "status": { "currentHealthy": 2 } }),
            )
            .await;
        cluster.settle().await;
        assert_eq!(taken(&passed), "version");
        cluster.delete::<PodDisruptionBudget>("default", "web").await;
        cluster.settle().await;
        assert_eq!(taken(&passed), "generation version deletion both");
        cluster
            .patch::<PodDisruptionBudget>("default", "web", &json!({ "metadata": { "finalizers": null } }))
            .await;
        cluster.settle().await;
        assert_eq!(taken(&passed), "generation labels annotations version deletion both either");
    });
}
