//! Pods that cannot start: missing objects, and no room.

use crate::rig::{container, pod, reasons, start, start_with, state};
use k8s_openapi::api::core::v1::{ConfigMap, Event, PersistentVolumeClaim, Pod, Secret};
use node::Settings;
use serde_json::json;

#[test]
fn a_pod_waits_for_its_volumes_and_variables() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        let spec = json!({
            "volumes": [{"name": "config", "configMap": {"name": "settings"}},
                        {"name": "maybe", "secret": {"secretName": "absent", "optional": true}}],
            "containers": [{"name": "app", "image": "nginx", "env": [
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "value"}}}]}]});
        cluster.create(&pod("web", spec, "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Pending ContainerCreating/0");
        let events: Vec<Event> = cluster.list("default").await;
        let event = events.iter().find(|it| it.reason.as_deref() == Some("FailedMount")).unwrap();
        let text = "MountVolume.SetUp failed for volume \"config\" : configmap \"settings\" not found";
        assert_eq!(event.message.as_deref(), Some(text));

        let named = |name: &str| json!({"metadata": {"name": name, "namespace": "default"}});
        cluster.create::<ConfigMap>(&serde_json::from_value(named("settings")).unwrap()).await;
        cluster.create::<Secret>(&serde_json::from_value(named("token")).unwrap()).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Pending CreateContainerConfigError/0");
        let web: Pod = cluster.get("default", "web").await;
        let waiting =
            web.status.unwrap().container_statuses.unwrap().remove(0).state.unwrap().waiting.unwrap();
        assert_eq!(waiting.message.as_deref(), Some("couldn't find key value in Secret default/token"));

        cluster.patch::<Secret>("default", "token", &json!({"stringData": {"value": "x"}})).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Running ready/0");
    });
}

#[test]
fn a_pod_waits_until_its_claims_are_bound() {
    testkit::run(|cluster| async move {
        let _running = start(&cluster, 1);
        let template = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        let mut claim = template.clone();
        claim["metadata"] = json!({"name": "data", "namespace": "default"});
        cluster.create::<PersistentVolumeClaim>(&serde_json::from_value(claim.clone()).unwrap()).await;
        let mut spec = container("nginx");
        spec["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]);
        cluster.create(&pod("web", spec, "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Pending ContainerCreating/0");
        let messages = async || {
            let events: Vec<Event> = cluster.list("default").await;
            let failed = events.into_iter().filter(|it| it.reason.as_deref() == Some("FailedMount"));
            failed.filter_map(|it| it.message).collect::<Vec<_>>().join("; ")
        };
        assert!(messages().await.contains("error processing PVC default/data: PVC is not bound"));
        let bound = json!({"status": {"phase": "Bound"}});
        cluster.patch_status::<PersistentVolumeClaim>("default", "data", &bound).await;
        cluster.settle().await;
        assert_eq!(
            state(&cluster, "web").await,
            "Pending ContainerCreating/0",
            "the other volume has no claim"
        );
        claim["metadata"]["name"] = json!("web-scratch");
        cluster.create::<PersistentVolumeClaim>(&serde_json::from_value(claim).unwrap()).await;
        cluster.patch_status::<PersistentVolumeClaim>("default", "web-scratch", &bound).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "web").await, "Running ready/0");

        cluster.delete::<PersistentVolumeClaim>("default", "data").await;
        // A node that has not seen the deletion starts the pod.
        cluster.settle().await;
        let mut late = container("nginx");
        late["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]);
        cluster.create(&pod("late", late, "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "late").await, "Pending ContainerCreating/0");
        assert!(messages().await.contains("error processing PVC default/data: PVC is being deleted"));
        assert_eq!(state(&cluster, "web").await, "Running ready/0");
    });
}

#[test]
fn a_node_rejects_what_does_not_fit() {
    testkit::run(|cluster| async move {
        let mut settings = Settings { count: 1, ..Settings::default() };
        settings.capacity.get_mut("cpu").unwrap().0 = "2".to_owned();
        settings.capacity.get_mut("pods").unwrap().0 = "2".to_owned();
        let _running = start_with(&cluster, &settings);
        cluster.settle().await;
        let large = |cpu: &str| {
            let resources = json!({"requests": {"cpu": cpu}});
            json!({"containers": [{"name": "app", "image": "nginx", "resources": resources}]})
        };
        cluster.create(&pod("first", large("1500m"), "")).await;
        cluster.settle().await;
        cluster.create(&pod("second", large("1"), "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "first").await, "Running ready/0");
        let second: Pod = cluster.get("default", "second").await;
        let status = second.status.unwrap();
        assert_eq!((status.phase.as_deref(), status.reason.as_deref()), (Some("Failed"), Some("OutOfcpu")));
        let text = "Pod was rejected: Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000";
        assert_eq!(status.message.as_deref(), Some(text));
        assert_eq!(reasons(&cluster, "second").await, ["OutOfcpu"]);
        cluster.create(&pod("third", container("nginx"), "")).await;
        cluster.settle().await;
        cluster.create(&pod("fourth", container("nginx"), "")).await;
        cluster.settle().await;
        assert_eq!(state(&cluster, "third").await, "Running ready/0");
        assert_eq!(state(&cluster, "fourth").await, "Failed");
    });
}
