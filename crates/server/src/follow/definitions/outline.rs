//! Reads a stored definition without its versions, and writes it back with another status.
//!
//! The schemas of its versions are most of a definition and rarely affect its status: their bytes are
//! skipped, and copied unchanged.

use crate::{served::Served, stored::Stored};
use api::object;
use bytes::{BufMut, Bytes, BytesMut};
use kinds::definition::{Definition, condition};
use schema::scan;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct Outline {
    /// Normalized for comparison, without versions.
    pub(super) definition: Value,
    /// The JSON of its spec.
    spec: Bytes,
}

impl Outline {
    /// `None` where the versions affect the status, or differ from the known ones.
    pub(super) fn read(served: &Served, known: &Definition, stored: &Stored) -> Option<Outline> {
        let json = &stored.json;
        let versions = known.find_same_versions(json)?;
        let rest = [&json[..versions.start], b"null", &json[versions.end..]].concat();
        let mut definition: Value = serde_json::from_slice(&rest).ok()?;
        definition["spec"].as_object_mut()?.remove("versions");
        let is_of_old = definition["spec"]["preserveUnknownFields"] == true
            || condition::find(&definition["status"], condition::NON_STRUCTURAL).is_some();
        if is_of_old || object::is_deleting(&definition) {
            return None;
        }
        object::set_resource_version(&mut definition, &stored.revision.to_string());
        served.normalize(&mut definition);
        let spec = scan::start(json, 0, &["spec"])?..scan::closed(json, versions.end, 1)?;
        Some(Outline { definition, spec: json.slice(spec) })
    }

    /// The bytes to store for the changed definition.
    pub(super) fn text_with(&self, served: &Served, mut definition: Value) -> Bytes {
        let json = crate::stored::at_rest(served, &mut definition);
        let place = scan::find(&json, &["spec"]).expect("a definition is encoded with its spec");
        let start = place.as_ptr().addr() - json.as_ptr().addr();
        let mut text = BytesMut::with_capacity(json.len() - place.len() + self.spec.len());
        text.put_slice(&json[..start]);
        text.put_slice(&self.spec);
        text.put_slice(&json[start + place.len()..]);
        text.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;
    use serde_json::json;
    use store::Revision;

    fn stored(served: &Served, definition: &Value) -> Stored {
        let mut definition = definition.clone();
        served.normalize(&mut definition);
        Stored::new(crate::stored::at_rest(served, &mut definition), Revision(7))
    }

    #[test]
    fn only_the_status_changes() {
        let registry = Registry::built_in();
        let served = registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions").unwrap();
        let schema = json!({"type": "object", "description": "\"status\": {} <&> \u{2028}", "properties": {"spec": {}}});
        let versions = json!([{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}]);
        let names = json!({"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "as.b.c", "uid": "u"},
            "spec": {"group": "b.c", "names": names, "scope": "Cluster", "versions": versions},
        });
        let stored_ = stored(served, &definition);
        let known = Definition::parse(&stored_.json).unwrap();
        let outline = Outline::read(served, &known, &stored_).unwrap();
        let mut draft = outline.definition.clone();
        draft["status"] = json!({"storedVersions": ["v1"], "acceptedNames": {"plural": "as", "kind": "A"}});
        let mut expected = definition.clone();
        expected["status"] = draft["status"].clone();
        let text = outline.text_with(served, draft);
        assert_eq!(str::from_utf8(&text), str::from_utf8(&stored(served, &expected).json));
        for (path, value) in [
            ("/spec/preserveUnknownFields", json!(true)),
            ("/spec/versions", json!([])),
            ("/metadata/deletionTimestamp", json!("2026-11-15T09:30:00Z")),
            ("/status/conditions", json!([{"type": "NonStructuralSchema", "status": "True"}])),
        ] {
            let mut changed = expected.clone();
            let (parent, field) = path.rsplit_once('/').unwrap();
            changed.pointer_mut(parent).unwrap()[field] = value;
            assert!(Outline::read(served, &known, &stored(served, &changed)).is_none(), "{path}");
        }
    }
}
