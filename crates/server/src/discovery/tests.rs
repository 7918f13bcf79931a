//! Discovery documents compared with kube-apiserver's.

use serde_json::{Value, json};

use super::listed::storage_version_hash;
use super::*;

fn built_in() -> Vec<Listed<'static>> {
    kinds::resources().iter().map(Listed::from).collect()
}

fn custom(version: &'static str) -> Listed<'static> {
    Listed {
        group: "x.example.com",
        version,
        name: "docs",
        singular: "doc",
        kind: "Doc",
        list_kind: "DocList".to_owned(),
        is_namespaced: true,
        verbs: vec!["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
        short_names: vec![],
        categories: vec![],
        storage_version_hash: storage_version_hash("x.example.com", "v1", "Doc"),
        subresources: vec![ListedSubresource {
            name: "status",
            foreign: None,
            kind: "Doc",
            verbs: vec!["get", "patch", "update"],
        }],
        is_custom: true,
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn groups_are_listed_by_priority() {
    let mut all = built_in();
    all.insert(0, custom("v1beta1"));
    all.push(custom("v1"));
    let list = parsed(&groups(&all));
    let names: Vec<_> =
        list["groups"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names[..4], ["apiregistration.k8s.io", "apps", "events.k8s.io", "authentication.k8s.io"]);
    assert_eq!(names.last(), Some(&"x.example.com"));
    assert_eq!(
        groups(&built_in()).split_once("},{").unwrap().0,
        r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apiregistration.k8s.io","versions":[{"groupVersion":"apiregistration.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apiregistration.k8s.io/v1","version":"v1"}"#
    );
    assert_eq!(
        group(&all, "x.example.com").unwrap(),
        r#"{"kind":"APIGroup","apiVersion":"v1","name":"x.example.com","versions":[{"groupVersion":"x.example.com/v1","version":"v1"},{"groupVersion":"x.example.com/v1beta1","version":"v1beta1"}],"preferredVersion":{"groupVersion":"x.example.com/v1","version":"v1"}}"#.to_owned() + "\n"
    );
    assert_eq!(group(&all, "nosuch.example.com"), None);
    assert_eq!(group(&all, ""), None);
}

#[test]
fn resources_are_listed_with_their_subresources() {
    let all = [built_in(), vec![custom("v1")]].concat();
    let hash = storage_version_hash("coordination.k8s.io", "v1", "Lease");
    let verbs = r#"["create","delete","deletecollection","get","list","patch","update","watch"]"#;
    assert_eq!(
        resources(&all, "coordination.k8s.io", "v1").unwrap(),
        format!(
            r#"{{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"coordination.k8s.io/v1","resources":[{{"name":"leases","singularName":"lease","namespaced":true,"kind":"Lease","verbs":{verbs},"storageVersionHash":"{hash}"}}]}}"#
        ) + "\n"
    );
    assert!(resources(&all, "", "v1").unwrap().starts_with(
        r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"bindings","singularName":"binding","namespaced":true,"kind":"Binding","verbs":["create"]},"#
    ));
    let core = parsed(&resources(&all, "", "v1").unwrap());
    let eviction =
        core["resources"].as_array().unwrap().iter().find(|it| it["name"] == "pods/eviction").unwrap();
    assert_eq!(
        *eviction,
        json!({ "name": "pods/eviction", "singularName": "", "namespaced": true, "group": "policy",
            "version": "v1", "kind": "Eviction", "verbs": ["create"] })
    );
    let docs = parsed(&resources(&all, "x.example.com", "v1").unwrap());
    assert_eq!(docs["resources"][1]["name"], "docs/status");
    assert_eq!(resources(&all, "x.example.com", "v2"), None);
}

#[test]
fn storage_hashes_are_those_of_kubernetes() {
    for (group, version, kind, expected) in [
        ("", "v1", "ConfigMap", "qFsyl6wFWjQ="),
        ("", "v1", "Pod", "xPOwRZ+Yhw8="),
        ("apps", "v1", "Deployment", "8aSe+NMegvE="),
    ] {
        assert_eq!(storage_version_hash(group, version, kind), expected, "{kind}");
    }
}

#[test]
fn the_aggregated_document_lists_all_resources() {
    let all = [built_in(), vec![custom("v1")]].concat();
    let core = aggregated(&all, true);
    assert!(core.body.starts_with(
        r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"bindings","responseKind":{"group":"","version":"","kind":"Binding"},"scope":"Namespaced","singularResource":"binding","verbs":["create"]},"#
    ));
    assert_eq!(parsed(&core.body)["items"].as_array().unwrap().len(), 1);
    let named = aggregated(&all, false);
    assert_ne!(core.etag, named.etag);
    let groups = parsed(&named.body);
    let last = groups["items"].as_array().unwrap().last().unwrap();
    assert_eq!(
        *last,
        json!({ "metadata": { "name": "x.example.com" }, "versions": [{ "version": "v1", "resources": [{
            "resource": "docs",
            "responseKind": { "group": "x.example.com", "version": "v1", "kind": "Doc" },
            "scope": "Namespaced", "singularResource": "doc",
            "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
            "subresources": [{ "subresource": "status",
                "responseKind": { "group": "x.example.com", "version": "v1", "kind": "Doc" },
                "verbs": ["get", "patch", "update"] }],
        }], "freshness": "Current" }] })
    );
}

#[test]
fn clients_that_accept_aggregated_discovery_get_it() {
    let wanted = AGGREGATED_MEDIA_TYPE;
    for (accept, expected) in [
        (String::new(), false),
        (wanted.to_owned(), true),
        (format!("{wanted},application/json"), true),
        (format!("{},{wanted}", wanted.replace("v=v2", "v=v2beta1")), true),
        (format!("{},application/json", wanted.replace("v=v2", "v=v2beta1")), false),
        (format!("application/json,{wanted}"), true),
        ("text/html, */*".to_owned(), false),
    ] {
        assert_eq!(is_aggregated_wanted(&accept), expected, "{accept}");
    }
}

#[test]
fn the_version_is_that_of_the_emulated_kubernetes() {
    let version = parsed(&version());
    assert_eq!((&version["major"], &version["minor"]), (&json!("1"), &json!("36")));
    assert_eq!(
        core_versions("127.0.0.1:6443"),
        r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"127.0.0.1:6443"}]}"#.to_owned() + "\n"
    );
}
