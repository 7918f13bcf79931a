//! A definition from a Rust type on a server: installed, and asked what it takes and what it refuses.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, KubeSchema};
use operator::definition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::Cluster;

/// A web site.
#[derive(CustomResource, KubeSchema, Clone, Debug, Serialize, Deserialize)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Site",
    namespaced,
    status = "SiteStatus",
    shortname = "st",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    printcolumn(name = "Replicas", type_ = "integer", json_path = ".spec.replicas"),
    validation = Rule::new("self.metadata.name != 'forbidden'").message("choose another name")
)]
#[x_kube(validation = Rule::new("self.replicas <= 3 || self.tier == 'Gold'").message("more than 3 is for gold"))]
#[serde(rename_all = "camelCase")]
struct SiteSpec {
    /// How many to run.
    #[schemars(range(min = 1, max = 9))]
    replicas: i32,
    /// How it is paid for.
    #[serde(default)]
    tier: Tier,
    /// Where it is found.
    #[schemars(length(max = 63), regex(pattern = "^[a-z]+$"))]
    #[x_kube(validation = Rule::new("self == oldSelf").message("cannot be moved"))]
    host: String,
    /// What it listens on.
    #[schemars(length(max = 8))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".into()]))]
    #[serde(default)]
    ports: Vec<Port>,
}

/// How a site is paid for.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
enum Tier {
    #[default]
    Silver,
    Gold,
}

/// A port of a site.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Port {
    /// What it is called.
    name: String,
    /// Its number.
    #[schemars(range(min = 1, max = 65535))]
    number: i32,
}

/// What is known about a site.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct SiteStatus {
    /// How many run.
    replicas: i32,
    /// What is known.
    #[serde(default)]
    #[schemars(schema_with = "operator::condition::schema")]
    conditions: Vec<Value>,
}

async fn install(cluster: &Cluster) {
    let definition = definition::of::<Site>();
    assert_eq!(definition::review(&definition), []);
    cluster.apply_object(&serde_json::to_value(&definition).unwrap()).await;
}

/// A site that is good but for what `change` merges into its spec.
fn site(change: Value) -> Value {
    let mut site = json!({
        "apiVersion": "example.com/v1", "kind": "Site", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "replicas": 2, "host": "web", "ports": [{ "name": "http", "number": 80 }] },
    });
    for (field, value) in change.as_object().unwrap() {
        site["spec"][field] = value.clone();
    }
    site
}

#[test]
fn the_server_enforces_the_validation_of_the_type() {
    testkit::simulate(1, |cluster| async move {
        install(&cluster).await;
        let made = cluster.apply_object(&site(json!({}))).await;
        assert_eq!(made["spec"]["tier"], json!("Silver"), "the default was set");
        let cases = [
            (json!({ "replicas": 0 }), "spec.replicas"),
            (json!({ "replicas": 10 }), "spec.replicas"),
            (json!({ "replicas": "2" }), "spec.replicas"),
            (json!({ "host": "Web" }), "spec.host"),
            (json!({ "host": "elsewhere" }), "cannot be moved"),
            (json!({ "tier": "Bronze" }), "spec.tier"),
            (json!({ "replicas": 4 }), "more than 3 is for gold"),
            (json!({ "ports": [{ "name": "a", "number": 0 }] }), "spec.ports[0].number"),
            (json!({ "ports": [{ "number": 1 }] }), "name"),
        ];
        for (change, expected) in cases {
            let refusal = cluster.try_apply_object(&site(change.clone())).await.unwrap_err().to_string();
            assert!(refusal.contains(expected), "{change} was answered with {refusal}");
        }
        cluster.apply_object(&site(json!({ "replicas": 4, "tier": "Gold" }))).await;
    });
}

#[test]
fn rules_on_the_whole_object_are_enforced() {
    testkit::simulate(1, |cluster| async move {
        install(&cluster).await;
        let mut forbidden = site(json!({}));
        forbidden["metadata"]["name"] = json!("forbidden");
        let refusal = cluster.try_apply_object(&forbidden).await.unwrap_err().to_string();
        assert!(refusal.contains("choose another name"), "{refusal}");
    });
}

#[test]
fn each_manager_owns_the_list_items_it_applied() {
    testkit::simulate(1, |cluster| async move {
        install(&cluster).await;
        cluster.apply_object(&site(json!({}))).await;
        let mut other: Site = serde_json::from_value(site(json!({}))).unwrap();
        other.spec.ports = vec![Port { name: "admin".into(), number: 81 }];
        let api = kube::Api::namespaced(cluster.client(), "default");
        let force = operator::apply::Force::Yes;
        let both = operator::apply::object(&api, &other, "other", force).await.unwrap();
        let names: Vec<_> = both.spec.ports.iter().map(|port| port.name.as_str()).collect();
        assert_eq!(names, ["http", "admin"]);
    });
}

/// What the review calls refused is refused, and what it only warns of is taken.
#[test]
fn the_review_and_the_server_agree() {
    testkit::simulate(1, |cluster| async move {
        let cases = [
            ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas", json!({})),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas",
                json!({ "type": "array" }),
            ),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tier",
                json!({ "type": "string", "enum": ["a"], "default": "b" }),
            ),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/tier/uniqueItems",
                json!(true),
            ),
            ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/additionalProperties", json!(false)),
            ("/spec/versions/0/schema/openAPIV3Schema/properties/spec/anyOf", json!([{ "type": "object" }])),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/ports/x-kubernetes-list-map-keys",
                json!(["x"]),
            ),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/ports/x-kubernetes-list-type",
                json!("bag"),
            ),
            ("/spec/versions/0/subresources/scale/specReplicasPath", json!(".replicas")),
            ("/spec/versions/0/additionalPrinterColumns/0/type", json!("size")),
            ("/spec/versions/0/storage", json!(false)),
            ("/spec/scope", json!("Global")),
            ("/spec/group", json!("example")),
            ("/spec/names/plural", json!("Sites")),
            ("/spec/versions/0/subresources", json!({})),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/format",
                json!("uint32"),
            ),
            (
                "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/replicas/description",
                json!(""),
            ),
        ];
        for (place, (pointer, value)) in cases.into_iter().enumerate() {
            let mut changed = serde_json::to_value(definition::of::<Site>()).unwrap();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            changed.pointer_mut(parent).unwrap()[field] = value.clone();
            let reviewed: CustomResourceDefinition = serde_json::from_value(changed.clone()).unwrap();
            let findings = definition::review(&reviewed);
            let is_refused = findings.iter().any(|finding| finding.severity == definition::Severity::Refused);
            let answer = cluster.try_create(&reviewed).await;
            assert_eq!(
                is_refused,
                answer.is_err(),
                "case {place}: {pointer} {value}: {findings:?} {answer:?}"
            );
            if answer.is_ok() {
                cluster.delete::<CustomResourceDefinition>(None, "sites.example.com").await;
                cluster.settle().await;
            }
        }
    });
}
