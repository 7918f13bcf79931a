//! A few words in, everything that the real server would make of them out.

use schema::decode::{FieldValidation, decode};
use schema::encode::normalize;
use serde_json::{Value, json};

use super::default;

mod cluster;
mod pods;
mod workloads;

fn check(api_version: &str, kind: &str, given: Value, expected: Value) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let mut object = given;
    default(group, version, kind, &mut object);
    assert_eq!(object, expected, "{api_version} {kind}:\n{object:#}\nis not\n{expected:#}");
    default(group, version, kind, &mut object);
    assert_eq!(object, expected, "{api_version} {kind}, a second time");
}

#[test]
fn what_the_real_server_answered_has_its_defaults() {
    let recorded =
        include_str!("../../tests/data/recorded.txt").lines().filter(|line| line.contains("\"name\":\"pb-"));
    let answered: Vec<&str> = recorded.chain(crate::bootstrap().map(|(_, object)| object)).collect();
    assert!(answered.len() > 170, "{}", answered.len());
    for json in answered {
        let object: Value = serde_json::from_str(json).unwrap();
        let (api_version, kind) = (object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (id, _) = crate::types().kind(group, version, kind).unwrap();
        let before = decode(crate::types(), id, json.as_bytes(), FieldValidation::Strict).unwrap().value;
        let mut after = before.clone();
        default(group, version, kind, &mut after);
        // The objects of a new cluster are kept without their status.
        if !before["metadata"].as_object().unwrap().contains_key("uid") {
            after.as_object_mut().unwrap().remove("status");
        }
        // Protobuf, from which these were read, does not say what the claims in a template are.
        if let Some(claim) = after.pointer_mut("/spec/volumeClaimTemplates/0").and_then(Value::as_object_mut)
        {
            claim.retain(|name, _| name != "apiVersion" && name != "kind");
        }
        assert_eq!(after, before, "{kind}");

        let mut normal = before;
        normalize(crate::types(), id, &mut normal);
        let mut again = normal.clone();
        default(group, version, kind, &mut again);
        normalize(crate::types(), id, &mut again);
        for object in [&mut normal, &mut again] {
            object
                .pointer_mut("/spec/volumeClaimTemplates")
                .into_iter()
                .for_each(|claims| *claims = Value::Null);
        }
        assert_eq!(again["spec"], normal["spec"], "{kind} in its normal form");
    }
}

#[test]
fn what_is_no_built_in_kind_stays_as_it_is() {
    check("example.com/v1", "Widget", json!({"spec": {}}), json!({"spec": {}}));
    check("v1", "ConfigMap", json!(null), json!({}));
    check("v1", "ConfigMap", json!({"data": {"a": "b"}}), json!({"data": {"a": "b"}}));
}
