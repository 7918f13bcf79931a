//! One deployment, patched in every way.

use schema::patch::json::{JsonPatch, Reading};
use schema::patch::{merge, strategic};
use serde_json::{Value, json};

use super::deployment;

enum Patch {
    Strategic(Value),
    Merge(Value),
    Json(Value),
}

fn patched(document: Value, patch: Patch) -> Value {
    let (of, _) = kinds::types().kind("apps", "v1", "Deployment").unwrap();
    match patch {
        Patch::Strategic(patch) => strategic::apply(kinds::types(), of, document, patch).unwrap(),
        Patch::Merge(patch) => merge::apply(document, patch).unwrap(),
        Patch::Json(patch) => JsonPatch::decode(&patch, Reading::Checked).unwrap().apply(document).unwrap(),
    }
}

fn containers(patch: Value) -> Patch {
    Patch::Strategic(json!({"spec": {"template": {"spec": {"containers": patch}}}}))
}

#[test]
fn patches_do_what_kube_apiserver_did() {
    let images = |object: &Value| -> Value {
        let containers = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
        containers.iter().map(|container| json!([container["name"], container["image"]])).collect()
    };
    let env = |object: &Value| object["spec"]["template"]["spec"]["containers"][0]["env"].clone();
    let strategy = |object: &Value| object["spec"]["strategy"].clone();
    let metadata = |object: &Value| object["metadata"].clone();
    type Look<'a> = &'a dyn Fn(&Value) -> Value;
    let ordered = json!({"spec": {"template": {"spec": {
        "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
        "containers": [{"name": "side", "image": "busybox:2"}],
    }}}});
    let steps: Vec<(Patch, Look<'_>, Value)> = vec![
        (
            containers(json!([{"name": "main", "image": "nginx:2"}])),
            &images,
            json!([["main", "nginx:2"], ["side", "busybox:1"]]),
        ),
        (
            containers(json!([{"name": "third", "image": "x:1"}])),
            &images,
            json!([["third", "x:1"], ["main", "nginx:2"], ["side", "busybox:1"]]),
        ),
        (
            containers(json!([{"name": "third", "$patch": "delete"}])),
            &images,
            json!([["main", "nginx:2"], ["side", "busybox:1"]]),
        ),
        (
            containers(
                json!([{"name": "main", "env": [{"name": "A", "$patch": "delete"}, {"name": "C", "value": "3"}]}]),
            ),
            &env,
            json!([{"name": "C", "value": "3"}, {"name": "B", "value": "2"}]),
        ),
        (Patch::Strategic(ordered), &images, json!([["side", "busybox:2"], ["main", "nginx:2"]])),
        (
            Patch::Strategic(json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})),
            &strategy,
            json!({"type": "Recreate"}),
        ),
        (
            containers(json!([{"$patch": "replace"}, {"name": "only", "image": "y:1"}])),
            &images,
            json!([["only", "y:1"]]),
        ),
        (
            Patch::Strategic(json!({"metadata": {"labels": {"x": "y"}}})),
            &metadata,
            json!({"name": "web", "namespace": "ns", "labels": {"x": "y"}}),
        ),
        (
            Patch::Merge(json!({"metadata": {"labels": {"x": null, "z": "w"}}})),
            &metadata,
            json!({"name": "web", "namespace": "ns", "labels": {"z": "w"}}),
        ),
        (
            Patch::Json(json!([
                {"op": "test", "path": "/spec/replicas", "value": 2},
                {"op": "add", "path": "/metadata/annotations", "value": {"n": "m"}},
                {"op": "remove", "path": "/metadata/labels/z"},
            ])),
            &metadata,
            json!({"name": "web", "namespace": "ns", "labels": {}, "annotations": {"n": "m"}}),
        ),
    ];
    let mut object = deployment();
    for (patch, look, expected) in steps {
        object = patched(object, patch);
        assert_eq!(look(&object), expected);
    }
}
