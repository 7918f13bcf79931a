//! A Go project, from nothing to what its image is built from, with Go and controller-gen. Its modules come from the network
//! the first time.

use crate::project::{Project, missing_for_the_image, objects};
use serde_json::Value;
use std::collections::BTreeSet;

const REDIS: &str = "create api --group cache --version v1alpha1 --kind Redis --controller --webhook";
const ZONE: &str = "create api --group infra --version v1 --kind Zone --namespaced=false --controller";

/// The group, resource and verb of each thing that a role allows.
fn allowed(role: &Value) -> BTreeSet<[String; 3]> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut allowed = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                let verbs = texts(&rule["verbs"]).into_iter();
                allowed.extend(verbs.map(|verb| [group.clone(), resource.clone(), verb]));
            }
        }
    }
    allowed
}

#[test]
fn controller_gen_writes_what_the_templates_say_and_the_tests_pass() {
    let project = Project::new("--lang go");
    project.prints(REDIS);
    project.prints(ZONE);
    let role = "config/rbac/role.yaml";
    let webhooks = "config/webhook/manifests.yaml";
    let before = [role, webhooks].map(|path| objects(&project.read(path)));
    project.prints("generate --image registry.example.com/shop:1.0");
    for path in [role, webhooks] {
        assert!(project.read(path).starts_with("---\n"), "controller-gen has written {path}");
    }
    assert_eq!(allowed(&before[0][0]), allowed(&objects(&project.read(role))[0]));
    assert_eq!(before[1], objects(&project.read(webhooks)));
    assert!(project.read("config/manager/kustomization.yaml").contains("newTag: \"1.0\"\n"));
    assert_eq!(missing_for_the_image(&project.root), Vec::<String>::new());

    let said = project.prints("test");
    assert!(said.contains("ok  \tacme.io/shop/internal/controller"), "{said}");
}
