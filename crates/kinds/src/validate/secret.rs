//! Secrets: keys as in ConfigMaps, and what each type must hold.

use api::field::{Error, ErrorList};
use api::name::Format;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use schema::decode::{FieldValidation, decode_any};

use super::at::At;
use super::config_map::{MAX_DATA_BYTES, decoded_len, frozen};

const ACCOUNT: &str = "kubernetes.io/service-account.name";

pub(super) fn body(secret: &At<'_, '_>, errors: &mut ErrorList) {
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
        "kubernetes.io/dockercfg" => docker_config(&data, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => docker_config(&data, ".dockerconfigjson", errors),
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

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    new.field("type").immutable(errors, &old.field("type"));
    frozen(new, old, &["data"], errors);
}

fn docker_config(data: &At<'_, '_>, key: &str, errors: &mut ErrorList) {
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

/// The decoder has checked the fields of a Secret before; of other text that is no base64, this makes nothing.
pub(super) fn decode_base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}
