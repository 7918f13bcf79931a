//! Quotas are exact under concurrent creates, updates and deletes.

use super::{Answer, Cluster, PODS, pod, story};
use serde_json::{Value, json};
use server::{Config, Server};
use std::{collections::BTreeMap, sync::Arc};

const QUOTAS: &str = "/api/v1/namespaces/n/resourcequotas";

async fn quota(cluster: &Cluster, name: &str, spec: Value) {
    cluster.made(&format!("POST {QUOTAS}"), json!({"metadata": {"name": name}, "spec": spec})).await;
}

async fn used(cluster: &Cluster, name: &str) -> BTreeMap<String, String> {
    let quota = cluster.get(&format!("{QUOTAS}/{name}")).await;
    let used = quota["status"]["used"].as_object().into_iter().flatten();
    used.map(|(name, amount)| (name.clone(), amount.as_str().unwrap().to_owned())).collect()
}

#[track_caller]
fn is_used(found: &BTreeMap<String, String>, expected: &str) {
    let shown: Vec<_> = found.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    assert_eq!(shown.join(" "), expected);
}

fn asking(name: &str, cpu: &str) -> Value {
    pod(name, json!({"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]}))
}

#[test]
fn sixty_four_concurrent_creates_never_exceed_the_quota() {
    story(Config::default(), |cluster| async move {
        quota(&cluster, "q", json!({"hard": {"pods": "10", "requests.cpu": "1", "count/configmaps": "7"}}))
            .await;
        let creators = (0..64).map(|number| {
            let cluster = cluster.clone();
            async move {
                let (path, body) = match number % 2 {
                    0 => (PODS.to_owned(), asking(&format!("p{number}"), "125m")),
                    _ => {
                        let name = json!({"metadata": {"name": format!("m{number}")}});
                        ("/api/v1/namespaces/n/configmaps".to_owned(), name)
                    }
                };
                cluster.world.sleep(std::time::Duration::from_micros(number % 7)).await;
                cluster.send(&format!("POST {path}"), body).await.code
            }
        });
        let codes = futures::future::join_all(creators).await;
        let made = codes.iter().filter(|code| **code == 201).count();
        assert_eq!(made, 8 + 7, "{codes:?}");
        assert!(codes.iter().all(|code| [201, 403].contains(code)), "{codes:?}");
        is_used(&used(&cluster, "q").await, "count/configmaps=7 pods=8 requests.cpu=1");

        let pods = cluster.get(PODS).await;
        let pods = pods["items"].as_array().unwrap();
        let deletions = pods.iter().map(|pod| {
            let path =
                format!("DELETE {PODS}/{}?gracePeriodSeconds=0", pod["metadata"]["name"].as_str().unwrap());
            let cluster = cluster.clone();
            async move { cluster.send(&path, Value::Null).await.code }
        });
        let codes = futures::future::join_all(deletions).await;
        assert!(codes.iter().all(|code| *code == 200), "{codes:?}");
        is_used(&used(&cluster, "q").await, "count/configmaps=7 pods=0 requests.cpu=0");
    });
}

#[test]
fn a_rejection_names_requested_used_and_limited() {
    story(Config::default(), |cluster| async move {
        cluster.made("POST /api/v1/namespaces/n/secrets", json!({"metadata": {"name": "before"}})).await;
        quota(&cluster, "a", json!({"hard": {"secrets": "1", "cpu": "1", "limits.memory": "1Gi"}})).await;
        is_used(&used(&cluster, "a").await, "cpu=0 limits.memory=0 secrets=1");
        let secret = json!({"metadata": {"name": "s"}});
        let message = r#"secrets "s" is forbidden: exceeded quota: a, requested: secrets=1, used: secrets=1, limited: secrets=1"#;
        cluster.refused("POST /api/v1/namespaces/n/secrets", secret.clone(), 403, message).await;
        cluster.refused("POST /api/v1/namespaces/n/secrets?dryRun=All", secret.clone(), 403, message).await;
        let missing =
            r#"pods "p" is forbidden: failed quota: a: must specify cpu for: c; limits.memory for: c"#;
        cluster.refused(&format!("POST {PODS}"), pod("p", json!({})), 403, missing).await;
        let big = json!({"requests": {"cpu": "1500m"}, "limits": {"memory": "2Gi", "cpu": "2"}});
        let big = pod("p", json!({"containers": [{"name": "c", "image": "i", "resources": big}]}));
        let message = "pods \"p\" is forbidden: exceeded quota: a, requested: cpu=1500m,limits.memory=2Gi, used: \
                       cpu=0,limits.memory=0, limited: cpu=1,limits.memory=1Gi";
        cluster.refused(&format!("POST {PODS}"), big, 403, message).await;

        // A raised limit takes effect at once, and so does a delete.
        let more = json!({"spec": {"hard": {"secrets": "2", "count/roles.rbac.authorization.k8s.io": "0"}}});
        cluster.made(&format!("PATCH {QUOTAS}/a"), more).await;
        cluster.made("POST /api/v1/namespaces/n/secrets", secret.clone()).await;
        cluster.made("DELETE /api/v1/namespaces/n/secrets/before", Value::Null).await;
        let found = used(&cluster, "a").await;
        is_used(&found, "count/roles.rbac.authorization.k8s.io=0 cpu=0 limits.memory=0 secrets=1");
        let role = cluster
            .send(
                "POST /apis/rbac.authorization.k8s.io/v1/namespaces/n/roles",
                json!({"metadata": {"name": "r"}, "rules": []}),
            )
            .await;
        assert_eq!(role.code, 403, "{}", role.body);
    });
}

#[test]
fn updates_are_charged_the_difference() {
    story(Config::default(), |cluster| async move {
        let hard = json!({"services": "2", "services.nodeports": "2", "services.loadbalancers": "0",
            "requests.storage": "10Gi", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1"});
        quota(&cluster, "q", json!({ "hard": hard })).await;
        let services = "/api/v1/namespaces/n/services";
        let service = |name: &str, kind: &str, ports: &[u32]| {
            let ports: Vec<_> =
                ports.iter().map(|port| json!({"name": format!("p{port}"), "port": port})).collect();
            json!({"metadata": {"name": name}, "spec": {"type": kind, "ports": ports}})
        };
        cluster.made(&format!("POST {services}"), service("s", "ClusterIP", &[1, 2])).await;
        cluster.made(&format!("PATCH {services}/s"), json!({"spec": {"type": "NodePort"}})).await;
        let three = service("s", "NodePort", &[1, 2, 3]);
        let message = r#"services "s" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=2, limited: services.nodeports=2"#;
        cluster.refused(&format!("PATCH {services}/s"), three, 403, message).await;
        cluster
            .made(
                &format!("PATCH {services}/s"),
                json!({"spec": {"type": "ClusterIP", "ports":
            [{"name": "p1", "port": 1, "nodePort": null}]}}),
            )
            .await;
        let balanced = cluster.send(&format!("POST {services}"), service("b", "LoadBalancer", &[1])).await;
        assert_eq!(balanced.code, 403);
        let claims = "/api/v1/namespaces/n/persistentvolumeclaims";
        let claim = |name: &str, size: &str| {
            json!({"metadata": {"name": name}, "spec": {"storageClassName": "gold", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": size}}}})
        };
        cluster.made(&format!("POST {claims}"), claim("c", "8Gi")).await;
        let second = cluster.send(&format!("POST {claims}"), claim("d", "1Gi")).await;
        let message = r#"persistentvolumeclaims "d" is forbidden: exceeded quota: q, requested: gold.storageclass.storage.k8s.io/persistentvolumeclaims=1, used: gold.storageclass.storage.k8s.io/persistentvolumeclaims=1, limited: gold.storageclass.storage.k8s.io/persistentvolumeclaims=1"#;
        second.is_refused("a claim too many", 403, message);
        is_used(
            &used(&cluster, "q").await,
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1 requests.storage=8Gi services=1 \
             services.loadbalancers=0 services.nodeports=0",
        );
    });
}

#[test]
fn a_quota_with_scopes_counts_matching_pods() {
    story(Config::default(), |cluster| async move {
        let class = json!({"metadata": {"name": "high"}, "value": 7});
        cluster.made("POST /apis/scheduling.k8s.io/v1/priorityclasses", class).await;
        quota(&cluster, "best", json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]})).await;
        quota(&cluster, "short", json!({"hard": {"pods": "1"}, "scopes": ["Terminating"]})).await;
        let high = json!([{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]);
        quota(&cluster, "high", json!({"hard": {"pods": "0"}, "scopeSelector": {"matchExpressions": high}}))
            .await;
        let create = |pod: Value| {
            let cluster = cluster.clone();
            async move { cluster.send(&format!("POST {PODS}"), pod).await }
        };
        let is_by = |answer: &Answer, quota: &str| {
            let message = answer.body["message"].as_str().unwrap_or_default();
            assert_eq!(answer.code, 403, "{message}");
            assert!(message.contains(&format!("exceeded quota: {quota},")), "{message}");
        };
        assert_eq!(create(pod("a", json!({}))).await.code, 201);
        is_by(&create(pod("b", json!({}))).await, "best");
        assert_eq!(create(asking("c", "1")).await.code, 201);
        let mut timed = asking("d", "1");
        timed["spec"]["activeDeadlineSeconds"] = json!(60);
        assert_eq!(create(timed).await.code, 201);
        // A pod that gets a deadline moves into the scope that is full.
        let moved =
            cluster.send(&format!("PATCH {PODS}/c"), json!({"spec": {"activeDeadlineSeconds": 60}})).await;
        is_by(&moved, "short");
        let mut important = asking("e", "1");
        important["spec"]["priorityClassName"] = json!("high");
        is_by(&create(important).await, "high");
        // Finished pods make room.
        cluster.made(&format!("PATCH {PODS}/a/status"), json!({"status": {"phase": "Succeeded"}})).await;
        assert_eq!(create(pod("b", json!({}))).await.code, 201);
        is_used(&used(&cluster, "best").await, "pods=1");
    });
}

#[test]
fn two_servers_on_one_store_share_quotas() {
    let run = world::simulate(11, |world| async move {
        let store = Arc::new(store::Memory::new());
        let mut replicas = Vec::new();
        for _ in 0..2 {
            let server =
                Server::start(&world, Arc::clone(&store) as Arc<dyn store::Store>, Config::default()).await;
            replicas.push(Cluster { world: world.clone(), server: server.unwrap() });
        }
        replicas[0].made("POST /api/v1/namespaces", json!({"metadata": {"name": "n"}})).await;
        quota(&replicas[0], "q", json!({"hard": {"count/configmaps": "9"}})).await;
        let creators = (0..32).map(|number| {
            let cluster = replicas[number % 2].clone();
            async move {
                let map = json!({"metadata": {"name": format!("m{number}")}});
                cluster.send("POST /api/v1/namespaces/n/configmaps", map).await.code
            }
        });
        let codes = futures::future::join_all(creators).await;
        assert_eq!(codes.iter().filter(|code| **code == 201).count(), 9, "{codes:?}");
        is_used(&used(&replicas[1], "q").await, "count/configmaps=9");
    });
    run.unwrap();
}

#[test]
fn custom_resources_are_counted() {
    story(Config::default(), |cluster| async move {
        let version = json!({"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}});
        let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "widgets", "kind": "Widget"},
        }});
        cluster.made("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
        let widgets = "/apis/example.com/v1/namespaces/n/widgets";
        let widget = |name: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}});
        cluster.made(&format!("POST {widgets}"), widget("a")).await;
        quota(&cluster, "q", json!({"hard": {"count/widgets.example.com": "1"}})).await;
        let message = "widgets.example.com \"b\" is forbidden: exceeded quota: q, requested: \
                       count/widgets.example.com=1, used: count/widgets.example.com=1, limited: \
                       count/widgets.example.com=1";
        cluster.refused(&format!("POST {widgets}"), widget("b"), 403, message).await;
        cluster.made(&format!("DELETE {widgets}/a"), Value::Null).await;
        cluster.made(&format!("POST {widgets}"), widget("b")).await;
    });
}

#[test]
fn a_pod_that_was_stuck_in_deletion_leaves_nothing_behind() {
    story(Config::default(), |cluster| async move {
        quota(&cluster, "q", json!({"hard": {"pods": "2", "requests.cpu": "1"}})).await;
        for name in ["lost", "other"] {
            let mut pod = asking(name, "250m");
            pod["spec"]["nodeName"] = json!("gone");
            cluster.made(&format!("POST {PODS}"), pod).await;
        }
        // Its kubelet does not answer.
        cluster.made(&format!("DELETE {PODS}/lost?gracePeriodSeconds=5"), Value::Null).await;
        is_used(&used(&cluster, "q").await, "pods=2 requests.cpu=500m");
        cluster.world.sleep(std::time::Duration::from_secs(20)).await;
        cluster.made(&format!("DELETE {PODS}/lost?gracePeriodSeconds=0"), Value::Null).await;
        is_used(&used(&cluster, "q").await, "pods=1 requests.cpu=250m");
        cluster.made(&format!("DELETE {PODS}/other?gracePeriodSeconds=0"), Value::Null).await;
        is_used(&used(&cluster, "q").await, "pods=0 requests.cpu=0");
    });
}

#[test]
fn a_status_that_a_client_writes_is_counted_again() {
    story(Config::default(), |cluster| async move {
        quota(&cluster, "q", json!({"hard": {"count/configmaps": "5"}})).await;
        cluster.made("POST /api/v1/namespaces/n/configmaps", json!({"metadata": {"name": "m"}})).await;
        let before = used(&cluster, "q").await;
        let wrong = json!({"status": {"used": {"count/configmaps": "77"}}});
        cluster.made(&format!("PATCH {QUOTAS}/q/status"), wrong).await;
        assert_eq!(used(&cluster, "q").await, before);
    });
}
