//! Services: what an update keeps, what a change of type drops, and which families follow.

use serde_json::{Value, json};

use super::{created, updated};
use crate::strategy::service_address::choose_families;

fn balanced() -> Value {
    json!({
        "type": "LoadBalancer", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack", "externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": true,
        "ports": [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30002}],
    })
}

#[test]
fn an_update_keeps_what_was_allocated() {
    let old = json!({"spec": balanced()});
    let new = json!({"spec": {
        "type": "NodePort", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30001}],
    }});
    let expected = json!({
        "type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"],
        "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30001}],
    });
    assert_eq!(updated("", "services", &old, new)["spec"], expected, "the number of a is taken by b");
}

#[test]
fn an_update_without_allocation_of_node_ports_gives_up_those_it_leaves_out() {
    let old = json!({"spec": balanced()});
    let mut new = old.clone();
    new["spec"]["allocateLoadBalancerNodePorts"] = json!(false);
    let kept = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30002}]);
    new["spec"]["ports"] = kept.clone();
    assert_eq!(updated("", "services", &old, new)["spec"]["ports"], kept);
}

#[test]
fn a_change_of_type_drops_what_the_type_brought() {
    let old = json!({"metadata": {}, "spec": balanced(), "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}});
    for (of_type, expected) in [
        (
            "ClusterIP",
            json!({
                "type": "ClusterIP", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}],
            }),
        ),
        (
            "ExternalName",
            json!({"type": "ExternalName", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]}),
        ),
    ] {
        let mut new = old.clone();
        new["spec"]["type"] = json!(of_type);
        let after = updated("", "services", &old, new);
        assert_eq!((&after["spec"], after.get("status")), (&expected, None), "{of_type}");
    }
    let mut new = old.clone();
    new["spec"]["selector"] = json!({"a": "b"});
    assert_eq!(updated("", "services", &old, new.clone()), new);
}

#[test]
fn one_address_or_many_say_the_same() {
    assert_eq!(
        created("", "services", json!({"spec": {"clusterIP": "None"}}))["spec"],
        json!({"clusterIP": "None", "clusterIPs": ["None"]})
    );
    let old = json!({"spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}});
    for (given, expected) in [
        (json!({"clusterIP": "10.0.0.1"}), json!(["10.0.0.1"])),
        (json!({"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.1"]}), json!(["10.0.0.2"])),
        (json!({"clusterIP": "10.0.0.2", "clusterIPs": ["10.0.0.3"]}), json!(["10.0.0.3"])),
    ] {
        assert_eq!(
            updated("", "services", &old, json!({"spec": given.clone()}))["spec"]["clusterIPs"],
            expected,
            "{given}"
        );
    }
}

#[test]
fn families_follow_from_policy_and_address() {
    for (given, cluster, policy, families) in [
        (json!({}), &["IPv4"][..], json!("SingleStack"), json!(["IPv4"])),
        (json!({}), &["IPv6", "IPv4"], json!("SingleStack"), json!(["IPv6"])),
        (json!({"ipFamilyPolicy": "PreferDualStack"}), &["IPv4"], json!("PreferDualStack"), json!(["IPv4"])),
        (
            json!({"ipFamilyPolicy": "PreferDualStack"}),
            &["IPv4", "IPv6"],
            json!("PreferDualStack"),
            json!(["IPv4", "IPv6"]),
        ),
        (
            json!({"clusterIP": "None", "clusterIPs": ["None"]}),
            &["IPv4"],
            json!("RequireDualStack"),
            json!(["IPv4", "IPv6"]),
        ),
        (
            json!({"clusterIP": "None", "selector": {"a": "b"}}),
            &["IPv4"],
            json!("SingleStack"),
            json!(["IPv4"]),
        ),
        (json!({"clusterIPs": ["fd00::1"]}), &["IPv4", "IPv6"], json!("SingleStack"), json!(["IPv6"])),
        (json!({"type": "ExternalName"}), &["IPv4"], json!(null), json!(null)),
    ] {
        let mut service = json!({"spec": given.clone()});
        choose_families(&mut service, None, cluster);
        assert_eq!(
            (&service["spec"]["ipFamilyPolicy"], &service["spec"]["ipFamilies"]),
            (&policy, &families),
            "{given}"
        );
    }
    let old = json!({"spec": {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"], "clusterIPs": ["10.0.0.1", "fd00::1"]}});
    let mut single = old.clone();
    single["spec"]["ipFamilyPolicy"] = json!("SingleStack");
    choose_families(&mut single, Some(&old), &["IPv4", "IPv6"]);
    assert_eq!(
        (&single["spec"]["ipFamilies"], &single["spec"]["clusterIPs"]),
        (&json!(["IPv4"]), &json!(["10.0.0.1"]))
    );
}
