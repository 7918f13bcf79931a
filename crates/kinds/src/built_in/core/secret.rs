//! Secret: keys and values that should stay secret, in base64.

mod key_pair;

use api::field::{Error, ErrorList};
use api::name::Format;
use base64::{Engine as _, engine::general_purpose::STANDARD};
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

/// The decoder has checked the fields of a Secret before; of other text that is no base64, this makes nothing.
pub(crate) fn decode_base64(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

/// Kubernetes: `stringData` is only ever written, and wins over `data`.
fn default_data(secret: &mut Members) {
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
