//! Upgrades and failures: never is more than one member away for an upgrade, and a ready one takes the writes.

use crate::steps::*;
use k8s_openapi::api::{
    apps::v1::StatefulSet,
    core::v1::{Node, Pod},
};
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn an_upgrade_replaces_one_member_at_a_time_and_the_primary_last() {
    testkit::simulate(1, |cluster| async move {
        let _running = install(&cluster).await;
        patch(&cluster, json!({"version": NEW})).await;
        let (mut order, mut primaries) = (Vec::new(), Vec::new());
        while status(&cluster).await.version.as_deref() != Some(NEW) {
            cluster.world().sleep(SECOND / 4).await;
            let members = members(&cluster).await;
            let away = 3 - members.values().filter(|(_, is_ready)| *is_ready).count();
            assert!(away <= 1, "{members:?}");
            for (name, (version, _)) in &members {
                if version == NEW && !order.contains(name) {
                    order.push(name.clone());
                }
            }
            let primary = primary_now(&cluster).await;
            assert!(members[&primary].1, "{primary} takes writes: {members:?}");
            if primaries.last() != Some(&primary) {
                primaries.push(primary);
            }
        }
        assert_eq!(order, ["shop-2", "shop-1", "shop-0"]);
        assert!((2..=3).contains(&primaries.len()), "{primaries:?}");
        let reasons = reasons(&cluster).await;
        assert!(reasons.contains("Upgrading") && reasons.contains("SwitchedOver"), "{reasons:?}");
        assert!(!reasons.contains("FailedOver") && !reasons.contains("Degraded"), "{reasons:?}");
    });
}

#[test]
fn an_upgrade_that_does_not_start_stops_at_one_member_and_is_taken_back() {
    testkit::simulate(1, |cluster| async move {
        let _running = install(&cluster).await;
        patch(&cluster, json!({"version": "8.4.99"})).await;
        // There is no such image.
        let failing = json!({"spec": {"template": {"metadata": {"annotations":
            {"setpoint.dev/script": "mysql: {imagePull: fail}"}}}}});
        cluster.patch::<StatefulSet>("default", SHOP, &failing).await;
        cluster.advance(5 * MINUTE).await;
        let ready = |members: &BTreeMap<String, (String, bool)>| -> Vec<bool> {
            members.values().map(|(_, is_ready)| *is_ready).collect()
        };
        assert_eq!(ready(&members(&cluster).await), [true, true, false]);
        assert_eq!(status(&cluster).await.phase.as_deref(), Some("Upgrading"));

        let working = json!({"spec": {"template": {"metadata": {"annotations": null}}}});
        cluster.patch::<StatefulSet>("default", SHOP, &working).await;
        patch(&cluster, json!({"version": "8.4.6"})).await;
        until(&cluster, |status| status.phase.as_deref() == Some("Running")).await;
        assert_eq!(ready(&members(&cluster).await), [true; 3]);
    });
}

#[test]
fn another_member_takes_over_when_the_primary_or_its_node_is_lost() {
    testkit::simulate(1, |cluster| async move {
        let (_control_plane, operator) = install(&cluster).await;
        let first = primary(&cluster).await;
        cluster.delete::<Pod>("default", &first).await;
        cluster.settle().await;
        let second = primary(&cluster).await;
        assert_ne!(second, first);
        until(&cluster, |status| status.phase.as_deref() == Some("Running")).await;
        assert_eq!(primary(&cluster).await, second, "it does not go back");

        let pod: Pod = cluster.get("default", &second).await;
        let node = pod.spec.unwrap().node_name.unwrap();
        let fail = json!({"metadata": {"annotations": {"setpoint.dev/node": "stopped"}}});
        cluster.patch::<Node>(None, &node, &fail).await;
        let took = until(&cluster, |status| status.primary.as_deref() != Some(&second)).await;
        assert!(took < 2 * MINUTE, "{took:?}");
        assert!(members(&cluster).await[&primary(&cluster).await].1);
        assert_eq!(status(&cluster).await.phase.as_deref(), Some("Degraded"));
        let back = json!({"metadata": {"annotations": {"setpoint.dev/node": "simulated"}}});
        cluster.patch::<Node>(None, &node, &back).await;
        until(&cluster, |status| status.phase.as_deref() == Some("Running")).await;
        let failovers = "mysql_cluster_failovers_total{cluster=\"shop\",namespace=\"default\"} 2\n";
        assert!(operator.metrics().render().contains(failovers));
        assert!(reasons(&cluster).await.contains("FailedOver"));
    });
}
