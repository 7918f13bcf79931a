//! What the real server answered to invalid objects, and what its code says where nothing was recorded.

use serde_json::{Value, json};

use super::{create, subresource_update, update, warnings};

/// Every refusal of a new object in the recordings that a kind's rules explain. `causes` has `reason` and `message`
/// unless only the field was recorded.
const RECORDED: &str = include_str!("recorded.json");

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// An object as it is when validation sees it: named, placed, defaulted and prepared.
fn prepared(group: &str, version: &str, kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    let (id, _) = crate::types().kind(group, version, kind).unwrap();
    schema::encode::normalize(crate::types(), id, &mut object);
    crate::defaults::default(group, version, kind, &mut object);
    let is_it = |it: &&crate::resources::Resource| it.group == group && it.kind == kind;
    let resource = crate::resources().iter().find(is_it);
    if resource.is_some_and(|it| it.scope == crate::resources::Scope::Namespaced) {
        api::object::set_namespace(&mut object, "ns");
    }
    if kind == "Job" {
        let labels = json!({
            "controller-uid": "u", "job-name": api::object::name(&object),
            "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": api::object::name(&object),
        });
        object["metadata"]["uid"] = json!("u");
        object["spec"]["template"]["metadata"] = json!({"labels": labels});
        object["spec"]["selector"] = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}});
    }
    object
}

#[test]
fn new_objects_are_refused_as_recorded() {
    let cases: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let (group, version, kind) = (text(case, "group"), text(case, "version"), text(case, "kind"));
        let object = prepared(group, version, kind, &case["object"]);
        let errors = create(group, version, kind, &object);
        let mut found: Vec<_> = errors
            .iter()
            .map(|error| (error.field.clone(), error.error_type.reason().to_owned(), error.body()))
            .collect();
        found.sort();
        let mut expected: Vec<_> = case["causes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cause| {
                let of = |field| text(cause, field).to_owned();
                (of("field"), of("reason"), of("message"))
            })
            .collect();
        expected.sort();
        if let [(field, reason, _)] = expected.as_slice()
            && reason.is_empty()
        {
            found.retain(|(it, _, _)| it == field);
            found.truncate(1);
            expected = vec![(field.clone(), String::new(), String::new())];
            found.iter_mut().for_each(|it| *it = (it.0.clone(), String::new(), String::new()));
        }
        if found != expected {
            wrong.push(format!("{}\n  found    {found:?}\n  expected {expected:?}", text(case, "say")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Objects that the real server holds, in its own words.
const ACCEPTED: &str = include_str!("accepted.json");

#[test]
fn what_the_real_server_holds_is_valid() {
    let recorded: Vec<Value> = serde_json::from_str(ACCEPTED).unwrap();
    let bootstrap = crate::bootstrap().map(|(_, object)| serde_json::from_str(object).unwrap());
    let mut wrong = Vec::new();
    for mut object in recorded.into_iter().chain(bootstrap) {
        let kind = api::object::group_version_kind(&object).unwrap();
        let (id, _) = crate::types().kind(&kind.group, &kind.version, &kind.kind).unwrap();
        schema::encode::normalize(crate::types(), id, &mut object);
        crate::defaults::default(&kind.group, &kind.version, &kind.kind, &mut object);
        api::object::set_resource_version(&mut object, "5");
        let errors = [
            create(&kind.group, &kind.version, &kind.kind, &object),
            update(&kind.group, &kind.version, &kind.kind, &object, &object),
            subresource_update(&kind.group, &kind.version, &kind.kind, "status", &object, &object),
        ];
        for errors in errors.iter().filter(|errors| !errors.is_empty()) {
            wrong.push(format!("{kind} {}: {errors}", api::object::name(&object)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A merge patch, without its deletions of what is not there.
fn patched(object: &Value, patch: &Value) -> Value {
    let Some(fields) = patch.as_object() else { return patch.clone() };
    let mut object = if object.is_object() { object.clone() } else { json!({}) };
    for (field, value) in fields {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(field);
        } else {
            object[field.as_str()] = patched(&object[field.as_str()], value);
        }
    }
    object
}

/// Objects, and what Kubernetes' code says of them.
const OBJECTS: &str = include_str!("objects.json");

#[test]
fn new_objects_are_refused_as_in_kubernetes() {
    let cases: Vec<Value> = serde_json::from_str(OBJECTS).unwrap();
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|case| {
            let (group, kind) = (text(case, "group"), text(case, "kind"));
            let object = prepared(group, "v1", kind, &case["object"]);
            let found = create(group, "v1", kind, &object).to_string();
            let expected = text(case, "expected");
            (found != expected).then(|| format!("{kind}\n  found    {found}\n  expected {expected}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Objects, patches for them, and what Kubernetes' code says of the outcome.
const CHANGES: &str = include_str!("changes.json");

#[test]
fn changes_are_refused_as_in_kubernetes() {
    let mut wrong = Vec::new();
    for case in serde_json::from_str::<Vec<Value>>(CHANGES).unwrap() {
        let (group, kind) = (text(&case, "group"), text(&case, "kind"));
        let mut old = prepared(group, "v1", kind, &case["old"]);
        api::object::set_resource_version(&mut old, "5");
        let mut new = patched(&old, &case["patch"]);
        crate::defaults::default(group, "v1", kind, &mut new);
        let errors = match text(&case, "subresource") {
            "" => update(group, "v1", kind, &new, &old),
            subresource => subresource_update(group, "v1", kind, subresource, &new, &old),
        };
        let (found, expected) = (errors.to_string(), text(&case, "expected"));
        if found != expected {
            wrong.push(format!("{kind} {}\n  found    {found:?}\n  expected {expected:?}", case["patch"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn clients_are_warned_as_in_kubernetes() {
    for (group, kind, object, expected) in [
        (
            "",
            "Endpoints",
            json!({}),
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        (
            "",
            "Pod",
            json!({"metadata": {"name": "p"}, "spec": {"containers": [{
                "name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
                "ports": [{"containerPort": 80, "name": "x"}, {"containerPort": 80, "name": "x"}],
            }]}}),
            "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply; \
             spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]; \
             spec.containers[0].ports[1]: duplicate port name \"x\" with spec.containers[0].ports[0], services and \
             probes that select ports by name will use spec.containers[0].ports[0]",
        ),
        (
            "apps",
            "Deployment",
            json!({"metadata": {"name": "d"}, "spec": {"template": {"spec": {
                "nodeSelector": {"beta.kubernetes.io/os": "linux"}, "volumes": [{"name": "v", "gitRepo": {}}],
            }}}}),
            "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" \
             instead; spec.template.spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
        ),
        (
            "",
            "Service",
            json!({"spec": {"type": "ClusterIP", "externalName": "x", "sessionAffinity": "None", "externalIPs": ["010.0.0.1"]}}),
            "spec.externalIPs[0]: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"; spec.externalIPs \
             is deprecated and may no longer be implemented in some clusters; spec.externalName is ignored when \
             spec.type is not \"ExternalName\"",
        ),
        (
            "",
            "Pod",
            json!({
                "metadata": {"name": "p", "annotations": {
                    "seccomp.security.alpha.kubernetes.io/pod": "runtime/default",
                    "container.apparmor.security.beta.kubernetes.io/c": "x",
                }},
                "spec": {
                    "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostIP": "1.1.1.1"}]}],
                    "volumes": [{"name": "v", "projected": {"sources": [
                        {},
                        {"secret": {"name": "a", "items": [{"key": "k", "path": "p"}]}},
                        {"configMap": {"name": "b", "items": [{"key": "k", "path": "p/q/"}]}},
                    ]}}],
                },
            }),
            "volume \"v\" (Projected) has no sources provided; volume \"v\" (Projected): overlapping paths: \"p/q\" \
             (ConfigMap \"b\") with \"p\" (Secret \"a\"); \
             metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the \
             \"seccompProfile\" field instead; metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: \
             deprecated since v1.30; use the \"appArmorProfile\" field instead; spec.containers[0].ports[0]: hostIP set \
             without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:1.1.1.1}",
        ),
    ] {
        let object = if kind == "Pod" { prepared(group, "v1", kind, &object) } else { object };
        assert_eq!(warnings(group, "v1", kind, &object, None).join("; "), expected, "{kind}");
    }
}

#[test]
fn old_ways_to_say_it_are_warned_of() {
    for (group, kind, object, expected) in [
        (
            "",
            "PersistentVolume",
            json!({
                "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "x"}},
                "spec": {"persistentVolumeReclaimPolicy": "Recycle", "rbd": {}},
            }),
            "metadata.annotations[volume.beta.kubernetes.io/storage-class]: deprecated since v1.8; use \
             \"storageClassName\" attribute instead; spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is \
             deprecated. Instead, the recommended approach is to use dynamic provisioning.; spec.rbd: deprecated in \
             v1.28, non-functional in v1.31+",
        ),
        (
            "storage.k8s.io",
            "StorageClass",
            json!({"allowedTopologies": [{"matchLabelExpressions": [
                {"key": "failure-domain.beta.kubernetes.io/zone", "values": ["x"]},
            ]}]}),
            "allowedTopologies[0].matchLabelExpressions[0].key: deprecated since v1.17; use \
             \"topology.kubernetes.io/zone\" instead",
        ),
        (
            "",
            "Secret",
            json!({"type": "kubernetes.io/tls", "data": {"tls.crt": "eA==", "tls.key": ""}}),
            "tls: failed to find any PEM data in certificate input",
        ),
        (
            "",
            "Node",
            json!({"spec": {"externalID": "x"}}),
            "spec.externalID: this field is deprecated, and is unused by Kubernetes",
        ),
        (
            "storage.k8s.io",
            "CSIDriver",
            json!({"spec": {"tokenRequests": [{"audience": "a"}]}}),
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes",
        ),
        (
            "discovery.k8s.io",
            "EndpointSlice",
            json!({"addressType": "FQDN"}),
            "spec.addressType: FQDN endpoints are deprecated",
        ),
    ] {
        assert_eq!(warnings(group, "v1", kind, &object, None).join("; "), expected, "{kind}");
    }
}

#[test]
fn quotas_slices_and_classes_warn() {
    let old = "beta.kubernetes.io/os";
    for (group, kind, object, expected) in [
        (
            "",
            "ResourceQuota",
            json!({"spec": {"hard": {"cpu": "2", "limits.cpu": "1", "requests.memory": "1", "limits.memory": "2"}}}),
            "ResourceQuota cpu (2) should be less than limits.cpu (1)",
        ),
        ("", "ResourceQuota", json!({"spec": {"hard": {"storage": "2", "limits.storage": "1"}}}), ""),
        (
            "resource.k8s.io",
            "ResourceSlice",
            json!({"spec": {"driver": "A"}}),
            "spec.driver: driver names should be lowercase; \"A\" contains uppercase characters",
        ),
        (
            "node.k8s.io",
            "RuntimeClass",
            json!({"scheduling": {"nodeSelector": {old: "linux"}}}),
            "scheduling.nodeSelector: deprecated since v1.14; use \"kubernetes.io/os\" instead",
        ),
        (
            "storage.k8s.io",
            "CSIStorageCapacity",
            json!({"nodeTopology": {"matchLabels": {old: "linux"}, "matchExpressions": [{"key": old}]}}),
            "nodeTopology.matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use \
             \"kubernetes.io/os\" instead; nodeTopology.matchLabels.beta.kubernetes.io/os: deprecated since v1.14; \
             use \"kubernetes.io/os\" instead",
        ),
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy",
            json!({"metadata": {"name": "a.static.k8s.io"}}),
            "metadata.name: names ending with \".static.k8s.io\" are reserved for static manifest-based \
             configurations and cannot be managed via the API",
        ),
    ] {
        assert_eq!(warnings(group, "v1", kind, &object, None).join("; "), expected, "{kind}");
    }
}
