//! `config/` of a Go project, before controller-gen writes parts of it: all that kustomize needs is there, and says what
//! the comments in the code say.

use crate::project::{Project, objects};
use serde_json::Value;
use std::{collections::BTreeSet, fs, path::Path};

const REDIS: &str = "create api --group cache --version v1alpha1 --kind Redis --controller";
const ZONE: &str =
    "create api --group infra --version v1 --kind Zone --namespaced=false --controller --webhook";

/// Checks that all that a kustomization names exists; returns the kinds of its objects.
fn kinds(folder: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(folder.join("kustomization.yaml")).unwrap();
    let kustomization = &objects(&text)[0];
    let list = |field: &str| kustomization[field].as_array().cloned().unwrap_or_default();
    let mut found = BTreeSet::new();
    assert!(!list("resources").is_empty(), "kubectl refuses an empty kustomization: {}", folder.display());
    for resource in list("resources") {
        let path = folder.join(resource.as_str().unwrap());
        if path.is_dir() {
            found.append(&mut kinds(&path));
            continue;
        }
        assert!(path.is_file(), "{} is not there", path.display());
        let text = fs::read_to_string(&path).unwrap();
        found.extend(objects(&text).iter().map(|object| object["kind"].as_str().unwrap().to_owned()));
    }
    for path in list("patches").iter().filter_map(|patch| patch["path"].as_str()) {
        assert!(folder.join(path).is_file(), "{path}");
    }
    found
}

#[test]
fn kustomize_finds_all_files_from_the_first_command_on() {
    let project = Project::new("--lang go");
    let config = project.root.join("config/default");
    let mut expected: BTreeSet<_> = [
        "ClusterRole",
        "ClusterRoleBinding",
        "Deployment",
        "Namespace",
        "Role",
        "RoleBinding",
        "ServiceAccount",
    ]
    .map(str::to_owned)
    .into();
    assert_eq!(kinds(&config), expected);
    project.prints(REDIS);
    expected.insert("CustomResourceDefinition".to_owned());
    assert_eq!(kinds(&config), expected);
    project.prints(ZONE);
    let webhooks = [
        "Certificate",
        "Issuer",
        "MutatingWebhookConfiguration",
        "Service",
        "ValidatingWebhookConfiguration",
    ];
    expected.extend(webhooks.map(str::to_owned));
    assert_eq!(kinds(&config), expected);
    let samples = kinds(&project.root.join("config/samples"));
    assert_eq!(samples, ["Redis", "Zone"].map(str::to_owned).into());
}

/// What follows this in a comment of the code.
fn markers<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    code.lines().filter_map(move |line| line.strip_prefix("// +kubebuilder:")?.strip_prefix(name))
}

fn sorted(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<_> = words.collect();
    words.sort();
    words
}

fn texts(value: &Value) -> Vec<String> {
    sorted(value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()))
}

/// The value of a field of a marker.
fn field(marker: &str, name: &str) -> Vec<String> {
    let value = marker.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).unwrap();
    sorted(value.trim_matches('"').split(';').map(str::to_owned))
}

#[test]
fn rules_and_webhooks_are_those_of_the_comments_in_the_code() {
    let project = Project::new("--lang go");
    project.prints(REDIS);
    project.prints(ZONE);
    let role = &objects(&project.read("config/rbac/role.yaml"))[0];
    let rules = role["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| (texts(&rule["apiGroups"]), texts(&rule["resources"]), texts(&rule["verbs"])));
    let rules: BTreeSet<_> = rules.collect();
    let mut expected = BTreeSet::new();
    for kind in ["redis", "zone"] {
        let code = project.read(&format!("internal/controller/{kind}_controller.go"));
        let rule =
            |marker: &str| (field(marker, "groups"), field(marker, "resources"), field(marker, "verbs"));
        expected.extend(markers(&code, "rbac:").map(rule));
    }
    assert_eq!(rules, expected);

    let configurations = objects(&project.read("config/webhook/manifests.yaml"));
    let webhooks = configurations.iter().flat_map(|it| it["webhooks"].as_array().unwrap());
    let webhooks: BTreeSet<_> = webhooks
        .map(|webhook| {
            let rule = &webhook["rules"][0];
            let texts = [&rule["apiGroups"], &rule["apiVersions"], &rule["resources"]].map(texts);
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            (webhook["name"].as_str().unwrap().to_owned(), path.to_owned(), texts)
        })
        .collect();
    let code = project.read("internal/webhook/zone_webhook.go");
    let expected: BTreeSet<_> = markers(&code, "webhook:")
        .map(|marker| {
            let texts = ["groups", "versions", "resources"].map(|name| field(marker, name));
            (field(marker, "name").concat(), field(marker, "path").concat(), texts)
        })
        .collect();
    assert_eq!(webhooks, expected);
}

#[test]
fn files_of_controller_gen_are_left_to_it() {
    let project = Project::new("--lang go");
    project.prints(REDIS);
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: manager-role}\nrules: []\n";
    fs::write(project.root.join("config/rbac/role.yaml"), role).unwrap();
    let said = project.prints(ZONE);
    assert!(!said.contains("role.yaml"), "{said}");
    assert_eq!(project.read("config/rbac/role.yaml"), role);
}
