//! Tables of cases.

use super::*;
use serde_json::{Value, json};

fn service(more: &Value) -> Service {
    let mut service = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "s", "labels": {"app": "web"}},
        "spec": {"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}});
    for (key, value) in more.as_object().into_iter().flatten() {
        service["spec"][key.as_str()] = value.clone();
    }
    serde_json::from_value(service).unwrap()
}

fn pod(number: usize, more: &Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": format!("web-{number:03}"), "namespace": "default", "uid": format!("p{number}")},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "ports":
            [{"name": "http", "containerPort": 8000 + number % 2, "protocol": "TCP"}]}]},
        "status": {"phase": "Running", "podIP": "x", "conditions": [{"type": "Ready", "status": "True"}],
            "podIPs": [{"ip": format!("10.1.{}.{}", number / 250, number % 250)}, {"ip": format!("fd00::{number}")}]}});
    for (path, value) in more.as_object().into_iter().flatten() {
        *pod.pointer_mut(path).unwrap() = value.clone();
    }
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn run(service: &Service, pods: &[Arc<Pod>], existing: &[Arc<EndpointSlice>]) -> SliceWrites {
    let zones = BTreeMap::from([("n1".to_owned(), Some("a".to_owned()))]);
    plan(&DesiredSlices { service, pods, zones: &zones, trigger_time: None }, existing)
}

/// As the server would have stored them, with names `x-0`, `x-1`, ….
fn stored(writes: SliceWrites) -> Vec<Arc<EndpointSlice>> {
    let named = writes.create.into_iter().enumerate().map(|(number, mut slice)| {
        slice.metadata.name = Some(format!("x-{number}"));
        Arc::new(slice)
    });
    named.collect()
}

fn sizes(slices: &[EndpointSlice]) -> Vec<usize> {
    slices.iter().map(len).collect()
}

#[test]
fn an_endpoint_has_the_address_state_and_place_of_its_pod() {
    let deleting = json!({"/metadata": {"name": "web-000", "namespace": "default", "uid": "p0",
        "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    let not_ready = json!({"/status/conditions": [{"type": "Ready", "status": "False"}]});
    for (of_service, of_pod, expected) in [
        (json!({}), json!({}), json!([true, true, false])),
        (json!({}), not_ready.clone(), json!([false, false, false])),
        (json!({"publishNotReadyAddresses": true}), not_ready, json!([true, false, false])),
        (json!({}), deleting.clone(), json!([false, true, true])),
        (json!({"publishNotReadyAddresses": true}), deleting, json!([true, true, true])),
    ] {
        let writes = run(&service(&of_service), &[pod(0, &of_pod)], &[]);
        let endpoint = &writes.create[0].endpoints.as_ref().unwrap()[0];
        let conditions = endpoint.conditions.clone().unwrap();
        let found = json!([conditions.ready, conditions.serving, conditions.terminating]);
        assert_eq!(found, expected, "{of_service} {of_pod}");
        assert_eq!(endpoint.addresses, ["10.1.0.0"]);
        assert_eq!((endpoint.node_name.as_deref(), endpoint.zone.as_deref()), (Some("n1"), Some("a")));
    }
}

#[test]
fn pods_that_have_ended_or_have_no_address_or_no_node_are_left_out() {
    for more in [
        json!({"/status/phase": "Failed"}),
        json!({"/status": {"phase": "Pending"}}),
        json!({"/spec/nodeName": "gone"}),
    ] {
        let writes = run(&service(&json!({})), &[pod(0, &more)], &[]);
        assert_eq!(sizes(&writes.create), [0], "{more}");
    }
}

#[test]
fn a_service_without_pods_has_an_empty_slice_that_stays() {
    let service = service(&json!({}));
    let existing = stored(run(&service, &[], &[]));
    assert_eq!((existing.len(), len(&existing[0])), (1, 0));
    assert_eq!(run(&service, &[], &existing), SliceWrites::default());
    let writes = run(&service, &[pod(0, &json!({}))], &existing);
    assert_eq!((sizes(&writes.update), writes.create.len(), writes.delete.len()), (vec![1], 0, 0));
    assert_eq!(writes.update[0].metadata.name.as_deref(), Some("x-0"), "the slice is used again");
}

#[test]
fn slices_are_packed_with_as_few_writes_as_possible() {
    let service = service(&json!({}));
    let pods: Vec<_> = (0..250).map(|number| pod(number, &json!({}))).collect();
    let first = run(&service, &pods, &[]);
    assert_eq!(sizes(&first.create), [100, 100, 50]);
    let existing = stored(first);
    assert_eq!(run(&service, &pods, &existing), SliceWrites::default(), "settled");
    // One pod less: only its slice changes.
    let writes = run(&service, &pods[1..], &existing);
    assert_eq!((sizes(&writes.update), writes.create.len(), writes.delete.len()), (vec![99], 0, 0));
    // A pod more goes into the slice with room.
    let more: Vec<_> = (0..251).map(|number| pod(number, &json!({}))).collect();
    let writes = run(&service, &more, &existing);
    assert_eq!((sizes(&writes.update), writes.create.len()), (vec![51], 0));
    // So many more that they do not fit one slice.
    let more: Vec<_> = (0..310).map(|number| pod(number, &json!({}))).collect();
    let writes = run(&service, &more, &existing);
    assert_eq!((sizes(&writes.update), sizes(&writes.create)), (vec![], vec![60]));
}

#[test]
fn pods_with_different_numbers_of_a_named_port_have_different_slices() {
    let port = json!([{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}]);
    let writes = run(&service(&json!({"ports": port})), &[pod(0, &json!({})), pod(1, &json!({}))], &[]);
    let ports: Vec<_> =
        writes.create.iter().map(|slice| slice.ports.as_ref().unwrap()[0].port.unwrap()).collect();
    assert_eq!(ports, [8000, 8001]);
}

#[test]
fn each_family_of_addresses_has_slices_of_its_own() {
    let dual = service(&json!({"ipFamilies": ["IPv4", "IPv6"]}));
    let writes = run(&dual, &[pod(1, &json!({}))], &[]);
    let found: Vec<_> = writes
        .create
        .iter()
        .map(|slice| {
            (slice.address_type.as_str(), slice.endpoints.as_ref().unwrap()[0].addresses[0].as_str())
        })
        .collect();
    assert_eq!(found, [("IPv4", "10.1.0.1"), ("IPv6", "fd00::1")]);
    let existing = stored(writes);
    let writes = run(&service(&json!({})), &[pod(1, &json!({}))], &existing);
    assert_eq!((writes.delete.len(), writes.delete[0].address_type.as_str()), (1, "IPv6"));
}

#[test]
fn labels_of_the_service_are_those_of_its_slices() {
    let headless = service(&json!({"clusterIP": "None"}));
    let existing = stored(run(&headless, &[pod(0, &json!({}))], &[]));
    let expected = [("app", "web"), (MANAGED_BY, CONTROLLER), (SERVICE_NAME, "web"), (HEADLESS, "")];
    let expected: BTreeMap<_, _> = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!(existing[0].labels(), &expected);
    let mut relabelled = headless;
    relabelled.metadata.labels = Some(BTreeMap::from([("tier".to_owned(), "front".to_owned())]));
    let writes = run(&relabelled, &[pod(0, &json!({}))], &existing);
    assert_eq!(writes.update[0].labels().get("tier").map(String::as_str), Some("front"));
    assert!(!writes.update[0].labels().contains_key("app"));
}

#[test]
fn hints_follow_the_traffic_distribution() {
    for (distribution, zones, nodes) in [
        (json!(null), json!(null), json!(null)),
        (json!("PreferClose"), json!([{"name": "a"}]), json!(null)),
        (json!("PreferSameZone"), json!([{"name": "a"}]), json!(null)),
        (json!("PreferSameNode"), json!([{"name": "a"}]), json!([{"name": "n1"}])),
    ] {
        let service = service(&json!({"trafficDistribution": distribution}));
        let existing = stored(run(&self::service(&json!({})), &[pod(0, &json!({}))], &[]));
        let writes = run(&service, &[pod(0, &json!({}))], &existing);
        if zones.is_null() {
            assert_eq!(writes, SliceWrites::default());
            continue;
        }
        let hints = writes.update[0].endpoints.as_ref().unwrap()[0].hints.clone().unwrap();
        assert_eq!((json!(hints.for_zones), json!(hints.for_nodes)), (zones, nodes), "{distribution}");
        let settled: Vec<_> = writes.update.into_iter().map(Arc::new).collect();
        assert_eq!(run(&service, &[pod(0, &json!({}))], &settled), SliceWrites::default(), "{distribution}");
        let back = run(&self::service(&json!({})), &[pod(0, &json!({}))], &settled);
        assert_eq!(back.update[0].endpoints.as_ref().unwrap()[0].hints, None);
    }
}

#[test]
fn slices_of_an_earlier_service_with_the_name_are_replaced() {
    let before = service(&json!({}));
    let existing = stored(run(&before, &[pod(0, &json!({}))], &[]));
    let mut after = before;
    after.metadata.uid = Some("s2".to_owned());
    let writes = run(&after, &[pod(0, &json!({}))], &existing);
    assert_eq!((writes.create.len(), writes.update.len(), writes.delete.len()), (1, 0, 1));
}
