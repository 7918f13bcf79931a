//! What `kubectl kustomize` builds from a project fits together, and a cluster accepts it twice.

use super::Cluster;
use crate::project::{Project, objects};
use serde_json::Value;

const REDIS: &str = "create api --group cache --version v1alpha1 --kind Redis --controller";
const ZONE: &str =
    "create api --group infra --version v1 --kind Zone --namespaced=false --controller --webhook";

/// The objects of one kind.
fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| object["kind"] == kind).collect()
}

fn only<'a>(objects: &'a [Value], kind: &str) -> &'a Value {
    let found = of_kind(objects, kind);
    assert_eq!(found.len(), 1, "{kind}");
    found[0]
}

/// Namespace and name of an object, or of a reference to one.
fn place(value: &Value) -> [&str; 2] {
    ["namespace", "name"].map(|field| value[field].as_str().unwrap_or_default())
}

fn exists(objects: &[Value], kind: &str, reference: &Value) -> bool {
    of_kind(objects, kind).iter().any(|object| place(&object["metadata"]) == place(reference))
}

/// References between the objects of an operator lead to objects that are there.
fn check_references(objects: &[Value]) {
    let deployment = only(objects, "Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let account = serde_json::json!({
        "namespace": deployment["metadata"]["namespace"], "name": pod["serviceAccountName"],
    });
    assert!(exists(objects, "ServiceAccount", &account), "{account}");
    for kind in ["RoleBinding", "ClusterRoleBinding"] {
        for binding in of_kind(objects, kind) {
            let mut role = binding["roleRef"].clone();
            role["namespace"] = binding["metadata"]["namespace"].clone();
            assert!(exists(objects, role["kind"].as_str().unwrap(), &role), "{binding}");
            assert_eq!(place(&binding["subjects"][0]), place(&account), "{binding}");
        }
    }
}

/// The API server finds the webhooks, and trusts their certificate.
fn check_webhooks(objects: &[Value]) {
    let deployment = only(objects, "Deployment");
    let service = only(objects, "Service");
    let certificate = only(objects, "Certificate");
    let template = &deployment["spec"]["template"];
    for (name, value) in service["spec"]["selector"].as_object().unwrap() {
        assert_eq!(template["metadata"]["labels"][name], *value);
    }
    let container = &template["spec"]["containers"][0];
    let ports = container["ports"].as_array().unwrap();
    assert!(ports.iter().any(|port| port["containerPort"] == service["spec"]["ports"][0]["targetPort"]));
    let volume = &template["spec"]["volumes"][0];
    assert_eq!(volume["secret"]["secretName"], certificate["spec"]["secretName"]);
    assert_eq!(container["volumeMounts"][0]["name"], volume["name"]);

    let [namespace, name] = place(&service["metadata"]);
    assert_eq!(certificate["spec"]["dnsNames"][0], format!("{name}.{namespace}.svc"));
    let mut issuer = certificate["spec"]["issuerRef"].clone();
    issuer["namespace"] = certificate["metadata"]["namespace"].clone();
    assert!(exists(objects, "Issuer", &issuer), "{issuer}");
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let configuration = only(objects, kind);
        let ca = &configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"];
        assert_eq!(*ca, place(&certificate["metadata"]).join("/"));
        assert_eq!(place(&configuration["webhooks"][0]["clientConfig"]["service"]), [namespace, name]);
    }
}

#[test]
fn a_go_project_is_built_and_accepted_from_the_first_command_on() {
    let project = Project::new("--lang go");
    let cluster = Cluster::start(&project);
    for command in [None, Some(REDIS), Some(ZONE)] {
        command.iter().for_each(|command| drop(project.prints(command)));
        let built = objects(&cluster.kubectl("kustomize config/default"));
        check_references(&built);
        if command == Some(ZONE) {
            check_webhooks(&built);
            cluster.define_cert_manager();
        }
        let mut namespaces = built.iter().filter_map(|it| it["metadata"]["namespace"].as_str());
        assert!(namespaces.all(|namespace| namespace == "shop-system"));
        for _ in 0..2 {
            let said = cluster.kubectl("apply --server-side -k config/default");
            assert_eq!(said.lines().count(), built.len(), "{said}");
        }
        if command == Some(REDIS) {
            cluster.kubectl("apply -k config/samples");
        }
    }
}

#[test]
fn what_was_generated_for_a_rust_project_is_accepted_twice() {
    let project = Project::with_prepared_manifests();
    project.prints("generate");
    let cluster = Cluster::start(&project);
    let built = objects(&cluster.kubectl("kustomize config/default"));
    check_references(&built);
    for outcome in [" created", " unchanged"] {
        let said = cluster.kubectl("apply -k config/default");
        assert_eq!(said.lines().count(), built.len(), "{said}");
        assert!(said.lines().all(|line| line.ends_with(outcome)), "{said}");
    }
}
