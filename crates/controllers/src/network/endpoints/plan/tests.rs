//! Tables of cases.

use super::*;
use serde_json::{Value, json};

fn service(more: &Value) -> Service {
    let mut service = json!({
        "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}});
    for (key, value) in more.as_object().into_iter().flatten() {
        service["spec"][key.as_str()] = value.clone();
    }
    serde_json::from_value(service).unwrap()
}

fn pod(number: usize, is_ready: bool) -> Arc<Pod> {
    let pod = json!({
        "metadata": {"name": format!("web-{number:04}"), "namespace": "default", "uid": format!("p{number}")},
        "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "podIP": "x",
            "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
            "podIPs": [{"ip": format!("10.1.{}.{}", number / 250, number % 250)}, {"ip": format!("fd00::{number}")}]}});
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn addresses(endpoints: &Endpoints) -> (Vec<String>, Vec<String>) {
    let subsets = endpoints.subsets.iter().flatten();
    let ips = |of: &dyn Fn(&EndpointSubset) -> Option<Vec<EndpointAddress>>| {
        subsets.clone().flat_map(|subset| of(subset).unwrap_or_default()).map(|address| address.ip).collect()
    };
    (ips(&|subset| subset.addresses.clone()), ips(&|subset| subset.not_ready_addresses.clone()))
}

#[test]
fn ready_and_other_pods_are_told_apart() {
    let pods = [pod(1, true), pod(2, false)];
    for (more, ready, not_ready) in [
        (json!({}), vec!["10.1.0.1"], vec!["10.1.0.2"]),
        (json!({"publishNotReadyAddresses": true}), vec!["10.1.0.1", "10.1.0.2"], vec![]),
        (json!({"ipFamilies": ["IPv6", "IPv4"]}), vec!["fd00::1"], vec!["fd00::2"]),
        (json!({"ports": null}), vec![], vec![]),
        (json!({"ports": null, "clusterIP": "None"}), vec!["10.1.0.1"], vec!["10.1.0.2"]),
    ] {
        let wanted = plan(&service(&more), &pods, None, None).unwrap();
        let found = addresses(&wanted);
        assert_eq!((found.0, found.1), (strings(&ready), strings(&not_ready)), "{more}");
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn right_endpoints_are_not_written_and_labels_are_kept_right() {
    let pods = [pod(1, true)];
    let current = plan(&service(&json!({})), &pods, None, None).unwrap();
    assert_eq!(current.labels()[MANAGED_BY], CONTROLLER);
    assert_eq!(plan(&service(&json!({})), &pods, Some(&current), None), None);
    let mut relabelled = service(&json!({}));
    relabelled.metadata.labels = None;
    let wanted = plan(&relabelled, &pods, Some(&current), None).unwrap();
    assert!(!wanted.labels().contains_key("app"));
    let headless = plan(&service(&json!({"clusterIP": "None"})), &pods, None, None).unwrap();
    assert_eq!(headless.labels()[HEADLESS], "");
}

#[test]
fn a_thousand_addresses_are_the_most_and_ready_ones_go_first() {
    for (ready, not_ready, expected, is_over) in
        [(1000, 0, (1000, 0), false), (900, 200, (900, 100), true), (1200, 50, (1000, 0), true)]
    {
        let pods: Vec<_> = (0..ready + not_ready).map(|number| pod(number, number < ready)).collect();
        let wanted = plan(&service(&json!({})), &pods, None, None).unwrap();
        let found = addresses(&wanted);
        assert_eq!((found.0.len(), found.1.len()), expected);
        let annotation = wanted.annotations().get(OVER_CAPACITY).map(String::as_str);
        assert_eq!(annotation, is_over.then_some("truncated"));
        assert_eq!(plan(&service(&json!({})), &pods, Some(&wanted), None), None, "settled");
    }
}
