//! Small bodies that would decode or compare to something large: rejected before the memory is allocated.

use crate::{
    access::place,
    client::{send, send_with},
};
use serde_json::{Value, json};
use server::{Config, Server};
use std::sync::Arc;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

#[test]
fn expanding_yaml_is_rejected_by_every_verb() {
    let run = world::simulate(1, |world| async move {
        let store = Arc::new(store::Memory::new());
        let server = Server::start(&world, store, Config::default()).await.unwrap();
        let maps = "/api/v1/namespaces/default/configmaps";
        let head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n";
        let large = "x".repeat(1 << 20);
        let aliased = format!("{head}data: &a {{k: {large}}}\nmore: [{}]\n", vec!["*a"; 900].join(","));
        let nested: String = (0..100).map(|at| format!("&a{at} [")).collect();
        let nested = format!("{head}more: {nested}{large}{}\n", "]".repeat(100));
        let doubled: String = (1..40).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}]\n", at - 1)).collect();
        let doubled = format!("{head}a0: &a0 [x, x]\n{doubled}");
        for bomb in [aliased, nested, doubled] {
            for (method, path, content_type) in [
                ("POST", maps.to_owned(), "application/yaml"),
                ("PUT", format!("{maps}/m"), "application/yaml"),
                ("PATCH", format!("{maps}/m?fieldManager=f"), "application/apply-patch+yaml"),
                ("DELETE", format!("{maps}/m"), "application/yaml"),
            ] {
                let (code, answer) = send_with(&server, method, &path, content_type, bomb.clone()).await;
                let answer = String::from_utf8_lossy(&answer);
                assert_eq!(code, 400, "{method}: {answer}");
                assert!(answer.contains("document contains excessive aliasing"), "{method}: {answer}");
            }
        }
        let (code, _) = send(&server, "GET", &format!("{maps}/m"), "").await;
        assert_eq!(code, 404, "nothing came of it");
    });
    run.unwrap();
}

#[test]
fn roles_of_billions_of_rights_are_rejected_quickly() {
    let run = world::simulate(1, |world| async move {
        let place = place(world).await;
        let verbs = json!(["create", "update", "patch", "get"]);
        let all = json!(["roles", "rolebindings"]);
        let own = json!([{"verbs": verbs, "apiGroups": ["rbac.authorization.k8s.io"], "resources": all}]);
        place.grant("a", "bob", own).await;
        let many = |word: &str| (0..100).map(|number| json!(format!("{word}{number}"))).collect::<Vec<_>>();
        let rules = json!([{
            "verbs": many("v"), "apiGroups": many("g"), "resources": many("r"), "resourceNames": many("n"),
        }]);
        let role = json!({"metadata": {"name": "huge"}, "rules": rules});
        place.root(&format!("POST {RBAC}/namespaces/a/roles"), role.clone()).await;
        let mut mine = role.clone();
        mine["metadata"]["name"] = json!("mine");
        let subjects = json!([{"kind": "User", "name": "bob"}]);
        let reference = json!({"kind": "Role", "name": "huge"});
        let binding = json!({"metadata": {"name": "b"}, "roleRef": reference, "subjects": subjects});
        for (what, body) in [
            (format!("POST {RBAC}/namespaces/a/roles"), mine),
            (format!("PATCH {RBAC}/namespaces/a/roles/huge"), json!({"metadata": {"labels": {"a": "b"}}})),
            (format!("POST {RBAC}/namespaces/a/rolebindings"), binding),
        ] {
            let (code, answer) = place.by("bob", &what, body).await;
            assert_eq!(code, 403, "{what}");
            let message = answer["message"].as_str().unwrap();
            assert!(message.contains("is attempting to grant RBAC permissions not currently held"), "{what}");
            assert!(message.len() < 200_000, "{what}: {}", message.len());
        }
        // A caller with all rights may grant it, decided quickly.
        let subjects = json!([{"kind": "User", "name": "bob"}]);
        let binding = json!({"metadata": {"name": "root"}, "roleRef": {"kind": "Role", "name": "huge"}, "subjects": subjects});
        place.root(&format!("POST {RBAC}/namespaces/a/rolebindings"), binding).await;
        let mut same = role;
        same["metadata"]["name"] = json!("same");
        let (code, answer) = place.by("bob", &format!("POST {RBAC}/namespaces/a/roles"), same).await;
        assert_eq!(code, 201, "{answer}");
        let review = json!({"spec": {"namespace": "a"}});
        let what = "POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
        let (code, answer) = place.by("bob", what, review).await;
        assert_eq!(code, 201, "{answer}");
        assert!(
            answer["status"]["resourceRules"].as_array().is_some_and(|rules: &Vec<Value>| rules.len() < 20)
        );
    });
    run.unwrap();
}
