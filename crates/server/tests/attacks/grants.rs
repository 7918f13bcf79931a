//! Privilege escalation through roles, bindings and impersonation.

use super::{SECRET_A, bearer};
use crate::access::{Place, place};
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Bob writes roles and bindings in `a`, reads pods there, and writes cluster roles.
async fn with_granter(place: &Place) {
    let names = ["roles", "rolebindings", "clusterroles"];
    let verbs = ["get", "create", "update", "patch"];
    let rules = json!([
        {"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": &names[..2]},
        {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]},
    ]);
    place.grant("a", "bob", rules).await;
    let rules =
        json!([{"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": [names[2]]}]);
    place.grant_all("bob", rules).await;
    let roles = format!("POST {RBAC}/namespaces/a/roles");
    let pods = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
    let made = place.by("bob", &roles, json!({"metadata": {"name": "mine"}, "rules": pods})).await;
    assert_eq!(made.0, 201, "{}", made.1);
    let subjects = json!([{"kind": "User", "name": "ann"}]);
    let binding = json!({"metadata": {"name": "mine"}, "roleRef": {"kind": "Role", "name": "mine"}, "subjects": subjects});
    let made = place.by("bob", &format!("POST {RBAC}/namespaces/a/rolebindings"), binding).await;
    assert_eq!(made.0, 201, "{}", made.1);
}

#[test]
fn granting_rights_beyond_ones_own_is_rejected() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        with_granter(&place).await;
        let more = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]);
        let refused = |what: &str, missing: &str| {
            format!(
                "{what} is forbidden: user \"bob\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n{missing}"
            )
        };
        let secrets = r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}"#;
        let role = |name: &str| refused(&format!("roles.rbac.authorization.k8s.io \"{name}\""), secrets);
        let everything =
            "{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}";
        let selectors = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
        let bob = json!([{"kind": "User", "name": "bob"}]);
        let bind = |kind: &str, name: &str| json!({"metadata": {"name": "x"}, "roleRef": {"kind": kind, "name": name}, "subjects": bob});
        let apply = "application/apply-patch+yaml";
        for (what, sort, body, expected) in [
            ("POST /namespaces/a/roles", "", json!({"metadata": {"name": "x"}, "rules": more}), role("x")),
            ("PUT /namespaces/a/roles/mine", "", json!({"metadata": {"name": "mine"}, "rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/mine", "", json!({"rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/mine", "application/json-patch+json", json!([{"op": "replace", "path": "/rules/0/resources/0", "value": "secrets"}]), role("mine")),
            ("PATCH /namespaces/a/roles/mine", "application/strategic-merge-patch+json", json!({"rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/mine?fieldManager=m&force=true", apply, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "rules": more}), role("mine")),
            ("PATCH /namespaces/a/roles/new?fieldManager=m", apply, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "new"}, "rules": more}), role("new")),
            ("POST /clusterroles", "", json!({"metadata": {"name": "x"}, "rules": [{"verbs": ["get"], "nonResourceURLs": ["/metrics"]}]}), refused("clusterroles.rbac.authorization.k8s.io \"x\"", r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#)),
            ("POST /clusterroles", "", json!({"metadata": {"name": "x"}, "rules": [], "aggregationRule": selectors}), "clusterroles.rbac.authorization.k8s.io \"x\" is forbidden: must have cluster-admin privileges to use the aggregationRule".to_owned()),
            ("POST /namespaces/a/rolebindings", "", bind("ClusterRole", "cluster-admin"), refused("rolebindings.rbac.authorization.k8s.io \"x\"", everything)),
            ("POST /namespaces/a/rolebindings", "", bind("Role", "none"), r#"rolebindings.rbac.authorization.k8s.io "none" not found"#.to_owned()),
            ("POST /clusterrolebindings", "", bind("ClusterRole", "cluster-admin"), r#"clusterrolebindings.rbac.authorization.k8s.io is forbidden: User "bob" cannot create resource "clusterrolebindings" in API group "rbac.authorization.k8s.io" at the cluster scope"#.to_owned()),
            ("POST /namespaces/b/roles", "", json!({"metadata": {"name": "x"}}), r#"roles.rbac.authorization.k8s.io is forbidden: User "bob" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "b""#.to_owned()),
        ] {
            let (method, path) = what.split_once(' ').unwrap();
            let mut headers = bearer("bob");
            if !sort.is_empty() {
                headers.push(("content-type", sort.to_owned()));
            }
            let (code, text) = place.send(&headers, &format!("{method} {RBAC}{path}"), body).await;
            let answer: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(answer["message"], expected, "{what}");
            assert!(matches!(code, 403 | 404), "{what}: {code}");
        }
        let (code, text) = place.by("ann", SECRET_A, Value::Null).await;
        assert_eq!(code, 403, "nothing came of it: {text}");
        let finalizer = json!({"metadata": {"finalizers": ["x.io/hold"]}});
        place.root(&format!("PATCH {RBAC}/namespaces/a/roles/mine"), json!({"rules": more})).await;
        let (code, text) = place.by("bob", &format!("PATCH {RBAC}/namespaces/a/roles/mine"), finalizer).await;
        assert_eq!(code, 200, "what the garbage collector changes grants nothing: {text}");
    });
    run.unwrap();
}

#[test]
fn impersonation_gives_only_the_impersonated_users_rights() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let may = |resource: &str, names: Value| json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": [resource], "resourceNames": names});
        place.grant_all("bob", json!([may("users", json!(["ann"]))])).await;
        for (attack, headers, code) in [
            ("an administrator", &[("impersonate-user", "root")][..], 403),
            ("the masters", &[("impersonate-user", "ann"), ("impersonate-group", "system:masters")], 403),
            ("a group alone", &[("impersonate-group", "system:masters")], 400),
            ("a uid alone", &[("impersonate-uid", "u-root")], 400),
            ("an extra alone", &[("impersonate-extra-scopes", "all")], 400),
            ("two users", &[("impersonate-user", "ann"), ("impersonate-user", "root")], 400),
            ("other letters", &[("Impersonate-USER", "root")], 403),
            ("a service account", &[("impersonate-user", "system:serviceaccount:a:bot")], 403),
            ("a node", &[("impersonate-user", "system:node:n1")], 403),
            ("a space", &[("impersonate-user", "root ")], 403),
            (
                "the masters, in a list",
                &[("impersonate-user", "ann"), ("impersonate-group", "devs, system:masters")],
                403,
            ),
            (
                "the masters, second",
                &[
                    ("impersonate-user", "ann"),
                    ("impersonate-group", "devs"),
                    ("impersonate-group", "system:masters"),
                ],
                403,
            ),
            (
                "two uids",
                &[("impersonate-user", "ann"), ("impersonate-uid", "1"), ("impersonate-uid", "2")],
                400,
            ),
            ("the uid of another", &[("impersonate-user", "ann"), ("impersonate-uid", "u-root")], 403),
            ("nobody", &[("impersonate-user", "system:anonymous")], 403),
            ("the server itself", &[("impersonate-user", "system:apiserver")], 403),
            ("a controller", &[("impersonate-user", "system:kube-controller-manager")], 403),
            (
                "an account's group",
                &[("impersonate-user", "ann"), ("impersonate-group", "system:serviceaccounts")],
                403,
            ),
            ("somebody by underscores", &[("impersonate_user", "root")], 403),
            (
                "an extra that is a path",
                &[("impersonate-user", "ann"), ("impersonate-extra-a%2f..%2fscopes", "all")],
                403,
            ),
            ("ann, who may not either", &[("impersonate-user", "ann")], 403),
        ] {
            let mut sent = bearer("bob");
            sent.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
            let (found, text) = place.send(&sent, SECRET_A, Value::Null).await;
            assert_eq!(found, code, "{attack}: {text}");
            assert!(!text.contains("dHJlYXN1cmU"), "{attack}");
        }
        // Anonymous callers may not impersonate.
        let sent = [("impersonate-user", "root".to_owned())];
        assert_eq!(place.send(&sent, SECRET_A, Value::Null).await.0, 403);
    });
    run.unwrap();
}
