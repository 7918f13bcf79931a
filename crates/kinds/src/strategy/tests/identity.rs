//! Status apart from spec, metadata that stays, and fields that a writer does not come to own.

use api::object;
use schema::field_set::{FieldSet, Path};
use serde_json::{Value, json};

use super::{NOW, updated, user, written};
use crate::strategy::{Circumstances, Strategy, custom, strategy};

#[test]
fn an_update_keeps_status_and_identity() {
    let old = json!({
        "metadata": {
            "name": "a", "uid": "u", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 30,
        },
        "spec": {"a": 1}, "status": {"s": 1},
    });
    let expected = json!({
        "metadata": {
            "name": "a", "uid": "u", "generation": 2, "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z", "deletionGracePeriodSeconds": 30, "labels": {"l": "m"},
        },
        "spec": {"a": 2}, "status": {"s": 1},
    });
    let new = json!({"metadata": {"name": "a", "generation": 7, "labels": {"l": "m"}}, "spec": {"a": 2}, "status": {"s": 2}});
    assert_eq!(updated("apps", "deployments", &old, new.clone()), expected);
    let mut other = new;
    other["metadata"]["uid"] = json!("other");
    assert_eq!(
        updated("apps", "deployments", &old, other)["metadata"]["uid"],
        json!("other"),
        "for validation to refuse"
    );
}

#[test]
fn a_status_is_written_alone() {
    let old = json!({"metadata": {"labels": {"a": "old"}, "annotations": {"a": "old"}, "generation": 1}, "spec": {"a": 1}, "status": {"s": 1}});
    let new = json!({
        "metadata": {"labels": {"a": "new"}, "annotations": {"a": "new"}, "managedFields": [1]},
        "spec": {"a": 2}, "status": {"s": 2},
    });
    for (group, resource, labels, annotations) in [
        ("", "services", "new", "new"),
        ("apps", "deployments", "old", "new"),
        ("apps", "replicasets", "new", "new"),
        ("apiextensions.k8s.io", "customresourcedefinitions", "new", "new"),
        ("flowcontrol.apiserver.k8s.io", "flowschemas", "old", "old"),
        ("storage.k8s.io", "volumeattachments", "old", "old"),
        ("apiregistration.k8s.io", "apiservices", "old", "old"),
    ] {
        let expected = json!({
            "metadata": {"labels": {"a": labels}, "annotations": {"a": annotations}, "generation": 1, "managedFields": [1]},
            "spec": {"a": 1}, "status": {"s": 2},
        });
        assert_eq!(written(group, resource, "status", &old, new.clone()), expected, "{resource}");
    }
}

#[test]
fn a_custom_resource_counts_its_content() {
    fn write(of: &Strategy, subresource: &str, old: &Value, new: Value) -> Value {
        let (user, mut new) = (user(), new);
        let with = Circumstances { now: NOW.parse().unwrap(), user: &|| user.clone() };
        match subresource {
            "" => of.prepare_update(&mut new, old, &with),
            name => of.prepare_subresource(name, &mut new, old, &with),
        }
        new
    }
    let old = json!({"metadata": {"generation": 1}, "extra": 1, "status": 1});
    for (has_status, new, generation, status) in [
        (true, json!({"extra": 1, "status": 2}), 1, 1),
        (true, json!({"extra": 2}), 2, 1),
        (false, json!({"extra": 1, "status": 2}), 2, 2),
        (false, json!({"metadata": {"labels": {"a": "b"}}, "extra": 1, "status": 1}), 1, 1),
    ] {
        let after = write(custom(has_status), "", &old, new.clone());
        assert_eq!((object::generation(&after), &after["status"]), (generation, &json!(status)), "{new}");
    }
    let after = write(
        custom(true),
        "status",
        &old,
        json!({"metadata": {"labels": {"a": "b"}}, "extra": 2, "more": 3, "status": 2}),
    );
    assert_eq!(after, json!({"metadata": {"generation": 1}, "extra": 1, "status": 2}));
}

#[test]
fn a_volume_knows_since_when_it_is_in_its_phase() {
    let old = json!({"status": {"phase": "Pending", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"}});
    for (status, since) in [
        (json!({"phase": "Pending"}), "2026-01-01T00:00:00Z"),
        (json!({"phase": "Bound"}), NOW),
        (json!({"phase": "Bound", "lastPhaseTransitionTime": "2026-01-01T00:00:00Z"}), NOW),
        (
            json!({"phase": "Bound", "lastPhaseTransitionTime": "2026-02-02T00:00:00Z"}),
            "2026-02-02T00:00:00Z",
        ),
    ] {
        let after = written("", "persistentvolumes", "status", &old, json!({"status": status}));
        assert_eq!(after["status"]["lastPhaseTransitionTime"], json!(since), "{status}");
    }
}

#[test]
fn finalizers_of_a_namespace_have_a_door_of_their_own() {
    let old = json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
    let new = json!({"metadata": {"name": "n"}, "status": {"phase": "Terminating"}});
    let labels = json!({"kubernetes.io/metadata.name": "n"});
    let after = updated("", "namespaces", &old, new.clone());
    assert_eq!(
        (&after["spec"], &after["status"], &after["metadata"]["labels"]),
        (&old["spec"], &old["status"], &labels)
    );
    let after = written("", "namespaces", "finalize", &old, new.clone());
    assert_eq!((after.get("spec"), &after["status"]), (None, &old["status"]));
    let after = written("", "namespaces", "status", &old, new);
    assert_eq!((&after["spec"], &after["status"]), (&old["spec"], &json!({"phase": "Terminating"})));
}

#[test]
fn who_approves_a_certificate_does_not_sign_it() {
    let old = json!({"spec": {"request": "r"}, "status": {"conditions": [{"type": "Approved", "status": "True", "lastUpdateTime": "a", "lastTransitionTime": "b"}]}});
    let new = json!({"spec": {"request": "x"}, "status": {"certificate": "c", "conditions": [{"type": "Denied", "status": "True"}]}});
    let (group, resource) = ("certificates.k8s.io", "certificatesigningrequests");
    let denied =
        json!({"type": "Denied", "status": "True", "lastUpdateTime": NOW, "lastTransitionTime": NOW});
    let after = written(group, resource, "approval", &old, new.clone());
    assert_eq!((&after["spec"], &after["status"]), (&old["spec"], &json!({"conditions": [denied]})));
    let approved = json!({"spec": {}, "status": {"certificate": "c", "conditions": [{"type": "Approved", "status": "False"}]}});
    let after = written(group, resource, "status", &old, approved);
    assert_eq!(after["status"], json!({"certificate": "c", "conditions": old["status"]["conditions"]}));
    assert_eq!(updated(group, resource, &old, new)["spec"], old["spec"]);
}

#[test]
fn a_writer_does_not_own_fields_that_its_write_leaves_alone() {
    let paths: [&[&str]; 7] = [
        &["spec"],
        &["status"],
        &["metadata", "labels"],
        &["metadata", "ownerReferences"],
        &["status", "conditions"],
        &["status", "certificate"],
        &["spec", "ephemeralContainers"],
    ];
    for (group, resource, subresource, kept) in [
        ("", "configmaps", "", [true, true, true, true, true, true, true]),
        ("", "pods", "", [true, false, true, true, false, false, true]),
        ("", "pods", "status", [false, true, true, false, true, true, false]),
        ("", "pods", "ephemeralcontainers", [true, false, false, false, false, false, true]),
        ("apps", "deployments", "status", [false, true, false, true, true, true, false]),
        (
            "flowcontrol.apiserver.k8s.io",
            "flowschemas",
            "status",
            [false, true, false, false, true, true, false],
        ),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            "",
            [false, false, true, true, false, false, false],
        ),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            "status",
            [false, true, true, true, false, true, false],
        ),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            "approval",
            [false, true, true, true, true, false, false],
        ),
    ] {
        let set = strategy(group, resource).reset_fields(subresource).apply(FieldSet::of_fields(paths));
        let left = paths.map(|path| set.has(&Path::of_fields(path.iter().copied())));
        assert_eq!(left, kept, "{resource}/{subresource}");
    }
}
