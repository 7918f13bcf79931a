//! Authorization decisions as tables over a store.

use super::{Attributes, Authorizer, Decision, OnResource};
use crate::{
    authenticate::Caller,
    request::{self, Options, Place},
};
use serde_json::{Value, json};
use store::{Batch, Memory, Store};

async fn put(store: &Memory, key: &str, object: Value) {
    store.commit(Batch::new().put(format!("/registry/{key}"), object.to_string())).await.unwrap();
}

fn role(namespace: &str, name: &str, rules: Value) -> Value {
    json!({"kind": "Role", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace}, "rules": rules})
}

fn binding(namespace: &str, name: &str, role: (&str, &str), subjects: Value) -> Value {
    json!({
        "kind": "RoleBinding", "apiVersion": "v1", "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": role.0, "name": role.1}, "subjects": subjects,
    })
}

fn caller(name: &str, groups: &[&str]) -> Caller {
    Caller { name: name.into(), groups: groups.iter().map(|it| (*it).into()).collect(), ..Caller::default() }
}

/// `verb group/resource/subresource namespace name`, a dash for an empty field.
fn wanted(text: &str) -> OnResource<'_> {
    let words: Vec<&str> = text.split(' ').map(|it| if it == "-" { "" } else { it }).collect();
    let [verb, resource, namespace, name] = words[..] else { panic!("{text}") };
    let parts: Vec<&str> = resource.split('/').collect();
    let subresource = parts.get(2).copied().unwrap_or_default();
    OnResource { verb, group: parts[0], resource: parts[1], subresource, namespace, name, fields: None }
}

#[test]
fn requests_have_the_attributes_of_kubernetes() {
    for (method, url, expected) in [
        ("GET", "/api/v1/namespaces/a/pods/p", "get ''/pods/'' a p"),
        ("GET", "/api/v1/namespaces/a/pods/p/log", "get ''/pods/'log' a p"),
        ("GET", "/api/v1/namespaces/a/services/s/proxy/x/y", "get ''/services/'proxy' a s"),
        ("GET", "/api/v1/namespaces/a", "get ''/namespaces/'' a a"),
        ("PUT", "/api/v1/namespaces/a/finalize", "update ''/namespaces/'finalize' a a"),
        ("GET", "/api/v1/namespaces", "list ''/namespaces/''  "),
        ("GET", "/api/v1/nodes?watch=1", "watch ''/nodes/''  "),
        ("GET", "/api/v1/watch/namespaces/a/pods/p", "watch ''/pods/'' a p"),
        ("GET", "/api/v1/secrets?fieldSelector=metadata.name%3Dx", "list ''/secrets/''  x"),
        ("GET", "/api/v1/secrets?fieldSelector=metadata.name%21%3Dx", "list ''/secrets/''  "),
        ("GET", "/api/v1/secrets?fieldSelector=metadata.name%3Dx%2Fy", "list ''/secrets/''  "),
        (
            "DELETE",
            "/apis/apps/v1/namespaces/a/deployments?fieldSelector=metadata.name%3Dx",
            "deletecollection 'apps'/deployments/'' a ",
        ),
        ("POST", "/apis/apps/v1/namespaces/a/deployments", "create 'apps'/deployments/'' a "),
        ("HEAD", "/api/v1/namespaces/a/pods", "list ''/pods/'' a "),
    ] {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let Some(Place::Resource(target)) = request::parse(path) else { panic!("{url}") };
        let options = Options::parse(query);
        let verb = target.verb(&method.parse().unwrap(), options.watch).unwrap();
        let OnResource { verb, group, resource, subresource, namespace, name, .. } =
            OnResource::of(verb, &target, &options);
        let found = format!("{verb} '{group}'/{resource}/'{subresource}' {namespace} {name}");
        assert_eq!(found, expected, "{method} {url}");
    }
}

#[test]
fn roles_grant_their_rules_to_bound_subjects() {
    let run = world::simulate(1, |_| async {
        let (store, authorizer) = (Memory::new(), Authorizer::default());
        let pods = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        put(&store, "roles/a/pods", role("a", "pods", pods.clone())).await;
        put(&store, "clusterroles/pods", role("", "pods", pods)).await;
        put(&store, "clusterroles/all", role("", "all", all)).await;
        let ann = json!([{"kind": "User", "name": "ann"}]);
        let ops = json!([{"kind": "User", "name": "nobody"}, {"kind": "Group", "name": "ops"}]);
        let bot = json!([{"kind": "ServiceAccount", "name": "bot"}]);
        let far = json!([{"kind": "ServiceAccount", "name": "bot", "namespace": "b"}]);
        put(&store, "rolebindings/a/one", binding("a", "one", ("Role", "pods"), ann.clone())).await;
        put(&store, "rolebindings/a/two", binding("a", "two", ("ClusterRole", "all"), ops.clone())).await;
        put(&store, "rolebindings/a/three", binding("a", "three", ("Role", "pods"), bot.clone())).await;
        put(&store, "rolebindings/a/four", binding("a", "four", ("Role", "pods"), far)).await;
        put(&store, "rolebindings/a/five", binding("a", "five", ("Role", "gone"), ann.clone())).await;
        put(&store, "clusterrolebindings/six", binding("", "six", ("ClusterRole", "gone"), ann)).await;
        put(&store, "clusterrolebindings/seven", binding("", "seven", ("ClusterRole", "pods"), bot)).await;
        let missing = r#"RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found"#;
        let both = r#"RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "gone" not found]"#;
        for (who, what, allowed, reason) in [
            (
                ("ann", &[][..]),
                "get /pods a x",
                true,
                r#"RBAC: allowed by RoleBinding "one/a" of Role "pods" to User "ann""#,
            ),
            (("ann", &[]), "list /pods a -", false, both),
            (("ann", &[]), "get /pods b x", false, missing),
            (("ann", &[]), "get /pods - x", false, missing),
            (("eve", &[]), "get /pods a x", false, ""),
            (
                ("eve", &["ops"]),
                "delete apps/deployments/scale a x",
                true,
                r#"RBAC: allowed by RoleBinding "two/a" of ClusterRole "all" to Group "ops""#,
            ),
            (("eve", &["ops"]), "get /nodes - x", false, ""),
            (("ops", &[]), "get /pods a x", false, ""),
            (
                ("system:serviceaccount:a:bot", &[]),
                "get /pods a x",
                true,
                r#"RBAC: allowed by RoleBinding "three/a" of Role "pods" to ServiceAccount "bot/a""#,
            ),
            (
                ("system:serviceaccount:b:bot", &[]),
                "get /pods a x",
                true,
                r#"RBAC: allowed by RoleBinding "four/a" of Role "pods" to ServiceAccount "bot/b""#,
            ),
            (("system:serviceaccount:c:bot", &[]), "get /pods a x", false, ""),
            (("system:serviceaccount::bot", &[]), "get /pods b x", false, ""),
        ] {
            let (name, groups) = who;
            let attributes = Attributes::Resource(wanted(what));
            let decision = authorizer.rbac.decide(&store, &caller(name, groups), &attributes).await.unwrap();
            assert_eq!(decision, Decision { is_allowed: allowed, reason: reason.into() }, "{who:?} {what}");
        }
        let gone = Batch::new().delete("/registry/rolebindings/a/one");
        store.commit(gone).await.unwrap();
        let attributes = Attributes::Resource(wanted("get /pods a x"));
        let after = authorizer.rbac.decide(&store, &caller("ann", &[]), &attributes).await.unwrap();
        assert!(!after.is_allowed, "what is taken away is gone at once");
    });
    run.unwrap();
}

#[test]
fn aggregated_roles_aggregate_through_each_other() {
    let run = world::simulate(1, |_| async {
        let (store, authorizer) = (Memory::new(), Authorizer::default());
        let aggregating = |name: &str, label: &str, own: &str| {
            json!({
                "metadata": {"name": name, "labels": {own: "true"}}, "rules": null,
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]},
            })
        };
        put(&store, "clusterroles/admin", aggregating("admin", "to-admin", "x")).await;
        put(&store, "clusterroles/edit", aggregating("edit", "to-edit", "to-admin")).await;
        let subjects = json!([{"kind": "User", "name": "ann"}]);
        put(&store, "clusterrolebindings/b", binding("", "b", ("ClusterRole", "admin"), subjects)).await;
        let attributes = Attributes::Resource(wanted("get x/widgets - -"));
        let ask = async || {
            let ann = caller("ann", &[]);
            authorizer.rbac.decide(&store, &ann, &attributes).await.unwrap().is_allowed
        };
        assert!(!ask().await);
        let rules = json!([{"verbs": ["get"], "apiGroups": ["x"], "resources": ["widgets"]}]);
        let mut part = role("", "part", rules);
        part["metadata"]["labels"] = json!({"to-edit": "true"});
        put(&store, "clusterroles/part", part).await;
        assert!(ask().await);
        store.commit(Batch::new().delete("/registry/clusterroles/part")).await.unwrap();
        assert!(!ask().await);
    });
    run.unwrap();
}

#[test]
fn ten_thousand_bindings_cost_a_decision_little() {
    let run = world::run(|world| async move {
        let (store, authorizer) = (Memory::new(), Authorizer::default());
        let rules = json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]);
        let mut batch = Batch::new();
        for number in 0..10_000 {
            let (name, of) = (format!("b{number}"), format!("r{}", number % 100));
            if number < 100 {
                batch = batch
                    .put(format!("/registry/clusterroles/{of}"), role("", &of, rules.clone()).to_string());
            }
            let subjects = json!([{"kind": "User", "name": format!("u{number}")}]);
            let binding = binding("", &name, ("ClusterRole", &of), subjects).to_string();
            batch = batch.put(format!("/registry/clusterrolebindings/{name}"), binding);
            if batch.writes().len() > store::MAX_BATCH_WRITES - 2 {
                store.commit(std::mem::take(&mut batch)).await.unwrap();
            }
        }
        store.commit(batch).await.unwrap();
        let caller = caller("u77", &["system:authenticated"]);
        let attributes = Attributes::Resource(wanted("list /pods a -"));
        let decide = async || authorizer.rbac.decide(&store, &caller, &attributes).await.unwrap();
        assert!(!decide().await.is_allowed);
        const DECISIONS: u32 = 1000;
        let start = world.now();
        for _ in 0..DECISIONS {
            decide().await;
        }
        // Some microseconds each; a scan of all bindings would take milliseconds, even on an idle machine.
        let each = world.now().since(start) / DECISIONS;
        assert!(each < std::time::Duration::from_millis(1), "{each:?}");
    });
    run.unwrap();
}

#[test]
fn nodes_may_read_objects_that_their_pods_use() {
    let run = world::simulate(1, |_| async {
        let (store, authorizer) = (Memory::new(), Authorizer::default());
        let pod = |name: &str, node: &str, spec: Value| {
            let mut pod = json!({"metadata": {"name": name, "namespace": "a"}, "spec": spec});
            pod["spec"]["nodeName"] = node.into();
            pod
        };
        let uses = json!({
            "serviceAccountName": "sa", "imagePullSecrets": [{"name": "pull"}],
            "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env"}}}]}],
            "volumes": [
                {"name": "v", "configMap": {"name": "config"}}, {"name": "e", "ephemeral": {}},
                {"name": "p", "persistentVolumeClaim": {"claimName": "claim"}},
            ],
        });
        put(&store, "pods/a/web", pod("web", "n1", uses.clone())).await;
        let mut mirror = pod("mirror", "n2", uses);
        mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        put(&store, "pods/a/mirror", mirror).await;
        let volume = json!({"metadata": {"name": "pv"}, "spec": {
            "claimRef": {"namespace": "a", "name": "claim"},
            "csi": {"nodeStageSecretRef": {"namespace": "s", "name": "stage"}, "controllerPublishSecretRef": {"namespace": "s", "name": "control"}},
        }});
        put(&store, "persistentvolumes/pv", volume).await;
        put(&store, "volumeattachments/va", json!({"spec": {"nodeName": "n1"}})).await;
        let unrelated = |node: &str| format!("no relationship found between node '{node}' and this object");
        for (node, what, expected) in [
            ("n1", "get /secrets a pull", Ok(())),
            ("n1", "list /secrets a env", Ok(())),
            ("n1", "get /secrets s stage", Ok(())),
            ("n1", "get /secrets s control", Err(unrelated("n1"))),
            ("n1", "get /secrets b pull", Err(unrelated("n1"))),
            ("n2", "get /secrets a pull", Err(unrelated("n2"))),
            ("n1", "update /secrets a pull", Err("can only read resources of this type".into())),
            ("n1", "list /secrets a -", Err("No Object name found".into())),
            ("n1", "list /secrets - -", Err("can only read namespaced object of this type".into())),
            ("n1", "get /configmaps a config", Ok(())),
            ("n1", "get /persistentvolumeclaims a web-e", Ok(())),
            ("n1", "patch /persistentvolumeclaims/status a claim", Ok(())),
            ("n1", "get /persistentvolumes - pv", Ok(())),
            ("n2", "get /persistentvolumes - pv", Err(unrelated("n2"))),
            ("n1", "get storage.k8s.io/volumeattachments - va", Ok(())),
            ("n1", "create /serviceaccounts/token a sa", Ok(())),
            ("n2", "create /serviceaccounts/token a sa", Err(unrelated("n2"))),
            (
                "n1",
                "create /serviceaccounts a sa",
                Err("can only create token subresource of serviceaccount".into()),
            ),
            ("n1", "get /nodes - n1", Ok(())),
            ("n1", "get /nodes - n2", Err("node 'n1' cannot read 'n2', only its own Node object".into())),
            ("n1", "get /pods a web", Ok(())),
            ("n2", "get /pods a mirror", Ok(())),
            ("n1", "get /pods a mirror", Err(unrelated("n1"))),
            (
                "n1",
                "list /pods - -",
                Err("can only list/watch pods with spec.nodeName field selector".into()),
            ),
            ("n1", "update coordination.k8s.io/leases kube-node-lease n1", Ok(())),
            (
                "n1",
                "update coordination.k8s.io/leases kube-node-lease n2",
                Err("can only access node lease with the same name as the requesting node".into()),
            ),
            (
                "n1",
                "update coordination.k8s.io/leases a n1",
                Err("can only access leases in the \"kube-node-lease\" system namespace".into()),
            ),
            ("n1", "get /services a x", Ok(())),
            ("n1", "delete /services a x", Err(String::new())),
        ] {
            let caller = caller(&format!("system:node:{node}"), &["system:nodes"]);
            let decision =
                authorizer.nodes.decide(&store, &caller, &Attributes::Resource(wanted(what))).await.unwrap();
            let found = if decision.is_allowed { Ok(()) } else { Err(decision.reason) };
            assert_eq!(found, expected, "{node} {what}");
        }
        let impostor = caller("system:node:n1", &[]);
        let attributes = Attributes::Resource(wanted("get /secrets a pull"));
        let refused = authorizer.nodes.decide(&store, &impostor, &attributes).await.unwrap();
        assert!(!refused.is_allowed, "a name alone makes no node");
    });
    run.unwrap();
}
