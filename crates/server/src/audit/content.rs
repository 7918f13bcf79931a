//! Request and response bodies in any encoding, as JSON for the log.

use crate::input::Encoding;
use schema::{proto, yaml};
use serde_json::Value;

/// Longer objects are left out of the log.
// Kubernetes: its limit on events, where it truncates.
const MAX_BYTES: usize = 10 << 20;

/// The object of a body, if it is one.
pub(super) fn read(body: &[u8], encoding: Encoding) -> Option<Value> {
    if body.is_empty() || body.len() > MAX_BYTES {
        return None;
    }
    match encoding {
        Encoding::Json => serde_json::from_slice(body).ok(),
        Encoding::Yaml => serde_json::from_slice(&yaml::to_json(body).ok()?.json).ok(),
        Encoding::Protobuf => {
            let envelope = proto::Envelope::open(body).ok()?;
            let (version, kind) = (&*envelope.api_version, &*envelope.kind);
            let (group, short) = version.rsplit_once('/').unwrap_or(("", version));
            let types = kinds::types();
            let (of, _) = types.kind(group, short, kind)?;
            let mut object = proto::decode(types, of, &envelope.raw).ok()?;
            object["apiVersion"] = version.into();
            object["kind"] = kind.into();
            Some(object)
        }
    }
}

/// Removes managedFields from an object, the items of a list, or the rows of a table.
pub(super) fn without_owners(object: &mut Value) {
    let forget = |object: &mut Value| {
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    };
    forget(object);
    for items in ["items", "rows"] {
        for item in object.get_mut(items).and_then(Value::as_array_mut).into_iter().flatten() {
            forget(if items == "rows" { &mut item["object"] } else { item });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn managed_fields_are_removed_from_objects_lists_and_tables() {
        let owned = json!({"metadata": {"name": "a", "managedFields": [{}]}});
        let plain = json!({"metadata": {"name": "a"}});
        for (mut object, expected) in [
            (owned.clone(), plain.clone()),
            (json!({"items": [owned]}), json!({"items": [plain]})),
            (json!({"rows": [{"object": owned}]}), json!({"rows": [{"object": plain}]})),
            (json!({"status": "Success"}), json!({"status": "Success"})),
        ] {
            without_owners(&mut object);
            assert_eq!(object, expected);
        }
    }

    #[test]
    fn every_encoding_is_decoded() {
        let wanted = json!({"apiVersion": "v1", "kind": "Status", "code": 4});
        let types = kinds::types();
        let (of, _) = types.kind("", "v1", "Status").unwrap();
        let message = proto::encode(types, of, &wanted);
        let sealed = proto::Envelope::new("v1", "Status", &message).seal();
        for (body, encoding) in [
            (wanted.to_string().into_bytes(), Encoding::Json),
            (b"apiVersion: v1\nkind: Status\ncode: 4\n".to_vec(), Encoding::Yaml),
            (sealed, Encoding::Protobuf),
        ] {
            let read = read(&body, encoding).unwrap();
            assert_eq!((&read["kind"], &read["code"]), (&json!("Status"), &json!(4)), "{encoding:?}: {read}");
        }
        assert_eq!(read(b"{", Encoding::Json), None);
    }
}
