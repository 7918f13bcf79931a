//! Admission plugins that are enabled and disabled.

use super::{Cluster, PODS, pod, story};
use serde_json::{Value, json};
use server::{AdmissionPlugin as P, AdmissionPlugins, AuthorizationMode, Caller, Config};

fn without(plugin: P) -> Config {
    Config { admission_plugins: AdmissionPlugins::default().without(plugin), ..Config::default() }
}

fn with(plugin: P) -> Config {
    Config { admission_plugins: AdmissionPlugins::default().with(plugin), ..Config::default() }
}

#[test]
fn without_service_accounts_pods_have_no_account_and_namespaces_no_default() {
    story(without(P::ServiceAccount), |cluster| async move {
        let created = cluster.made(&format!("POST {PODS}"), pod("p", json!({}))).await;
        let spec = &created["spec"];
        assert_eq!((&spec["serviceAccountName"], &spec["volumes"]), (&Value::Null, &Value::Null), "{spec}");
        let accounts = cluster.get("/api/v1/namespaces/n/serviceaccounts").await;
        assert_eq!(accounts["items"], json!([]));
    });
}

/// The field of what is created, with a plugin and without it.
struct Effect {
    plugin: P,
    resource: &'static str,
    object: Value,
    field: &'static str,
    with: Value,
}

fn effects() -> Vec<Effect> {
    let claim = json!({"metadata": {"name": "o"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    vec![
        Effect {
            plugin: P::DefaultTolerationSeconds,
            resource: PODS,
            object: pod("o", json!({})),
            field: "/spec/tolerations/0/tolerationSeconds",
            with: json!(300),
        },
        Effect {
            plugin: P::Priority,
            resource: PODS,
            object: pod("o", json!({})),
            field: "/spec/priority",
            with: json!(0),
        },
        Effect {
            plugin: P::TaintNodesByCondition,
            resource: "/api/v1/nodes",
            object: json!({"metadata": {"name": "o"}}),
            field: "/spec/taints/0/key",
            with: json!("node.kubernetes.io/not-ready"),
        },
        Effect {
            plugin: P::StorageObjectInUseProtection,
            resource: "/api/v1/namespaces/n/persistentvolumeclaims",
            object: claim.clone(),
            field: "/metadata/finalizers/0",
            with: json!("kubernetes.io/pvc-protection"),
        },
        Effect {
            plugin: P::DefaultStorageClass,
            resource: "/api/v1/namespaces/n/persistentvolumeclaims",
            object: claim,
            field: "/spec/storageClassName",
            with: json!("fast"),
        },
    ]
}

async fn observed(cluster: &Cluster, effect: &Effect) -> Option<Value> {
    let class = json!({
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "p",
    });
    cluster.made("POST /apis/storage.k8s.io/v1/storageclasses", class).await;
    let created = cluster.made(&format!("POST {}", effect.resource), effect.object.clone()).await;
    created.pointer(effect.field).cloned()
}

#[test]
fn a_disabled_plugin_changes_nothing() {
    for effect in effects() {
        let plugin = effect.plugin;
        for (config, expected) in [(Config::default(), Some(effect.with.clone())), (without(plugin), None)] {
            let effect = &effect;
            story(config, |cluster| async move {
                assert_eq!(observed(&cluster, effect).await, expected, "{plugin:?}");
            });
        }
    }
}

#[test]
fn a_disabled_plugin_refuses_nothing() {
    let elsewhere = "POST /api/v1/namespaces/absent/configmaps";
    let map = json!({"metadata": {"name": "m"}});
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "0"}}});
    let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let unlimited = pod("p", json!({}));
    let steps = |plugin: P| match plugin {
        P::NamespaceLifecycle => vec![(elsewhere.to_owned(), map.clone())],
        P::ResourceQuota => vec![
            ("POST /api/v1/namespaces/n/resourcequotas".to_owned(), quota.clone()),
            (format!("POST {PODS}"), unlimited.clone()),
        ],
        _ => vec![
            ("PATCH /api/v1/namespaces/n".to_owned(), labels.clone()),
            (format!("POST {PODS}"), unlimited.clone()),
        ],
    };
    for (plugin, code) in [(P::NamespaceLifecycle, 404), (P::ResourceQuota, 403), (P::PodSecurity, 403)] {
        for (config, expected) in [(Config::default(), code), (without(plugin), 201)] {
            let steps = steps(plugin);
            story(config, |cluster| async move {
                let mut last = 0;
                for (what, body) in steps {
                    last = cluster.send(&what, body).await.code;
                }
                assert_eq!(last, expected, "{plugin:?}");
            });
        }
    }
}

#[test]
fn always_pull_images_sets_the_policy_of_every_container() {
    story(with(P::AlwaysPullImages), |cluster| async move {
        let sent = json!({
            "initContainers": [{"name": "a", "image": "i:1", "imagePullPolicy": "Never"}],
            "volumes": [{"name": "v", "image": {"reference": "r", "pullPolicy": "Never"}}],
        });
        let created = cluster.made(&format!("POST {PODS}"), pod("p", sent)).await;
        let spec = &created["spec"];
        assert_eq!(spec["initContainers"][0]["imagePullPolicy"], "Always");
        assert_eq!(spec["containers"][0]["imagePullPolicy"], "Always");
        assert_eq!(spec["volumes"][0]["image"]["pullPolicy"], "Always");
    });
}

#[test]
fn external_addresses_of_services_can_be_denied() {
    story(with(P::DenyServiceExternalIps), |cluster| async move {
        let service = |addresses: Value| json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": addresses}});
        let create = "POST /api/v1/namespaces/n/services";
        let denied = "services \"s\" is forbidden: Use of external IPs is denied by admission control";
        cluster.refused(create, service(json!(["192.0.2.1"])), 403, denied).await;
        cluster.made(create, service(json!([]))).await;
    });
}

#[test]
fn privileged_containers_need_permission() {
    let privileged = json!({"containers": [
        {"name": "c", "image": "i", "securityContext": {"privileged": true}}]});
    story(Config { allows_privileged: false, ..Config::default() }, |cluster| async move {
        let problem = "Pod \"p\" is invalid: spec.containers[0].securityContext.privileged: Forbidden: disallowed by \
                       cluster policy";
        cluster.refused(&format!("POST {PODS}"), pod("p", privileged.clone()), 422, problem).await;
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": privileged});
        let deployment = json!({"metadata": {"name": "d"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "template": template}});
        let problem = "Deployment.apps \"d\" is invalid: spec.template.spec.containers[0].securityContext.privileged: \
                       Forbidden: disallowed by cluster policy";
        let create = "POST /apis/apps/v1/namespaces/n/deployments";
        cluster.refused(create, deployment, 422, problem).await;
        cluster.made(&format!("POST {PODS}"), pod("p", json!({}))).await;
    });
}

#[test]
fn modes_of_authorization_decide_in_order() {
    use AuthorizationMode::{AlwaysAllow, AlwaysDeny, Rbac};
    let list = "GET /api/v1/namespaces/n/configmaps";
    let denied = |reason: &str| {
        format!(
            "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \"\" in the \
             namespace \"n\"{reason}"
        )
    };
    for (modes, expected) in [
        (vec![Rbac], Some(denied(""))),
        (vec![AlwaysDeny], Some(denied(": Everything is forbidden."))),
        (vec![AlwaysDeny, AlwaysAllow], None),
    ] {
        story(Config { authorization: modes, ..Config::default() }, |cluster| async move {
            let answer = cluster.by(Caller::known("ann", "", Vec::new()), list, Value::Null).await;
            match expected {
                Some(message) => answer.is_refused(list, 403, &message),
                None => assert_eq!(answer.code, 200),
            }
        });
    }
}
