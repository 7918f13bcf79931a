//! What is read from an object's JSON, and what of it is kept.

use super::*;
use crate::cache::cut::DroppedFields;
use k8s_openapi::api::core::v1::ConfigMap;

pub(crate) fn reader() -> Reader {
    let dropped = DroppedFields::new([["metadata".to_owned(), "managedFields".to_owned()]]);
    let shape = Shape {
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        metadata_only: false,
        dropped,
        transforms: Vec::new(),
    };
    Reader::new(Arc::new(shape))
}

/// An object in namespace `prod`, written `name:uid@version`.
pub(crate) fn item(text: &str) -> Item {
    let (name, rest) = text.split_once(':').unwrap();
    let (uid, version) = rest.split_once('@').unwrap();
    let json = format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"prod","uid":"{uid}","resourceVersion":"{version}"}}}}"#
    );
    reader().read(&json).unwrap()
}

#[test]
fn an_item_has_its_metadata_and_decodes_to_its_type() {
    let json = r#"{"metadata":{"name":"web","namespace":"prod","uid":"u-1","resourceVersion":"42","generation":3,
        "labels":{"app":"web"},"annotations":{"note":"a\"b"},"managedFields":[{"manager":"m"}],
        "ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"o-1"},
            {"apiVersion":"v1","kind":"Pod","name":"q","uid":"o-2","controller":true}]},
        "data":{"key":"value"}}"#;
    let item = reader().read(json).unwrap();
    assert_eq!(item.key(), &Key::parse("prod/web"));
    assert_eq!((item.uid(), item.resource_version(), item.generation()), ("u-1", 42, Some(3)));
    assert_eq!(item.labels().get("app"), Some("web"));
    assert_eq!(item.annotations().get("note"), Some("a\"b"));
    assert_eq!(item.owner_references().len(), 2);
    assert_eq!(item.controller_uid().as_deref(), Some("o-2"));
    assert!(!item.json().contains("managedFields"));
    let typed: ConfigMap = item.decode().unwrap();
    assert_eq!(typed.data.unwrap()["key"], "value");
    assert!(typed.metadata.managed_fields.is_none());
    assert_eq!(item.decode::<k8s_openapi::api::core::v1::Pod>().unwrap_err().key, Key::parse("prod/web"));
}

#[test]
fn an_object_that_nothing_keeps_any_longer_is_final() {
    let dying = r#""deletionTimestamp":"2026-01-01T00:00:00Z""#;
    for (more, is_deleting, is_final) in [
        (String::new(), false, false),
        (r#","finalizers":[]"#.to_owned(), false, false),
        (format!(",{dying}"), true, true),
        (format!(r#",{dying},"finalizers":["a/b"]"#), true, false),
        (format!(r#",{dying},"deletionGracePeriodSeconds":30"#), true, false),
        (format!(r#",{dying},"deletionGracePeriodSeconds":0,"finalizers":[]"#), true, true),
    ] {
        let json = format!(r#"{{"metadata":{{"name":"web","resourceVersion":"1"{more}}}}}"#);
        let item = reader().read(&json).unwrap();
        assert_eq!((item.is_deleting(), item.is_final()), (is_deleting, is_final), "{json}");
    }
}

#[test]
fn what_cannot_be_kept_is_refused() {
    for (json, expected) in [
        ("[]", "not the JSON of an object"),
        (r#"{"metadata":{"resourceVersion":"1"}}"#, "the metadata cannot be read"),
        (r#"{"metadata":{"name":"web"}}"#, "the metadata cannot be read"),
        (
            r#"{"metadata":{"name":"web","resourceVersion":"x"}}"#,
            "web has a resourceVersion that is not a number",
        ),
    ] {
        assert_eq!(reader().read(json).unwrap_err().to_string(), expected, "{json}");
    }
}
