//! Moves the `stringData` of a secret into `data`, in base64.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::member::{self, Members};

/// Kubernetes: `stringData` is only ever written, and wins over `data`.
pub(super) fn secret(secret: &mut Members) {
    for value in member::present(secret, "data").into_iter().flat_map(Members::values_mut) {
        if value.is_null() {
            *value = "".into();
        }
    }
    let Some(Value::Object(plain)) = secret.remove("stringData") else { return };
    for (name, text) in plain {
        let encoded = STANDARD.encode(text.as_str().unwrap_or_default());
        member::made(secret, "data").insert(name, encoded.into());
    }
}
