//! Each rule's message for a pod, by version, in Kubernetes' words.

use super::*;
use serde_json::json;

fn level(text: &str) -> Standard {
    let (level, version) = text.split_once(':').unwrap();
    let level = if level == "baseline" { SecurityLevel::Baseline } else { SecurityLevel::Restricted };
    let version = version
        .strip_prefix("v1.")
        .map_or(StandardVersion::Latest, |minor| StandardVersion::Minor(minor.parse().unwrap()));
    Standard { level, version }
}

/// A pod that passes every rule, with `change` merged in.
fn pod_with(change: &Value) -> Value {
    let secure = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    let container = |name: &str| json!({"name": name, "image": "i", "securityContext": secure});
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [container("first")],
        "containers": [container("main")],
    }});
    merge(&mut pod, change);
    pod
}

/// Lists are merged by index, so that a case names only the fields it tests.
fn merge(to: &mut Value, change: &Value) {
    match (to, change) {
        (Value::Object(to), Value::Object(change)) => {
            change.iter().for_each(|(name, value)| merge(to.entry(name).or_insert(Value::Null), value));
        }
        (Value::Array(to), Value::Array(change)) if change.iter().all(Value::is_object) => {
            to.iter_mut().zip(change).for_each(|(to, change)| merge(to, change));
        }
        (to, change) => *to = change.clone(),
    }
}

fn main(security: Value) -> Value {
    json!({"spec": {"containers": [{ "securityContext": security }]}})
}

fn both(security: Value) -> Value {
    let container = json!({ "securityContext": security });
    json!({"spec": {"containers": [container], "initContainers": [container]}})
}

fn check(standard: &str, change: &Value, expected: &str) {
    let pod = pod_with(change);
    let found = violations(level(standard), Pod { metadata: &pod["metadata"], spec: &pod["spec"] });
    assert_eq!(details(&found), expected, "{standard} {change}");
}

#[test]
fn baseline_rejects_known_privilege_escalations() {
    let annotated = |key: &str, value: &str| json!({"metadata": {"annotations": {key: value}}});
    for (change, expected) in [
        (json!({}), ""),
        (
            json!({"spec": {"hostNetwork": true, "hostIPC": true}}),
            "host namespaces (hostNetwork=true, hostIPC=true)",
        ),
        (
            both(json!({"privileged": true})),
            r#"privileged (containers "first", "main" must not set securityContext.privileged=true)"#,
        ),
        (
            main(json!({"capabilities": {"add": ["SYS_ADMIN", "NET_ADMIN", "CHOWN"]}})),
            r#"non-default capabilities (container "main" must not include "NET_ADMIN", "SYS_ADMIN" in securityContext.capabilities.add)"#,
        ),
        (
            json!({"spec": {"volumes": [{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "nfs": {}}]}}),
            r#"hostPath volumes (volume "a")"#,
        ),
        (
            json!({"spec": {"containers": [{"ports": [{"hostPort": 80}, {"hostPort": 443}, {"hostPort": 0}]}]}}),
            r#"hostPort (container "main" uses hostPorts 443, 80)"#,
        ),
        (
            json!({"spec": {"containers": [{"livenessProbe": {"httpGet": {"host": "h", "port": 1}}}]}}),
            r#"probe or lifecycle host (container "main" uses probe or lifecycle host "h")"#,
        ),
        (
            annotated("container.apparmor.security.beta.kubernetes.io/main", "unconfined"),
            r#"forbidden AppArmor profile (annotation must not set AppArmor profile type to "container.apparmor.security.beta.kubernetes.io/main="unconfined"")"#,
        ),
        (
            json!({"spec": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}}),
            r#"forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")"#,
        ),
        (
            main(json!({"seLinuxOptions": {"type": "spc_t", "user": "u", "role": "r"}})),
            r#"seLinuxOptions (container "main" set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set; role may not be set)"#,
        ),
        (
            main(json!({"procMount": "Unmasked"})),
            r#"procMount (container "main" must not set securityContext.procMount to "Unmasked")"#,
        ),
        (
            json!({"spec": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}}),
            r#"seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")"#,
        ),
        (
            json!({"spec": {"securityContext": {"sysctls": [{"name": "a"}, {"name": "net.ipv4.tcp_rmem"}]}}}),
            "forbidden sysctls (a)",
        ),
        (
            json!({"spec": {"securityContext": {"windowsOptions": {"hostProcess": true}}}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
        (both(json!({"allowPrivilegeEscalation": true, "runAsUser": 0})), ""),
    ] {
        check("baseline:latest", &change, expected);
    }
}

#[test]
fn restricted_requires_hardening_fields() {
    for (change, expected) in [
        (json!({}), ""),
        (
            both(json!({"allowPrivilegeEscalation": null})),
            r#"allowPrivilegeEscalation != false (containers "first", "main" must set securityContext.allowPrivilegeEscalation=false)"#,
        ),
        (
            main(json!({"capabilities": {"drop": ["CHOWN"], "add": ["NET_BIND_SERVICE", "CHOWN"]}})),
            r#"unrestricted capabilities (container "main" must set securityContext.capabilities.drop=["ALL"]; container "main" must not include "CHOWN" in securityContext.capabilities.add)"#,
        ),
        (
            json!({"spec": {"volumes": [{"name": "a", "hostPath": {}}, {"name": "b", "nfs": {}}, {"name": "c"},
                {"name": "d", "image": {}}]}}),
            r#"restricted volume types (volumes "a", "b", "c" use restricted volume types "hostPath", "nfs", "unknown")"#,
        ),
        (
            json!({"spec": {"securityContext": {"runAsNonRoot": false}}}),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
        (
            json!({"spec": {"securityContext": {"runAsNonRoot": null}}}),
            r#"runAsNonRoot != true (pod or containers "first", "main" must set securityContext.runAsNonRoot=true)"#,
        ),
        (
            json!({"spec": {"hostUsers": false, "securityContext": {"runAsNonRoot": null, "runAsUser": 0}}}),
            "",
        ),
        (main(json!({"runAsUser": 0})), r#"runAsUser=0 (container "main" must not set runAsUser=0)"#),
        (
            json!({"spec": {"securityContext": {"seccompProfile": null}}}),
            r#"seccompProfile (pod or containers "first", "main" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")"#,
        ),
        (
            json!({"spec": {"hostUsers": false, "containers": [{"securityContext": {"procMount": "Unmasked"}}]}}),
            r#"procMount (container "main" must not set securityContext.procMount to "Unmasked")"#,
        ),
        (
            json!({"spec": {"hostPID": true, "securityContext": {"runAsUser": 0}}}),
            "host namespaces (hostPID=true), runAsUser=0 (pod must not set runAsUser=0)",
        ),
    ] {
        check("restricted:latest", &change, expected);
    }
}

#[test]
fn a_rule_applies_from_its_version_on() {
    let sysctl = |name: &str| json!({"spec": {"securityContext": {"sysctls": [{"name": name}]}}});
    let windows = json!({"spec": {"os": {"name": "windows"}, "containers": [{"securityContext": null}],
        "securityContext": {"seccompProfile": null}, "initContainers": [{"securityContext": null}]}});
    let unmasked =
        json!({"spec": {"hostUsers": false, "containers": [{"securityContext": {"procMount": "Unmasked"}}]}});
    let engine = main(json!({"seLinuxOptions": {"type": "container_engine_t"}}));
    let probe = json!({"spec": {"containers": [{"livenessProbe": {"tcpSocket": {"host": "h"}}}]}});
    let unconfined =
        json!({"metadata": {"annotations": {"seccomp.security.alpha.kubernetes.io/pod": "unconfined"}}});
    let root = json!({"spec": {"securityContext": {"runAsUser": 0}}});
    for (change, standard, is_allowed) in [
        (sysctl("net.ipv4.ip_local_reserved_ports"), "baseline:v1.26", false),
        (sysctl("net.ipv4.ip_local_reserved_ports"), "baseline:v1.27", true),
        (sysctl("net.ipv4.tcp_keepalive_time"), "baseline:v1.28", false),
        (sysctl("net.ipv4.tcp_keepalive_time"), "baseline:v1.29", true),
        (sysctl("net.ipv4.tcp_wmem"), "baseline:v1.31", false),
        (sysctl("net.ipv4.tcp_wmem"), "baseline:v1.32", true),
        (windows.clone(), "restricted:v1.24", false),
        (windows, "restricted:v1.25", true),
        (unmasked.clone(), "baseline:v1.34", false),
        (unmasked.clone(), "baseline:v1.35", true),
        (unmasked, "restricted:v1.99", false),
        (engine.clone(), "baseline:v1.30", false),
        (engine, "baseline:v1.31", true),
        (probe.clone(), "baseline:v1.33", true),
        (probe, "baseline:v1.34", false),
        (unconfined.clone(), "restricted:v1.18", false),
        (unconfined, "restricted:v1.19", true),
        (root.clone(), "restricted:v1.22", true),
        (root, "restricted:v1.23", false),
        (main(json!({"capabilities": null})), "restricted:v1.21", true),
        (main(json!({"capabilities": null})), "restricted:v1.22", false),
        (main(json!({"allowPrivilegeEscalation": true})), "restricted:v1.7", true),
        (main(json!({"allowPrivilegeEscalation": true})), "restricted:v1.8", false),
    ] {
        let pod = pod_with(&change);
        let found = violations(level(standard), Pod { metadata: &pod["metadata"], spec: &pod["spec"] });
        assert_eq!(found.is_empty(), is_allowed, "{standard} {change}: {}", details(&found));
    }
}
