//! The hash of a pod template or of a revision's data, as a word that is safe in names and labels.

use serde_json::Value;

/// Kubernetes: letters and digits that form no bad words.
pub(super) const ALPHABET: [u8; 27] = *b"bcdfghjklmnpqrstvwxz2456789";

/// The hash of the data and of the number of earlier collisions.
///
/// It is not the hash that Kubernetes would compute: that one depends on how Go prints structs and writes JSON.
/// ReplicaSets are found by their template and revisions by their data, so nothing but names differ.
pub(super) fn of(data: &Value, collisions: i32) -> String {
    let mut hash = Fnv::default();
    hash.value(data);
    hash.bytes(collisions.to_string().as_bytes());
    hash.0
        .to_string()
        .bytes()
        .map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]))
        .collect()
}

/// FNV-1a with 32 bits.
struct Fnv(u32);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0x811c_9dc5)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        }
    }

    /// The value as JSON with sorted keys: the order of keys must not change a name.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let mut names: Vec<&String> = fields.keys().collect();
                names.sort();
                self.bytes(b"{");
                for name in names {
                    self.bytes(name.as_bytes());
                    self.bytes(b":");
                    self.value(&fields[name]);
                    self.bytes(b",");
                }
                self.bytes(b"}");
            }
            Value::Array(items) => {
                self.bytes(b"[");
                for item in items {
                    self.value(item);
                    self.bytes(b",");
                }
                self.bytes(b"]");
            }
            simple => self.bytes(simple.to_string().as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_hash_stays_the_same_from_version_to_version() {
        // A change here would restart every pod of every StatefulSet and DaemonSet after an update.
        let data =
            json!({"spec": {"template": {"$patch": "replace", "spec": {"containers": [{"name": "c"}]}}}});
        assert_eq!(of(&data, 0), "6757f567bc");
        assert_eq!(of(&data, 1), "66fc578c8d");
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let one: Value = serde_json::from_str(r#"{"a": 1, "b": [true, null, "x"]}"#).unwrap();
        let other: Value = serde_json::from_str(r#"{"b": [true, null, "x"], "a": 1}"#).unwrap();
        assert_eq!(of(&one, 0), of(&other, 0));
        assert_ne!(of(&one, 0), of(&json!({"a": 1, "b": ["x", null, true]}), 0));
    }
}
