//! Secret: keys and values that should stay secret, in base64.

mod key_pair;

use api::field::{Error, ErrorList};
use api::name::Format;
use schema::decode::{FieldValidation, decode_any};
use serde_json::Value;

use super::GROUP;
use super::config_map::{MAX_DATA_BYTES, check_frozen, decoded_len};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::selectable::{Selectable, SelectableField};
use crate::strategy::{Circumstances, Strategy};
use crate::validate::at::At;
use crate::validate::validation::{UpdateChecks, Validation};

const ACCOUNT: &str = "kubernetes.io/service-account.name";

pub(crate) static SECRET: BuiltIn = BuiltIn::new(GROUP, "Secret", "secrets")
    .strategy(Strategy::PLAIN.on_update(prepare_update))
    .validation(Validation::new(check).update(UpdateChecks::AS_NEW.compare_first(check_change)))
    .warnings(key_pair::warn)
    .defaults(&[TypeDefaults::of("core.v1.Secret")
        .rule(default_data)
        .values(&[("type", DefaultValue::Text("Opaque"))])])
    .columns(&[NAME, string("Type", Cell::Text("/type")), string("Data", Cell::Count("/data")), AGE])
    .selectable(Selectable::new(&[
        SelectableField::NAME,
        SelectableField::NAMESPACE,
        SelectableField::text("type"),
    ]));

/// A secret keeps its type where an update does not say one.
fn prepare_update(secret: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let before = member::text(old, "type").to_owned();
    if !before.is_empty() {
        member::default_to(secret, "type", before);
    }
}

fn check(secret: &At<'_, '_>, errors: &mut ErrorList) {
    let data = secret.field("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        errors.extend(Format::ConfigMapKey.check(value.path(), key));
        size += decoded_len(value.text());
    }
    if size > MAX_DATA_BYTES {
        errors.push(Error::too_long(data.path(), MAX_DATA_BYTES));
    }
    let require = |key: &str, errors: &mut ErrorList| {
        errors.push(Error::required(&data.path().key(key), ""));
    };
    match secret.text_of("type") {
        "kubernetes.io/service-account-token" => {
            let metadata = secret.field("metadata");
            let annotations = metadata.field("annotations");
            if annotations.text_of(ACCOUNT).is_empty() {
                errors.push(Error::required(&annotations.path().key(ACCOUNT), ""));
            }
        }
        "kubernetes.io/dockercfg" => check_docker_config(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => check_docker_config(&data, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !data.has("username") && !data.has("password") => {
            require("username", errors);
            require("password", errors);
        }
        "kubernetes.io/ssh-auth" if data.text_of("ssh-privatekey").is_empty() => {
            require("ssh-privatekey", errors);
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|key| !data.has(key)) {
                require(key, errors);
            }
        }
        _ => {}
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("type").immutable(errors, &old.field("type"));
    check_frozen(new, old, &["data"], errors);
}

fn check_docker_config(data: &At<'_, '_>, key: &str, errors: &mut ErrorList) {
    let path = data.path().key(key);
    if !data.has(key) {
        errors.push(Error::required(&path, ""));
        return;
    }
    let problem = match decode_any(&decode_base64(data.text_of(key)), FieldValidation::Ignore) {
        Err(problem) => problem.to_string(),
        Ok(read) if read.value.is_object() || read.value.is_null() => return,
        Ok(read) => {
            let found = match read.value {
                serde_json::Value::Array(_) => "array",
                serde_json::Value::String(_) => "string",
                serde_json::Value::Number(_) => "number",
                _ => "bool",
            };
            format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
        }
    };
    errors.push(Error::invalid(&path, "<secret contents redacted>", problem));
}

/// The text is canonical: it has been decoded before.
pub(crate) fn decode_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(decoded_len(text));
    let (mut bits, mut held) = (0_u32, 0);
    for symbol in text.bytes() {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'a'..=b'z' => symbol - b'a' + 26,
            b'0'..=b'9' => symbol - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => continue,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    bytes
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Kubernetes: `stringData` is only ever written, and wins over `data`.
fn default_data(secret: &mut Members) {
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
