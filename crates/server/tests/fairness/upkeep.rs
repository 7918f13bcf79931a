//! Mandatory and suggested flow schemas and priority levels: recreated and corrected, unless an
//! administrator took them over.

use super::{FLOW, OBJECT, ask, start, user};
use crate::client::{send, send_with};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn mandatory_and_suggested_objects_are_restored() {
    world::simulate(8, |world| async move {
        let server = start(&world, 600, Duration::ZERO).await;
        let (schemas, levels) =
            (format!("{FLOW}/flowschemas"), format!("{FLOW}/prioritylevelconfigurations"));
        let patch = async |path: String, body: Value| {
            let sort = "application/merge-patch+json";
            let (code, answer) = send_with(&server, "PATCH", &path, sort, body.to_string()).await;
            assert_eq!(code, 200, "{path}: {answer:?}");
        };
        for path in
            [format!("{schemas}/catch-all"), format!("{schemas}/probes"), format!("{levels}/workload-low")]
        {
            assert_eq!(send(&server, "DELETE", &path, "").await.0, 200);
        }
        patch(format!("{schemas}/system-nodes"), json!({"spec": {"matchingPrecedence": 7}})).await;
        patch(format!("{schemas}/service-accounts"), json!({"spec": {"matchingPrecedence": 8999}})).await;
        let own = json!({"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}},
            "spec": {"matchingPrecedence": 9001}});
        patch(format!("{schemas}/global-default"), own).await;
        assert_eq!(ask(&server, user("ann"), OBJECT).await.status(), 200, "meanwhile everything works");
        assert_eq!(send(&server, "GET", &format!("{schemas}/catch-all"), "").await.0, 404);
        world.sleep(Duration::from_secs(61)).await;
        for (path, precedence) in [
            ("flowschemas/catch-all", json!(10000)),
            ("flowschemas/probes", json!(2)),
            ("flowschemas/system-nodes", json!(500)),
            ("flowschemas/service-accounts", json!(9000)),
            ("flowschemas/global-default", json!(9001)),
            ("prioritylevelconfigurations/workload-low", Value::Null),
        ] {
            let (code, found) = send(&server, "GET", &format!("{FLOW}/{path}"), "").await;
            assert_eq!((code, &found["spec"]["matchingPrecedence"]), (200, &precedence), "{path}: {found}");
        }
        let nodes = send(&server, "GET", &format!("{schemas}/system-nodes"), "").await.1;
        let owners = nodes["metadata"]["managedFields"].as_array().unwrap().iter();
        let owners: Vec<_> = owners.map(|owner| owner["manager"].as_str().unwrap()).collect();
        assert!(owners.contains(&"api-priority-and-fairness-config-producer-v1"), "{nodes}");
        assert_eq!(nodes["metadata"]["generation"], 3, "{nodes}");
    })
    .unwrap();
}
