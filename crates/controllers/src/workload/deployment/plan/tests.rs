//! Which ReplicaSets a Deployment creates, scales and deletes.

use super::*;
use serde_json::{Value, json};

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
}

/// A ReplicaSet that was created in this minute, with so many pods, all available.
fn set(minute: i32, image: &str, replicas: i32, desired: i32) -> ReplicaSet {
    let mut template = template(image);
    template["metadata"]["labels"][HASH_LABEL] = json!(format!("hash{minute}"));
    serde_json::from_value(json!({
        "metadata": {"name": format!("web-{minute}"), "uid": minute.to_string(), "generation": 1,
            "creationTimestamp": format!("2026-01-01T00:{minute:02}:00Z"),
            "annotations": {
                "deployment.kubernetes.io/revision": minute.to_string(),
                "deployment.kubernetes.io/desired-replicas": desired.to_string(),
                "deployment.kubernetes.io/max-replicas": (desired + 1).to_string(),
            }},
        "spec": {"replicas": replicas, "selector": {}, "template": template},
        "status": {"replicas": replicas, "readyReplicas": replicas, "availableReplicas": replicas,
            "terminatingReplicas": 0, "observedGeneration": 1},
    }))
    .unwrap()
}

fn deployment(patch: &Value) -> Deployment {
    let mut deployment = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": 1},
        "spec": {"replicas": 3, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10, "template": template("b"),
            "selector": {"matchLabels": {"app": "web"}}, "strategy":
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
        "status": {},
    });
    for (part, fields) in patch.as_object().unwrap() {
        for (name, value) in fields.as_object().unwrap() {
            deployment[part][name] = value.clone();
        }
    }
    serde_json::from_value(deployment).unwrap()
}

fn planned(deployment: &Deployment, sets: &[ReplicaSet], with_pods: &[&str]) -> RolloutPlan {
    plan(&ObservedSets {
        deployment,
        spec: deployment.spec.as_ref().unwrap(),
        owner: OwnerReference::default(),
        sets: sets.to_vec(),
        with_pods: with_pods.iter().map(|uid| (*uid).to_owned()).collect(),
        now: "2026-01-01T01:00:00Z".parse().unwrap(),
    })
}

/// The plan as text: `create N`, `NAME: BEFORE>AFTER`, `delete NAME`.
fn shown(plan: &RolloutPlan) -> String {
    let create = plan.create.iter().map(|set| format!("create {}", wanted(set)));
    let updates = plan.updates.iter().map(|update| {
        format!("{}: {}>{}", update.set.name_any(), update.replicas_before, wanted(&update.set))
    });
    let delete = plan.delete.iter().map(|name| format!("delete {name}"));
    create.chain(updates).chain(delete).collect::<Vec<_>>().join(", ")
}

#[test]
fn rollouts_create_scale_and_clean_up() {
    let rolling = json!({});
    let recreate = json!({"spec": {"strategy": {"type": "Recreate"}}});
    let paused = json!({"spec": {"paused": true}});
    let scaled = json!({"spec": {"replicas": 6}});
    let complete = json!({"spec": {"revisionHistoryLimit": 1}, "status": {"replicas": 3, "updatedReplicas": 3,
        "availableReplicas": 3, "observedGeneration": 1}});
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:50:00Z"}});
    for (patch, sets, with_pods, expected) in [
        // Rolling updates.
        (&rolling, vec![], &[][..], "create 3"),
        (&rolling, vec![set(1, "a", 3, 3)], &[], "create 1"),
        (&rolling, vec![set(1, "a", 3, 3), set(2, "b", 1, 3)], &[], "web-1: 3>2"),
        (&rolling, vec![set(1, "a", 2, 3), set(2, "b", 1, 3)], &[], "web-2: 1>2"),
        (&rolling, vec![set(1, "a", 0, 3), set(2, "b", 3, 3)], &[], ""),
        // The oldest of two with the template is the new one.
        (&rolling, vec![set(1, "b", 3, 3), set(2, "b", 0, 3)], &[], "web-1: 3>3"),
        // Recreate: end, wait, start.
        (&recreate, vec![], &[], "create 3"),
        (&recreate, vec![set(1, "a", 3, 3)], &["1"], "web-1: 3>0"),
        (&recreate, vec![set(1, "a", 0, 3)], &["1"], ""),
        (&recreate, vec![set(1, "a", 0, 3)], &[], "create 3"),
        (&recreate, vec![set(1, "a", 0, 3), set(2, "b", 0, 3)], &["2"], "web-2: 0>3"),
        // Paused: no new template, but scaling.
        (&paused, vec![set(1, "a", 3, 3)], &[], ""),
        (&paused, vec![], &[], ""),
        (&paused, vec![set(1, "a", 5, 5)], &[], "web-1: 5>3"),
        // Scaling comes before the rollout, and is proportional.
        (&scaled, vec![set(1, "a", 3, 3)], &[], "web-1: 3>6"),
        (&scaled, vec![set(1, "a", 2, 3), set(2, "b", 2, 3)], &[], "web-2: 2>4, web-1: 2>3"),
        // The history is cut when the rollout is complete.
        (
            &complete,
            vec![set(1, "x", 0, 3), set(2, "y", 0, 3), set(3, "a", 0, 3), set(4, "b", 3, 3)],
            &[],
            "delete web-1, delete web-2",
        ),
        (&complete, vec![set(1, "x", 0, 3), set(2, "b", 3, 3)], &[], ""),
        (&deleted, vec![set(1, "a", 3, 3)], &[], ""),
    ] {
        let found = planned(&deployment(patch), &sets, with_pods);
        assert_eq!(shown(&found), expected, "{patch} {sets:?}");
    }
}

#[test]
fn a_new_set_has_the_hash_in_its_name_labels_selector_and_template() {
    let deployment =
        deployment(&json!({"metadata": {"annotations": {"note": "a"}}, "spec": {"minReadySeconds": 5}}));
    let new = planned(&deployment, &[set(4, "a", 3, 3)], &[]).create.unwrap();
    let hash = template::hash(&deployment.spec.as_ref().unwrap().template, None);
    let labels = json!({"app": "web", HASH_LABEL: hash});
    let spec = new.spec.clone().unwrap();
    assert_eq!(new.name_any(), format!("web-{hash}"));
    assert_eq!(json!(new.labels()), labels);
    assert_eq!(json!(spec.selector), json!({"matchLabels": labels}));
    assert_eq!(json!(spec.template.unwrap().metadata), json!({"labels": labels}));
    assert_eq!(spec.min_ready_seconds, Some(5));
    assert_eq!(
        json!(new.annotations()),
        json!({"note": "a", "deployment.kubernetes.io/revision": "5",
            "deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "4"})
    );
}

#[test]
fn an_old_set_becomes_the_newest_revision_when_its_template_returns() {
    let plan = planned(&deployment(&json!({})), &[set(1, "b", 0, 3), set(2, "a", 3, 3)], &[]);
    assert_eq!(shown(&plan), "web-1: 0>1");
    let annotations = plan.updates[0].set.annotations();
    assert_eq!(annotations["deployment.kubernetes.io/revision"], "3");
    assert_eq!(annotations["deployment.kubernetes.io/revision-history"], "1");
    assert_eq!(plan.revision.as_deref(), Some("3"));
}

#[test]
fn names_of_sets_are_not_too_long() {
    assert_eq!(set_name("web", "5d59d67564"), "web-5d59d67564");
    let long = set_name(&"a".repeat(253), "5d59d67564");
    assert_eq!((long.len(), long.ends_with("a-5d59d67564")), (253, true));
}
