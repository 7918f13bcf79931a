//! Every way to create an object, tried without each of the rights that it needs.

use crate::access::{Place, place};
use serde_json::{Value, json};

/// A request that creates something, and the rights it needs: verb, group and resource.
struct Way {
    what: &'static str,
    content_type: &'static str,
    body: Value,
    rights: &'static [(&'static str, &'static str, &'static str)],
}

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn ways() -> Vec<Way> {
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "new-NUMBER"}});
    let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "new-NUMBER"}});
    let pod =
        json!({"metadata": {"name": "new-NUMBER"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let way = |what, content_type, body, rights| Way { what, content_type, body, rights };
    vec![
        way("POST /api/v1/namespaces/a/configmaps", JSON, map("new-NUMBER"), &[("create", "", "configmaps")]),
        way("POST /api/v1/namespaces/a/pods", JSON, pod, &[("create", "", "pods")]),
        way(
            "PATCH /api/v1/namespaces/a/configmaps/new-NUMBER?fieldManager=m",
            APPLY,
            map("new-NUMBER"),
            &[("patch", "", "configmaps"), ("create", "", "configmaps")],
        ),
        way(
            "PATCH /api/v1/namespaces/a/configmaps/new-NUMBER?fieldManager=m&force=true&dryRun=All",
            APPLY,
            map("new-NUMBER"),
            &[("patch", "", "configmaps"), ("create", "", "configmaps")],
        ),
        way(
            "PATCH /apis/example.com/v1/namespaces/a/things/new-NUMBER?fieldManager=m",
            APPLY,
            thing.clone(),
            &[("patch", "example.com", "things"), ("create", "example.com", "things")],
        ),
        way(
            "PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/new-NUMBER",
            JSON,
            lease.clone(),
            &[("update", "coordination.k8s.io", "leases"), ("create", "coordination.k8s.io", "leases")],
        ),
        way(
            "PATCH /apis/coordination.k8s.io/v1/namespaces/a/leases/new-NUMBER?fieldManager=m",
            APPLY,
            lease,
            &[("patch", "coordination.k8s.io", "leases"), ("create", "coordination.k8s.io", "leases")],
        ),
        way(
            "POST /api/v1/namespaces/a/pods/pod-NUMBER/eviction",
            JSON,
            json!({"metadata": {"name": "pod-NUMBER"}}),
            &[("create", "", "pods/eviction")],
        ),
        way(
            "POST /api/v1/namespaces/a/pods/pod-NUMBER/binding",
            JSON,
            json!({"metadata": {"name": "pod-NUMBER"}, "target": {"name": "n"}}),
            &[("create", "", "pods/binding")],
        ),
        way(
            "POST /api/v1/namespaces/a/bindings",
            JSON,
            json!({"metadata": {"name": "pod-NUMBER"}, "target": {"name": "n"}}),
            &[("create", "", "bindings")],
        ),
        way(
            "POST /api/v1/namespaces/a/serviceaccounts/bot/token",
            JSON,
            json!({"spec": {}}),
            &[("create", "", "serviceaccounts/token")],
        ),
        way(
            "PUT /apis/apps/v1/namespaces/a/deployments/d/scale",
            JSON,
            json!({"metadata": {"name": "d", "namespace": "a"}, "spec": {"replicas": 2}}),
            &[("update", "apps", "deployments/scale")],
        ),
        way(
            "PATCH /apis/apps/v1/namespaces/a/deployments/d/scale",
            MERGE,
            json!({"spec": {"replicas": 3}}),
            &[("patch", "apps", "deployments/scale")],
        ),
        way(
            "PATCH /apis/apps/v1/namespaces/a/deployments/d/scale?fieldManager=m&force=true",
            APPLY,
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 4}}),
            &[("patch", "apps", "deployments/scale")],
        ),
    ]
}

async fn create_objects(place: &Place) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": schema}]);
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions},
    });
    place.root("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    place.root("POST /apis/apps/v1/namespaces/a/deployments", deployment).await;
}

/// A new user with these rights in the namespace `a`.
async fn user_with(place: &Place, user: &str, rights: &[(&str, &str, &str)]) {
    let rules = rights.iter().map(
        |(verb, group, resource)| json!({"verbs": [verb], "apiGroups": [group], "resources": [resource]}),
    );
    place.grant("a", user, rules.collect()).await;
}

async fn send(place: &Place, user: &str, way: &Way, number: usize) -> (u16, Value) {
    let named = |text: &str| text.replace("NUMBER", &number.to_string());
    let headers = [
        ("authorization", "Bearer root".to_owned()),
        ("impersonate-user", user.to_owned()),
        ("content-type", way.content_type.to_owned()),
    ];
    let body = serde_json::from_str(&named(&way.body.to_string())).unwrap();
    let (code, text) = place.send(&headers, &named(way.what), body).await;
    (code, serde_json::from_str(&text).unwrap_or_default())
}

#[test]
fn nothing_is_created_without_each_right_it_needs() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        create_objects(&place).await;
        let mut number = 0;
        for way in ways() {
            for missing in std::iter::once(None).chain((0..way.rights.len()).map(Some)) {
                number += 1;
                let pod = json!({"metadata": {"name": format!("pod-{number}")}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
                place.root("POST /api/v1/namespaces/a/pods", pod).await;
                let user = format!("user-{number}");
                let mut rights = way.rights.to_vec();
                let taken = missing.map(|at| rights.remove(at));
                user_with(&place, &user, &rights).await;
                let (code, answer) = send(&place, &user, &way, number).await;
                let Some((verb, group, resource)) = taken else {
                    assert!(code < 300, "{}: {answer}", way.what);
                    continue;
                };
                assert_eq!(code, 403, "{} without {verb} {resource}: {answer}", way.what);
                let expected = format!(
                    "User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{group}\" in the namespace \"a\""
                );
                let message = answer["message"].as_str().unwrap();
                assert!(message.ends_with(&expected), "{}: {message}", way.what);
            }
        }
    });
    run.unwrap();
}

#[test]
fn the_right_to_create_one_name_allows_an_apply_of_that_name() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let rules = json!([
            {"verbs": ["patch"], "apiGroups": [""], "resources": ["configmaps"]},
            {"verbs": ["create"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
        ]);
        place.grant("a", "bob", rules).await;
        for (name, expected) in [("mine", 201), ("mine", 200), ("other", 403)] {
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            let headers = [("authorization", "Bearer bob".to_owned()), ("content-type", APPLY.to_owned())];
            let what = format!("PATCH /api/v1/namespaces/a/configmaps/{name}?fieldManager=m");
            let (code, text) = place.send(&headers, &what, body).await;
            assert_eq!(code, expected, "{name}: {text}");
        }
    });
    run.unwrap();
}
