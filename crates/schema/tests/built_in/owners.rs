//! Objects with several field managers.

use schema::encode::normalize;
use schema::field_set::{FieldSet, Filter};
use schema::managed_fields::{Applied, ApplyError, Target, Unconvertible, apply, create, update};
use serde_json::{Value, json};

use super::deployment;

const NOW: &str = "2026-01-01T00:00:00Z";

/// Runs with the target of a kind in the version of `object`.
fn target<T>(object: &Value, run: impl FnOnce(&Target<'_>) -> T) -> T {
    let version = object["apiVersion"].as_str().unwrap();
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let (of, _) = kinds::types().kind(group, short, object["kind"].as_str().unwrap()).unwrap();
    let filters = [(version, Filter::Except(FieldSet::of_fields([["status"].as_slice()])))];
    let convert = |_: &Value, _: &str| Err(Unconvertible::NoSuchVersion);
    run(&Target { types: kinds::types(), of, version, subresource: "", filters: &filters, convert: &convert })
}

fn owners(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    entries.iter().map(|entry| json!([entry["manager"], entry["operation"], entry["fieldsV1"]])).collect()
}

#[test]
fn a_created_deployment_is_owned_as_by_kube_apiserver() {
    let mut object = deployment();
    target(&deployment(), |target| {
        normalize(target.types, target.of, &mut object);
        create(target, &mut object, "t", NOW);
    });
    let container = json!({
        ".": {}, "f:image": {}, "f:imagePullPolicy": {}, "f:name": {}, "f:resources": {},
        "f:terminationMessagePath": {}, "f:terminationMessagePolicy": {},
    });
    let variable = json!({".": {}, "f:name": {}, "f:value": {}});
    let mut main = container.clone();
    main["f:env"] = json!({".": {}, "k:{\"name\":\"A\"}": variable, "k:{\"name\":\"B\"}": variable});
    let port = json!({".": {}, "f:containerPort": {}, "f:protocol": {}});
    main["f:ports"] = json!({".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": port});
    let fields = json!({"f:spec": {
        "f:progressDeadlineSeconds": {}, "f:replicas": {}, "f:revisionHistoryLimit": {}, "f:selector": {},
        "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}, "f:type": {}},
        "f:template": {
            "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"main\"}": main, "k:{\"name\":\"side\"}": container},
                "f:dnsPolicy": {}, "f:restartPolicy": {}, "f:schedulerName": {}, "f:securityContext": {},
                "f:terminationGracePeriodSeconds": {},
            },
        },
    }});
    assert_eq!(owners(&object), json!([["t", "Update", fields]]));
}

/// A config map with these members, by apply.
fn config_map(members: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .extend(members["metadata"].as_object().cloned().unwrap_or_default());
    object.as_object_mut().unwrap().extend(members.get("data").map(|data| ("data".to_owned(), data.clone())));
    object
}

fn applied(live: &mut Option<Value>, config: &Value, manager: &str, force: bool) -> Result<(), ApplyError> {
    let result = target(config, |target| apply(target, live.as_ref(), config, manager, force, NOW))?;
    let (Applied::Changed(mut object) | Applied::Unchanged(mut object)) = result;
    target(config, |target| normalize(target.types, target.of, &mut object));
    object["metadata"]["uid"] = json!("u");
    *live = Some(object);
    Ok(())
}

#[test]
fn appliers_of_a_config_map_share_it_as_on_kube_apiserver() {
    let data = |fields: Value| json!({"f:data": fields});
    let labelled = json!({"f:data": {"f:x": {}, "f:y": {}}, "f:metadata": {"f:labels": {"f:l": {}}}});
    let left = json!({"f:data": {"f:y": {}}, "f:metadata": {"f:labels": {"f:l": {}}}});
    let first = json!({"metadata": {"labels": {"l": "m"}}, "data": {"x": "1", "y": "2"}});
    let (x, z) = (json!({"f:x": {}}), json!({"f:z": {}}));
    let xz = json!({"f:x": {}, "f:z": {}});
    let steps = [
        ("one", false, first.clone(), json!([["one", "Apply", labelled]]), json!({"x": "1", "y": "2"})),
        ("one", false, first, json!([["one", "Apply", labelled]]), json!({"x": "1", "y": "2"})),
        (
            "two",
            false,
            json!({"data": {"z": "3"}}),
            json!([["one", "Apply", labelled], ["two", "Apply", data(z)]]),
            json!({"x": "1", "y": "2", "z": "3"}),
        ),
        (
            "two",
            false,
            json!({"data": {"x": "1", "z": "3"}}),
            json!([["one", "Apply", labelled], ["two", "Apply", data(xz.clone())]]),
            json!({"x": "1", "y": "2", "z": "3"}),
        ),
        (
            "two",
            true,
            json!({"data": {"x": "9", "z": "3"}}),
            json!([["one", "Apply", left], ["two", "Apply", data(xz)]]),
            json!({"x": "9", "y": "2", "z": "3"}),
        ),
        (
            "two",
            false,
            json!({"data": {"x": "9"}}),
            json!([["one", "Apply", left], ["two", "Apply", data(x.clone())]]),
            json!({"x": "9", "y": "2"}),
        ),
        ("one", false, json!({}), json!([["two", "Apply", data(x)]]), json!({"x": "9"})),
    ];
    let mut live = None;
    for (manager, force, config, expected, data) in steps {
        applied(&mut live, &config_map(config), manager, force).unwrap();
        let object = live.as_ref().unwrap();
        assert_eq!((owners(object), &object["data"]), (expected, &data));
    }

    let before = live.clone().unwrap();
    let mut after = before.clone();
    after["data"] = json!({"x": "10", "w": "4"});
    target(&before, |target| update(target, &before, &mut after, "three", NOW));
    assert_eq!(owners(&after), json!([["three", "Update", {"f:data": {"f:w": {}, "f:x": {}}}]]));
    let conflict =
        applied(&mut Some(after), &config_map(json!({"data": {"x": "11"}})), "two", false).unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "Apply failed with 1 conflict: conflict with \"three\" using v1: .data.x"
    );
}

#[test]
fn appliers_of_a_deployment_share_its_lists_as_on_kube_apiserver() {
    let config = |spec: Value| {
        let metadata = json!({"name": "web"});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    };
    let containers = |containers: Value| config(json!({"template": {"spec": {"containers": containers}}}));
    let first = config(json!({
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{
                "name": "main", "image": "nginx:1", "env": [{"name": "A", "value": "1"}],
                "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
            }]},
        },
    }));
    let mut live = None;
    applied(&mut live, &first, "one", false).unwrap();
    let fields = json!({"f:spec": {
        "f:replicas": {}, "f:selector": {},
        "f:template": {
            "f:metadata": {"f:labels": {"f:app": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {
                ".": {}, "f:image": {}, "f:name": {},
                "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
                "f:ports": {
                    "k:{\"containerPort\":53,\"protocol\":\"UDP\"}":
                        {".": {}, "f:containerPort": {}, "f:protocol": {}},
                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
                },
            }}},
        },
    }});
    assert_eq!(owners(live.as_ref().unwrap()), json!([["one", "Apply", fields]]));

    let names = |live: &Option<Value>| -> Vec<String> {
        let containers = live.as_ref().unwrap()["spec"]["template"]["spec"]["containers"].as_array().cloned();
        containers.unwrap().iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect()
    };
    applied(&mut live, &containers(json!([{"name": "side", "image": "envoy:1"}])), "two", false).unwrap();
    assert_eq!(names(&live), ["main", "side"]);
    let variable = json!([{"name": "main", "env": [{"name": "B", "value": "2"}]}]);
    applied(&mut live, &containers(variable), "two", false).unwrap();
    assert_eq!(names(&live), ["main"]);
    let env = &live.as_ref().unwrap()["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(*env, json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]));

    let mut clash = containers(json!([{"name": "main", "image": "nginx:9"}]));
    clash["spec"]["replicas"] = json!(4);
    let twice = containers(json!([{"name": "main", "image": "a"}, {"name": "main", "image": "b"}]));
    for (config, expected) in [
        (
            clash,
            "Apply failed with 2 conflicts: conflicts with \"one\":\n- .spec.replicas\n\
             - .spec.template.spec.containers[name=\"main\"].image",
        ),
        (
            twice,
            "failed to create typed patch object (/web; apps/v1, Kind=Deployment): \
             .spec.template.spec.containers: duplicate entries for key [name=\"main\"]",
        ),
    ] {
        assert_eq!(applied(&mut live, &config, "two", false).unwrap_err().to_string(), expected);
    }
}

#[test]
fn finalizers_are_owned_one_by_one() {
    let config = |finalizers: &[&str]| config_map(json!({"metadata": {"finalizers": finalizers}}));
    let mut live = None;
    applied(&mut live, &config(&["example.com/a"]), "one", false).unwrap();
    applied(&mut live, &config(&["example.com/b"]), "two", false).unwrap();
    assert_eq!(live.as_ref().unwrap()["metadata"]["finalizers"], json!(["example.com/a", "example.com/b"]));
    applied(&mut live, &config_map(json!({})), "one", false).unwrap();
    let fields = json!({"f:metadata": {"f:finalizers": {"v:\"example.com/b\"": {}}}});
    assert_eq!(owners(live.as_ref().unwrap()), json!([["two", "Apply", fields]]));
    assert_eq!(live.as_ref().unwrap()["metadata"]["finalizers"], json!(["example.com/b"]));
}
