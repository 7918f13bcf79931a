//! OwnerReferencesPermissionEnforcement, enabled and disabled.

use super::story;
use serde_json::{Value, json};
use server::{AdmissionPlugin, AdmissionPlugins, Caller, Config};

const MAPS: &str = "/api/v1/namespaces/n/configmaps";

fn owned(name: &str, owner: &str, blocks: bool) -> Value {
    let owner =
        json!({"apiVersion": "v1", "kind": owner, "name": "o", "uid": "u", "blockOwnerDeletion": blocks});
    json!({"metadata": {"name": name, "ownerReferences": [owner]}})
}

#[test]
fn changing_owners_needs_the_right_to_delete_the_object() {
    let enforcement = AdmissionPlugin::OwnerReferencesPermissionEnforcement;
    let config =
        Config { admission_plugins: AdmissionPlugins::default().with(enforcement), ..Config::default() };
    story(config, |cluster| async move {
        let maps =
            json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "update", "patch"]});
        cluster.grant("ann", json!([maps])).await;
        let ann = || Caller::known("ann", "", Vec::new());
        cluster.made(&format!("POST {MAPS}"), json!({"metadata": {"name": "a"}})).await;
        let frame = |name: &str, text: &str| format!("configmaps \"{name}\" is forbidden: {text}");
        let patch = format!("PATCH {MAPS}/a");
        let answer = cluster.by(ann(), &patch, owned("a", "Secret", false)).await;
        answer.is_refused(
            &patch,
            403,
            &frame("a", "cannot set an ownerRef on a resource you can't delete: , <nil>"),
        );
        let create = format!("POST {MAPS}");
        let answer = cluster.by(ann(), &create, owned("b", "Secret", true)).await;
        let text = "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>";
        answer.is_refused(&create, 403, &frame("b", text));
        let answer = cluster.by(ann(), &create, owned("b", "Nonsense", true)).await;
        let text = "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion v1 Kind \
                    Nonsense: no matches for kind \"Nonsense\" in version \"v1\"";
        answer.is_refused(&create, 403, &frame("b", text));
        assert_eq!(cluster.by(ann(), &create, owned("b", "Secret", false)).await.code, 201);
        let rule = json!([{"apiGroups": [""], "resources": ["secrets/finalizers"], "verbs": ["update"]}]);
        cluster.grant("ann", rule).await;
        assert_eq!(cluster.by(ann(), &create, owned("c", "Secret", true)).await.code, 201);
    });
}

#[test]
fn owner_changes_are_not_checked_by_default() {
    story(Config::default(), |cluster| async move {
        let maps = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]});
        cluster.grant("ann", json!([maps])).await;
        let ann = Caller::known("ann", "", Vec::new());
        let answer = cluster.by(ann, &format!("POST {MAPS}"), owned("b", "Nonsense", true)).await;
        assert_eq!(answer.code, 201, "{}", answer.body);
    });
}

#[test]
fn duplicate_owner_references_are_removed_with_a_warning() {
    story(Config::default(), |cluster| async move {
        let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid});
        let path = "/api/v1/namespaces/n/configmaps";
        for (what, owners, kept, expected) in [
            (format!("POST {path}"), ["u", "v", "u", "v"].as_slice(), 2, "duplicate entries; API server"),
            (format!("PUT {path}/a"), &["u", "u"], 1, "duplicate entries; API server"),
            (
                format!("PATCH {path}/a"),
                &["w", "w"],
                1,
                "duplicate entries after mutating admission happens; API server",
            ),
        ] {
            let owners: Vec<_> = owners.iter().map(|uid| owner(uid)).collect();
            let body = json!({"metadata": {"name": "a", "ownerReferences": owners}});
            let answer = cluster.send(&what, body).await;
            assert_eq!(
                answer.body["metadata"]["ownerReferences"].as_array().map(Vec::len),
                Some(kept),
                "{what}"
            );
            assert!(
                answer.warnings.len() == 1 && answer.warnings[0].contains(expected),
                "{:?}",
                answer.warnings
            );
        }
    });
}
