//! Defaults and checks of pods, claims, nodes and ingresses.

use super::{Answer, Cluster, PODS, pod, story};
use serde_json::{Value, json};
use server::Config;

async fn create(cluster: &Cluster, pod: Value) -> Answer {
    cluster.send(&format!("POST {PODS}"), pod).await
}

#[test]
fn limit_ranges_set_defaults_and_are_enforced() {
    story(Config::default(), |cluster| async move {
        let limits = json!([
            {"type": "Container", "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"},
                "min": {"cpu": "50m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"}},
            {"type": "Pod", "max": {"cpu": "1500m"}},
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
        ]);
        let range = json!({"metadata": {"name": "l"}, "spec": {"limits": limits}});
        cluster.made("POST /api/v1/namespaces/n/limitranges", range).await;
        let sized = |requests: Value, limits: Value| {
            let resources = json!({"requests": requests, "limits": limits});
            pod("p", json!({"containers": [{"name": "c", "image": "i", "resources": resources}]}))
        };
        for (pod, message) in [
            (
                sized(json!({}), json!({"cpu": "1200m"})),
                "maximum cpu usage per Container is 1, but limit is 1200m",
            ),
            (
                sized(json!({"cpu": "10m"}), json!({"cpu": "40m"})),
                "minimum cpu usage per Container is 50m, but request is 10m",
            ),
            (
                sized(json!({"cpu": "100m"}), json!({"cpu": "1"})),
                "cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000",
            ),
            (
                pod(
                    "p",
                    json!({"containers": (0..3).map(|at| json!({"name": format!("c{at}"), "image": "i",
                    "resources": {"requests": {"cpu": "600m"}, "limits": {"cpu": "600m"}}})).collect::<Vec<_>>()}),
                ),
                "maximum cpu usage per Pod is 1500m, but limit is 1800m",
            ),
        ] {
            let shown = pod.to_string();
            let answer = create(&cluster, pod).await;
            answer.is_refused(&shown, 403, &format!("pods \"p\" is forbidden: {message}"));
        }
        let answer = create(&cluster, pod("p", json!({}))).await;
        let expected = json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}});
        assert_eq!(answer.body["spec"]["containers"][0]["resources"], expected, "{}", answer.body);
        let claim = |size: &str| {
            json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}}}})
        };
        let claims = "POST /api/v1/namespaces/n/persistentvolumeclaims";
        let frame = "persistentvolumeclaims \"c\" is forbidden: ";
        for (size, message) in [
            ("512Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"),
            ("3Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"),
        ] {
            cluster.refused(claims, claim(size), 403, &format!("{frame}{message}")).await;
        }
    });
}

#[test]
fn a_pod_gets_service_account_priority_and_tolerations() {
    story(Config::default(), |cluster| async move {
        let classes = "POST /apis/scheduling.k8s.io/v1/priorityclasses";
        let made = create(&cluster, pod("plain", json!({}))).await.body;
        let spec = &made["spec"];
        assert_eq!(
            (&spec["serviceAccountName"], &spec["priority"]),
            (&json!("default"), &json!(0)),
            "{made}"
        );
        assert_eq!(spec["preemptionPolicy"], "PreemptLowerPriority");
        assert_eq!(spec["tolerations"].as_array().map(Vec::len), Some(2), "{made}");
        let mount = &spec["containers"][0]["volumeMounts"][0];
        assert_eq!(mount["mountPath"], "/var/run/secrets/kubernetes.io/serviceaccount", "{made}");
        let default = json!({"metadata": {"name": "usual"}, "value": 5, "globalDefault": true, "preemptionPolicy": "Never"});
        cluster.made(classes, default).await;
        let second = cluster
            .send(classes, json!({"metadata": {"name": "b"}, "value": 6, "globalDefault": true}))
            .await;
        assert_eq!(second.code, 403, "{}", second.body);
        let made = create(&cluster, pod("usual", json!({}))).await.body;
        let spec = &made["spec"];
        assert_eq!(
            (&spec["priority"], &spec["priorityClassName"], &spec["preemptionPolicy"]),
            (&json!(5), &json!("usual"), &json!("Never"))
        );
        for (spec, message) in [
            (json!({"priorityClassName": "no"}), "no PriorityClass with name no was found"),
            (
                json!({"priority": 9}),
                "the integer value of priority (9) must not be provided in pod spec; priority admission controller computed 5 from the given PriorityClass name",
            ),
            (
                json!({"serviceAccountName": "nobody"}),
                "error looking up service account n/nobody: serviceaccount \"nobody\" not found",
            ),
            (json!({"runtimeClassName": "no"}), "pod rejected: RuntimeClass \"no\" not found"),
        ] {
            let answer = create(&cluster, pod("p", spec.clone())).await;
            answer.is_refused(&spec.to_string(), 403, &format!("pods \"p\" is forbidden: {message}"));
        }
        let answer = create(&cluster, pod("p", json!({"runtimeClassName": "a/%"}))).await;
        let message = "invalid resource name \"a/%\": [may not contain '/' may not contain '%']";
        answer.is_refused("a class that no path can hold", 500, message);
    });
}

#[test]
fn claims_and_ingresses_without_a_class_get_the_default() {
    story(Config::default(), |cluster| async move {
        let storage = |name: &str, is_default: &str, grows: bool| {
            let annotations = json!({"storageclass.kubernetes.io/is-default-class": is_default});
            json!({"metadata": {"name": name, "annotations": annotations}, "provisioner": "p",
                "allowVolumeExpansion": grows})
        };
        let classes = "POST /apis/storage.k8s.io/v1/storageclasses";
        cluster.made(classes, storage("slow", "false", false)).await;
        cluster.made(classes, storage("fast", "true", true)).await;
        let claim = |name: &str| {
            json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}})
        };
        let claims = "/api/v1/namespaces/n/persistentvolumeclaims";
        let made = cluster.made(&format!("POST {claims}"), claim("c")).await;
        assert_eq!(made["spec"]["storageClassName"], "fast");
        assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        let refused = cluster.send(&format!("PATCH {claims}/c"), more.clone()).await;
        assert!([403, 422].contains(&refused.code), "{}", refused.body);
        cluster.made(&format!("PATCH {claims}/c/status"), json!({"status": {"phase": "Bound"}})).await;
        cluster.made(&format!("PATCH {claims}/c"), more).await;

        let class = json!({"metadata": {"name": "front", "annotations":
            {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "a.b/c"}});
        cluster.made("POST /apis/networking.k8s.io/v1/ingressclasses", class).await;
        let backend = json!({"service": {"name": "s", "port": {"number": 1}}});
        let ingress = json!({"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}});
        let made = cluster.made("POST /apis/networking.k8s.io/v1/namespaces/n/ingresses", ingress).await;
        assert_eq!(made["spec"]["ingressClassName"], "front");
    });
}

#[test]
fn a_new_node_is_tainted_and_a_volume_gets_its_finalizer() {
    story(Config::default(), |cluster| async move {
        let node = cluster.made("POST /api/v1/nodes", json!({"metadata": {"name": "one"}})).await;
        let taint = json!([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]);
        assert_eq!(node["spec"]["taints"], taint);
        let volume = json!({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
        let volume = cluster.made("POST /api/v1/persistentvolumes", volume).await;
        assert_eq!(volume["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
        let class = json!({"metadata": {"name": "box"}, "handler": "h", "overhead": {"podFixed": {"cpu": "100m"}},
            "scheduling": {"nodeSelector": {"a": "b"}}});
        cluster.made("POST /apis/node.k8s.io/v1/runtimeclasses", class).await;
        let made = create(&cluster, pod("boxed", json!({"runtimeClassName": "box"}))).await.body;
        assert_eq!(
            (&made["spec"]["overhead"], &made["spec"]["nodeSelector"]),
            (&json!({"cpu": "100m"}), &json!({"a": "b"}))
        );
    });
}
