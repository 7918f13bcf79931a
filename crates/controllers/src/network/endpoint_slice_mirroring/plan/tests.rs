//! Tables of cases.

use super::*;
use serde_json::{Value, json};

fn endpoints(subsets: &Value) -> Endpoints {
    let endpoints = json!({
        "metadata": {"name": "db", "namespace": "default", "uid": "e", "labels": {"tier": "back"},
            "annotations": {"note": "mine", trigger_time::ANNOTATION: "x", LAST_APPLIED: "{}"}},
        "subsets": subsets});
    serde_json::from_value(endpoints).unwrap()
}

fn stored(plan: MirrorPlan) -> Vec<Arc<EndpointSlice>> {
    let named = plan.writes.create.into_iter().enumerate().map(|(number, mut slice)| {
        slice.metadata.name = Some(format!("db-{number}"));
        Arc::new(slice)
    });
    named.collect()
}

#[test]
fn a_slice_mirrors_each_set_of_ports_and_each_family() {
    let subsets = json!([{"addresses": [{"ip": "10.0.0.1", "hostname": "a"}, {"ip": "fd00::1"}],
        "notReadyAddresses": [{"ip": "10.0.0.2"}], "ports": [{"port": 5432}]}]);
    let existing = stored(plan(&endpoints(&subsets), &[]));
    let found: Vec<_> = existing
        .iter()
        .map(|slice| (slice.address_type.as_str(), slice.endpoints.as_ref().unwrap().len()))
        .collect();
    assert_eq!(found, [("IPv4", 2), ("IPv6", 1)]);
    let slice = &existing[0];
    assert_eq!(slice.labels()["tier"], "back");
    assert_eq!(
        (slice.labels()[MANAGED_BY].as_str(), slice.labels()[SERVICE_NAME].as_str()),
        (CONTROLLER, "db")
    );
    assert_eq!(slice.annotations().keys().collect::<Vec<_>>(), ["note"]);
    assert_eq!(plan(&endpoints(&subsets), &existing), MirrorPlan::default(), "settled");
    let fewer = json!([{"addresses": [{"ip": "10.0.0.1", "hostname": "a"}], "ports": [{"port": 5432}]}]);
    let changed = plan(&endpoints(&fewer), &existing).writes;
    assert_eq!((changed.create.len(), changed.update.len(), changed.delete.len()), (0, 1, 1));
    let moved = json!([{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 1}]}]);
    let changed = plan(&endpoints(&moved), &existing[..1]).writes;
    assert_eq!((changed.create.len(), changed.update.len(), changed.delete.len()), (0, 1, 0), "used again");
}

#[test]
fn what_is_not_mirrored_is_told() {
    let many: Vec<Value> =
        (0..1002).map(|it| json!({"ip": format!("10.0.{}.{}", it / 250, it % 250)})).collect();
    let plan = plan(&endpoints(&json!([{"addresses": many, "ports": [{"port": 1}]}])), &[]);
    assert_eq!(plan.writes.create[0].endpoints.as_ref().unwrap().len(), 1000);
    let note = "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. \
        2 addresses were skipped";
    assert_eq!(plan.warnings, [("TooManyAddressesToMirror", note.to_owned())]);
}
