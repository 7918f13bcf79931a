//! Everything around the pods: services, volumes, policies, definitions.

use serde_json::json;

use super::check;

#[test]
fn a_service_says_where_its_traffic_goes() {
    check(
        "v1",
        "Service",
        json!({"spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP", "targetPort": "dns"}]}}),
        json!({"spec": {
            "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
            "ports": [
                {"port": 80, "protocol": "TCP", "targetPort": 80},
                {"port": 53, "protocol": "UDP", "targetPort": "dns"},
            ],
        }}),
    );
    check(
        "v1",
        "Service",
        json!({"spec": {"type": "LoadBalancer", "sessionAffinity": "ClientIP"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}}}),
        json!({
            "spec": {
                "type": "LoadBalancer", "sessionAffinity": "ClientIP", "externalTrafficPolicy": "Cluster",
                "internalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true,
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
            },
            "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4", "ipMode": "VIP"}, {"hostname": "h"}]}},
        }),
    );
    check(
        "v1",
        "Service",
        json!({"spec": {"type": "ExternalName", "externalName": "e", "sessionAffinityConfig": {"clientIP": {}}}}),
        json!({"spec": {"type": "ExternalName", "externalName": "e", "sessionAffinity": "None"}}),
    );
}

#[test]
fn core_kinds_say_what_they_are() {
    for (kind, given, expected) in [
        ("Secret", json!({}), json!({"type": "Opaque"})),
        (
            "Secret",
            json!({"type": "t", "data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "z"}}),
            json!({"type": "t", "data": {"a": "eg==", "b": "eQ=="}}),
        ),
        (
            "Namespace",
            json!({"metadata": {"name": "n"}}),
            json!({"metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}}, "status": {"phase": "Active"}}),
        ),
        (
            "Namespace",
            json!({"metadata": {"generateName": "n-"}}),
            json!({"metadata": {"generateName": "n-"}, "status": {"phase": "Active"}}),
        ),
        (
            "Node",
            json!({"status": {"capacity": {"cpu": "1"}}}),
            json!({"status": {"capacity": {"cpu": "1"}, "allocatable": {"cpu": "1"}}}),
        ),
        ("Node", json!({}), json!({})),
        ("Node", json!({"spec": {"podCIDR": "a"}}), json!({"spec": {"podCIDR": "a", "podCIDRs": ["a"]}})),
        (
            "Node",
            json!({"spec": {"podCIDRs": ["a", "b"]}}),
            json!({"spec": {"podCIDR": "a", "podCIDRs": ["a", "b"]}}),
        ),
        (
            "Node",
            json!({"spec": {"podCIDR": "c", "podCIDRs": ["a"]}}),
            json!({"spec": {"podCIDR": "c", "podCIDRs": ["c"]}}),
        ),
        (
            "PersistentVolumeClaim",
            json!({}),
            json!({"spec": {"volumeMode": "Filesystem"}, "status": {"phase": "Pending"}}),
        ),
        (
            "PersistentVolume",
            json!({"spec": {"hostPath": {"path": "/"}}}),
            json!({
                "spec": {"hostPath": {"path": "/", "type": ""}, "persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
                "status": {"phase": "Pending"},
            }),
        ),
        (
            "Endpoints",
            json!({"subsets": [{"ports": [{"port": 1}]}]}),
            json!({"subsets": [{"ports": [{"port": 1, "protocol": "TCP"}]}]}),
        ),
        (
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1"}}, {"type": "Pod", "max": {"cpu": "2"}}]}}),
            json!({"spec": {"limits": [
                {
                    "type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1"}, "default": {"cpu": "2"},
                    "defaultRequest": {"cpu": "2", "memory": "1"},
                },
                {"type": "Pod", "max": {"cpu": "2"}},
            ]}}),
        ),
        ("ResourceQuota", json!({"spec": {"hard": {"cpu": "1u"}}}), json!({"spec": {"hard": {"cpu": "1m"}}})),
    ] {
        check("v1", kind, given, expected);
    }
}

#[test]
fn networking_access_and_storage_kinds_get_defaults() {
    let rbac = "rbac.authorization.k8s.io";
    for (api_version, kind, given, expected) in [
        ("networking.k8s.io/v1", "NetworkPolicy", json!({}), json!({"spec": {"policyTypes": ["Ingress"]}})),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"egress": [{"ports": [{"port": 1}]}]}}),
            json!({"spec": {"egress": [{"ports": [{"port": 1, "protocol": "TCP"}]}], "policyTypes": ["Ingress", "Egress"]}}),
        ),
        (
            "networking.k8s.io/v1",
            "IngressClass",
            json!({"spec": {"parameters": {"kind": "k"}}}),
            json!({"spec": {"parameters": {"kind": "k", "scope": "Cluster"}}}),
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"rules": [{"host": "h"}]}}),
            json!({"spec": {"rules": [{"host": "h"}]}}),
        ),
        (
            "rbac.authorization.k8s.io/v1",
            "RoleBinding",
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}]}),
            json!({"roleRef": {"kind": "Role", "name": "r", "apiGroup": rbac}, "subjects": [{"kind": "User", "apiGroup": rbac}, {"kind": "ServiceAccount"}]}),
        ),
        (
            "storage.k8s.io/v1",
            "StorageClass",
            json!({}),
            json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}),
        ),
        (
            "storage.k8s.io/v1",
            "CSIDriver",
            json!({"spec": {"attachRequired": false}}),
            json!({"spec": {
                "attachRequired": false, "podInfoOnMount": false, "storageCapacity": false,
                "fsGroupPolicy": "ReadWriteOnceWithFSType", "volumeLifecycleModes": ["Persistent"],
                "requiresRepublish": false, "seLinuxMount": false,
            }}),
        ),
    ] {
        check(api_version, kind, given, expected);
    }
}

#[test]
fn kinds_of_scheduling_flow_control_and_devices_get_defaults() {
    for (api_version, kind, given, expected) in [
        (
            "scheduling.k8s.io/v1",
            "PriorityClass",
            json!({"value": 1}),
            json!({"value": 1, "preemptionPolicy": "PreemptLowerPriority"}),
        ),
        (
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"ports": [{"port": 1}]}),
            json!({"ports": [{"port": 1, "name": "", "protocol": "TCP"}]}),
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            json!({}),
            json!({"spec": {"matchingPrecedence": 1000}}),
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "PriorityLevelConfiguration",
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {"queues": 9}}}}}),
            json!({"spec": {"type": "Limited", "limited": {
                "nominalConcurrencyShares": 30, "lendablePercent": 0,
                "limitResponse": {"type": "Queue", "queuing": {"queues": 9, "handSize": 8, "queueLengthLimit": 50}},
            }}}),
        ),
        ("authentication.k8s.io/v1", "TokenRequest", json!({}), json!({"spec": {"expirationSeconds": 3600}})),
        (
            "resource.k8s.io/v1",
            "ResourceClaim",
            json!({"spec": {"devices": {"requests": [
                {"name": "a", "exactly": {"tolerations": [{"key": "k"}]}},
                {"name": "b", "firstAvailable": [{"allocationMode": "All"}]},
            ]}}}),
            json!({"spec": {"devices": {"requests": [
                {"name": "a", "exactly": {"allocationMode": "ExactCount", "count": 1, "tolerations": [{"key": "k", "operator": "Equal"}]}},
                {"name": "b", "firstAvailable": [{"allocationMode": "All"}]},
            ]}}}),
        ),
        (
            "node.k8s.io/v1",
            "RuntimeClass",
            json!({"overhead": {"podFixed": {"cpu": "1n"}}}),
            json!({"overhead": {"podFixed": {"cpu": "1m"}}}),
        ),
        ("policy/v1", "PodDisruptionBudget", json!({"spec": {}}), json!({"spec": {}})),
    ] {
        check(api_version, kind, given, expected);
    }
}

#[test]
fn extensions_say_how_they_are_called() {
    let selectors = json!({"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}});
    let mut webhook = selectors.clone();
    webhook["failurePolicy"] = json!("Fail");
    webhook["timeoutSeconds"] = json!(10);
    webhook["rules"] = json!([{"operations": ["*"], "scope": "*"}]);
    webhook["clientConfig"] = json!({"service": {"name": "s", "port": 443}});
    let given =
        json!({"webhooks": [{"rules": [{"operations": ["*"]}], "clientConfig": {"service": {"name": "s"}}}]});
    let group = "admissionregistration.k8s.io/v1";
    check(group, "ValidatingWebhookConfiguration", given.clone(), json!({"webhooks": [webhook]}));
    webhook["reinvocationPolicy"] = json!("Never");
    check(group, "MutatingWebhookConfiguration", given, json!({"webhooks": [webhook]}));
    let mut constraints = selectors;
    constraints["resourceRules"] = json!([{"resources": ["r"], "scope": "*"}]);
    check(
        group,
        "ValidatingAdmissionPolicy",
        json!({"spec": {"matchConstraints": {"resourceRules": [{"resources": ["r"]}]}}}),
        json!({"spec": {"failurePolicy": "Fail", "matchConstraints": constraints}}),
    );
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        json!({"spec": {"names": {"kind": "Widget"}, "versions": [{"name": "v1"}, {"name": "v2", "storage": true}]}}),
        json!({
            "spec": {
                "names": {"kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
                "conversion": {"strategy": "None"}, "versions": [{"name": "v1"}, {"name": "v2", "storage": true}],
            },
            "status": {"storedVersions": ["v2"]},
        }),
    );
    check(
        "apiregistration.k8s.io/v1",
        "APIService",
        json!({"spec": {"service": {"name": "s"}}}),
        json!({"spec": {"service": {"name": "s", "port": 443}}}),
    );
}
