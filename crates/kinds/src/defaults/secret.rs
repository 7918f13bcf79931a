//! What a secret says in plain text, moved to where it is kept: in base64.

use serde_json::Value;

use super::member::{self, Members};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Kubernetes: `stringData` is only ever written, and wins over `data`.
pub(super) fn secret(secret: &mut Members) {
    for value in member::present(secret, "data").into_iter().flat_map(Members::values_mut) {
        if value.is_null() {
            *value = "".into();
        }
    }
    let Some(Value::Object(plain)) = secret.remove("stringData") else { return };
    for (name, text) in plain {
        let encoded = base64(text.as_str().unwrap_or_default().as_bytes());
        member::made(secret, "data").insert(name, encoded.into());
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().enumerate().fold(0u32, |bits, (at, byte)| bits | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_becomes_base64() {
        for (text, expected) in
            [("", ""), ("u", "dQ=="), ("us", "dXM="), ("user", "dXNlcg=="), ("\u{3fff}~?", "47-_fj8=")]
        {
            assert_eq!(
                super::base64(text.as_bytes()),
                expected.replace('-', "+").replace('_', "/"),
                "{text:?}"
            );
        }
    }
}
