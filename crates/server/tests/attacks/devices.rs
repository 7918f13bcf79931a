//! Administrative access to devices, and the status of claims, by users with every right but the one
//! needed.

use crate::access::place;
use serde_json::{Value, json};

const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/a/resourceclaims";

fn claim(name: &str, admin: bool) -> Value {
    let request = json!({"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": admin}});
    json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
}

#[test]
fn admin_access_needs_a_namespace_label() {
    let run = world::simulate(3, |world| async move {
        let place = place(world).await;
        let create = format!("POST {CLAIMS}");
        let (code, refusal) = place.by("root", &create, claim("x", true)).await;
        let problem = "spec.devices.requests[0].adminAccess: Forbidden: admin access to devices requires the \
                       `resource.kubernetes.io/admin-access: true` label on the containing namespace";
        assert_eq!(code, 422, "{refusal}");
        assert!(refusal["message"].as_str().unwrap().ends_with(problem), "{refusal}");
        let template = json!({"metadata": {"name": "t"}, "spec": {"spec": claim("x", true)["spec"]}});
        let templates = "POST /apis/resource.k8s.io/v1/namespaces/a/resourceclaimtemplates";
        assert_eq!(place.by("root", templates, template.clone()).await.0, 422);
        assert_eq!(place.by("root", &create, claim("plain", false)).await.0, 201);

        let label = json!({"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}});
        place.root("PATCH /api/v1/namespaces/a", label).await;
        assert_eq!(place.by("root", &create, claim("x", true)).await.0, 201);
        assert_eq!(place.by("root", templates, template).await.0, 201);
    });
    run.unwrap();
}

#[test]
fn allocations_and_device_status_need_their_own_rights() {
    let run = world::simulate(3, |world| async move {
        let place = place(world).await;
        place.root(&format!("POST {CLAIMS}"), claim("x", false)).await;
        let grant = |name: &str, rules: Value| {
            (
                json!({"metadata": {"name": name}, "rules": rules}),
                json!({"metadata": {"name": name}, "subjects": [{"kind": "User", "name": "ann"}],
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}}),
            )
        };
        let rbac = "/apis/rbac.authorization.k8s.io/v1";
        let rule = |resource: &str, verbs: &[&str]| json!({"apiGroups": ["resource.k8s.io"], "resources": [resource], "verbs": verbs});
        let allocation = json!({"devices": {"results": [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "e"}]}});
        let allocate = json!({"status": {"allocation": allocation}});
        let devices =
            json!({"status": {"devices": [{"driver": "d.example.com", "pool": "p", "device": "e"}]}});
        let patch = format!("PATCH {CLAIMS}/x/status");
        // Each right is granted in turn: before that, its write is rejected.
        for (name, rights, write, refused) in [
            ("status", rule("resourceclaims/status", &["patch"]), None, 403),
            ("binding", rule("resourceclaims/binding", &["patch"]), Some(&allocate), 422),
            ("driver", rule("resourceclaims/driver", &["arbitrary-node:patch"]), Some(&devices), 422),
        ] {
            let write = write.unwrap_or(&allocate);
            let (code, refusal) = place.by("ann", &patch, write.clone()).await;
            assert_eq!(code, refused, "{name}: {refusal}");
            if refused == 422 {
                assert_eq!(refusal["details"]["causes"][0]["reason"], "FieldValueForbidden", "{refusal}");
            }
            let (role, binding) = grant(name, json!([rights]));
            place.root(&format!("POST {rbac}/clusterroles"), role).await;
            place.root(&format!("POST {rbac}/clusterrolebindings"), binding).await;
            if refused == 422 {
                let (code, answer) = place.by("ann", &patch, write.clone()).await;
                assert_eq!(code, 200, "{name}: {answer}");
            }
        }
    });
    run.unwrap();
}
