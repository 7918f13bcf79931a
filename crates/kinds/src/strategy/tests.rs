//! What was stored, what is written, what is stored next.

use serde_json::{Value, json};

use super::{Circumstances, GcPolicy, strategy};
use crate::built_in::BUILT_INS;

mod identity;
mod pods;
mod services;

const NOW: &str = "2026-11-15T10:00:00Z";

fn user() -> Value {
    json!({"username": "alice", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}})
}

fn created(group: &str, resource: &str, object: Value) -> Value {
    let user = user();
    let mut object = object;
    let with = Circumstances { now: NOW.parse().unwrap(), user: &|| user.clone() };
    strategy(group, resource).prepare_create(&mut object, &with);
    object
}

fn updated(group: &str, resource: &str, old: &Value, new: Value) -> Value {
    written(group, resource, "", old, new)
}

/// The empty subresource is the resource itself.
fn written(group: &str, resource: &str, subresource: &str, old: &Value, new: Value) -> Value {
    let user = user();
    let mut new = new;
    let with = Circumstances { now: NOW.parse().unwrap(), user: &|| user.clone() };
    let strategy = strategy(group, resource);
    match subresource {
        "" => strategy.prepare_update(&mut new, old, &with),
        name => strategy.prepare_subresource(name, &mut new, old, &with),
    }
    new
}

#[test]
fn every_stored_resource_has_a_strategy() {
    for it in crate::resources().iter().filter(|it| it.storage.is_some()) {
        let found = BUILT_INS.iter().filter(|known| (known.group, known.resource) == (&*it.group, &*it.name));
        assert_eq!(found.count(), 1, "{} {}", it.group, it.name);
        let has_status = it.subresources.iter().any(|subresource| subresource.name == "status");
        assert_eq!(strategy(&it.group, &it.name).status != super::Status::Plain, has_status, "{}", it.name);
    }
}

#[test]
fn a_new_object_has_a_generation_and_no_status() {
    for (group, resource, given, expected) in [
        ("", "configmaps", json!({"data": {"a": "b"}}), json!({"data": {"a": "b"}})),
        ("apps", "deployments", json!({"status": {"replicas": 1}}), json!({"metadata": {"generation": 1}})),
        ("", "nodes", json!({"status": {"phase": "p"}}), json!({"status": {"phase": "p"}})),
        ("", "services", json!({"status": {"loadBalancer": {}}}), json!({"spec": {}})),
        (
            "scheduling.k8s.io",
            "priorityclasses",
            json!({"value": 1}),
            json!({"value": 1, "metadata": {"generation": 1}}),
        ),
        ("storage.k8s.io", "csidrivers", json!({}), json!({})),
        (
            "",
            "namespaces",
            json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["x"]}}),
            json!({
                "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
                "spec": {"finalizers": ["x", "kubernetes"]}, "status": {"phase": "Active"},
            }),
        ),
        (
            "",
            "persistentvolumes",
            json!({}),
            json!({"status": {"phase": "Pending", "lastPhaseTransitionTime": NOW}}),
        ),
        (
            "",
            "persistentvolumeclaims",
            json!({"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "p"}}}),
            json!({
                "spec": {
                    "dataSource": {"kind": "PersistentVolumeClaim", "name": "p"},
                    "dataSourceRef": {"kind": "PersistentVolumeClaim", "name": "p"},
                },
                "status": {"phase": "Pending"},
            }),
        ),
        (
            "",
            "persistentvolumeclaims",
            json!({"spec": {"dataSource": {"apiGroup": "g", "kind": "K", "name": "p"}}}),
            json!({"spec": {}, "status": {"phase": "Pending"}}),
        ),
    ] {
        assert_eq!(created(group, resource, given.clone()), expected, "{resource} {given}");
    }
}

#[test]
fn a_new_object_gets_the_fields_that_its_kind_sets() {
    for (group, resource, given, expected) in [
        (
            "",
            "serviceaccounts",
            json!({"secrets": [{"name": "s", "namespace": "n"}]}),
            json!({"secrets": [{"name": "s"}]}),
        ),
        (
            "",
            "limitranges",
            json!({"metadata": {"uid": "u"}}),
            json!({"metadata": {"uid": "u", "name": "u"}}),
        ),
        (
            "apps",
            "daemonsets",
            json!({"spec": {}}),
            json!({"metadata": {"generation": 1, "annotations": {"deprecated.daemonset.template.generation": "1"}}, "spec": {}}),
        ),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            json!({"spec": {"versions": [{"name": "v1", "storage": true}]}, "status": {"conditions": []}}),
            json!({
                "metadata": {"generation": 1}, "spec": {"versions": [{"name": "v1", "storage": true}]},
                "status": {"storedVersions": ["v1"]},
            }),
        ),
        (
            "apiregistration.k8s.io",
            "apiservices",
            json!({"spec": {"group": "g"}}),
            json!({"spec": {"group": "g"}, "status": {"conditions": [{
                "type": "Available", "status": "True", "lastTransitionTime": NOW, "reason": "Local",
                "message": "Local APIServices are always available",
            }]}}),
        ),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            json!({"spec": {"request": "r", "username": "root", "groups": ["system:masters"]}}),
            json!({"spec": {"request": "r", "username": "alice", "uid": "7", "groups": ["g"], "extra": {"k": ["v"]}}}),
        ),
        (
            "resource.k8s.io",
            "resourceslices",
            json!({"spec": {"devices": [{"taints": [{"key": "k"}]}]}}),
            json!({"metadata": {"generation": 1}, "spec": {"devices": [{"taints": [{"key": "k", "timeAdded": NOW}]}]}}),
        ),
    ] {
        assert_eq!(created(group, resource, given.clone()), expected, "{resource} {given}");
    }
}

#[test]
fn what_is_switched_off_is_dropped() {
    let spec = json!({
        "containers": [{"lifecycle": {"stopSignal": "SIGHUP"}}, {"lifecycle": {"stopSignal": "SIGHUP", "preStop": {}}}],
        "volumes": [{"projected": {"sources": [{"podCertificate": {}}]}}], "schedulingGroup": {}, "nodeName": "n",
    });
    let left = json!({
        "containers": [{}, {"lifecycle": {"preStop": {}}}], "volumes": [{"projected": {"sources": [{}]}}],
        "nodeName": "n",
    });
    let template = json!({"spec": {"template": {"spec": spec}}});
    for (group, resource, given, pointer, expected) in [
        ("", "pods", json!({"spec": spec}), "/spec/containers", &left["containers"]),
        ("apps", "deployments", template.clone(), "/spec/template/spec", &left),
        (
            "batch",
            "cronjobs",
            json!({"spec": {"jobTemplate": template}}),
            "/spec/jobTemplate/spec/template/spec",
            &left,
        ),
        ("coordination.k8s.io", "leases", json!({"spec": {"strategy": "s"}}), "/spec", &json!({})),
    ] {
        let after = created(group, resource, given.clone());
        assert_eq!(after.pointer(pointer), Some(expected), "{resource}");
        assert_eq!(updated(group, resource, &after, given).pointer(pointer), Some(expected), "{resource}");
    }
}

#[test]
fn a_job_selects_its_pods_by_uid() {
    let labels = json!({
        "a": "b", "job-name": "j", "batch.kubernetes.io/job-name": "j", "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
    });
    let given = json!({"metadata": {"name": "j", "uid": "u"}, "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
    let mut job = created("batch", "jobs", given);
    assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}));
    strategy("batch", "jobs").settle_create(&mut job);
    assert_eq!(job["metadata"]["labels"], labels, "where it has none of its own");
    let manual = json!({"spec": {"manualSelector": true, "selector": {}}});
    assert_eq!(created("batch", "jobs", manual)["spec"], json!({"manualSelector": true, "selector": {}}));
}

#[test]
fn a_generation_counts_what_matters() {
    let old = json!({"metadata": {"generation": 3, "labels": {"a": "b"}}, "spec": {"a": 1}, "webhooks": [1], "template": 1});
    for (group, resource, pointer, expected) in [
        ("apps", "deployments", "/spec/a", 4),
        ("apps", "deployments", "/metadata/annotations", 4),
        ("apps", "deployments", "/metadata/labels", 3),
        ("apps", "replicasets", "/metadata/annotations", 3),
        ("", "pods", "/spec/a", 4),
        ("", "services", "/spec/a", 3),
        ("", "podtemplates", "/template", 4),
        ("storage.k8s.io", "csidrivers", "/spec/a", 4),
        ("scheduling.k8s.io", "priorityclasses", "/spec/a", 3),
        ("discovery.k8s.io", "endpointslices", "/metadata/labels", 4),
        ("discovery.k8s.io", "endpointslices", "/metadata/annotations", 3),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "/webhooks", 4),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations", "/spec/a", 3),
    ] {
        let mut new = old.clone();
        new["metadata"]["generation"] = json!(9);
        new["metadata"]["annotations"] =
            if pointer == "/metadata/annotations" { json!({"n": "m"}) } else { json!(null) };
        if let Some(value) = new.pointer_mut(pointer).filter(|_| pointer != "/metadata/annotations") {
            *value = json!({"new": "x"});
        }
        let after = updated(group, resource, &old, new);
        assert_eq!(after["metadata"]["generation"], json!(expected), "{resource} {pointer}");
    }
}

#[test]
fn an_empty_list_is_no_change() {
    let old = json!({"metadata": {"generation": 3}, "spec": {"a": 1}});
    let new = json!({"spec": {"a": 1, "list": []}});
    assert_eq!(updated("apps", "replicasets", &old, new)["metadata"]["generation"], json!(3));
}

#[test]
fn a_daemon_set_counts_its_templates() {
    let set = |generation: &str, template: i64, more: i64| {
        json!({
            "metadata": {"annotations": {"deprecated.daemonset.template.generation": generation}},
            "spec": {"template": template, "minReadySeconds": more},
        })
    };
    for (new, expected) in [(set("0", 1, 1), "5"), (set("9", 1, 2), "5"), (set("0", 2, 1), "6")] {
        assert_eq!(
            updated("apps", "daemonsets", &set("5", 1, 1), new)["metadata"]["annotations"],
            set(expected, 0, 0)["metadata"]["annotations"]
        );
    }
    let status =
        |generation: &str| written("apps", "daemonsets", "status", &set("5", 1, 1), set(generation, 1, 1));
    for sent in ["0", "9"] {
        assert_eq!(status(sent)["metadata"], set("5", 0, 0)["metadata"], "a write to the status leaves it");
    }
}

#[test]
fn deletes_say_what_becomes_of_dependents() {
    for (group, resource, expected) in [
        ("batch", "jobs", GcPolicy::Orphan),
        ("", "replicationcontrollers", GcPolicy::Orphan),
        ("batch", "cronjobs", GcPolicy::Delete),
        ("apps", "deployments", GcPolicy::Delete),
        ("", "events", GcPolicy::None),
        ("example.com", "widgets", GcPolicy::Delete),
    ] {
        assert_eq!(strategy(group, resource).gc_policy, expected, "{resource}");
    }
}
