//! Decodes patches, and applies them to objects.

use super::{Undecodable, scheme};
use crate::{refusal::Refusal, served::package};
use api::{
    field::{Error, ErrorList, Path},
    kind::GroupKind,
};
use schema::{
    decode::{self, Decoded, FieldValidation},
    encode::encode_any,
    patch::{
        self, PatchError,
        json::{JsonPatch, Reading},
        merge, strategic,
    },
    types::{TypeId, Types},
};
use serde_json::{Value, value::RawValue};
use std::{borrow::Cow, collections::BTreeMap};

/// A patch and its field validation.
#[derive(Debug)]
pub(crate) struct Patch {
    patch_type: PatchType,
    /// The decoded patch and its warnings. Kubernetes: a malformed patch is reported only after its object
    /// was found.
    read: Result<Decoded, Refusal>,
    validation: FieldValidation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatchType {
    Json,
    Merge,
    Strategic,
}

/// The object to patch.
pub(crate) struct Patched<'a, D> {
    /// Its JSON, as in a GET.
    pub(crate) json: &'a [u8],
    /// The type that defines how lists merge; `None` where only JSON is known.
    pub(crate) of: Option<(&'a Types, TypeId)>,
    /// Decodes JSON into an object of the kind, with warnings.
    pub(crate) decode: D,
}

// Kubernetes: patch types in the order of its error text.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
pub(crate) const STRATEGIC: &str = "application/strategic-merge-patch+json";
pub(crate) const PATCH_TYPES: [&str; 4] =
    [APPLY, "application/json-patch+json", "application/merge-patch+json", STRATEGIC];
// Kubernetes: patch types of custom resources, in another order.
pub(crate) const CUSTOM_PATCH_TYPES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", APPLY];

impl Patch {
    pub(crate) fn read(media_type: &str, body: &[u8], validation: FieldValidation) -> Result<Patch, Refusal> {
        let patch_type = match media_type {
            "application/json-patch+json" => PatchType::Json,
            "application/merge-patch+json" => PatchType::Merge,
            STRATEGIC => PatchType::Strategic,
            APPLY => return Err(Refusal::unsupported_media_type(&PATCH_TYPES[1..])),
            _ => return Err(Refusal::by_router(415, "415: Unsupported Media Type")),
        };
        Ok(Patch { patch_type, read: patch_type.read(body, validation), validation })
    }

    /// Applies the patch to an object.
    pub(crate) fn apply<D>(&self, patched: &Patched<'_, D>) -> Result<Decoded, Refusal>
    where
        D: Fn(&[u8], FieldValidation) -> Result<Decoded, Undecodable>,
    {
        let patch = self.read.as_ref().map_err(Clone::clone)?;
        let document = decode::decode_json(patched.json, FieldValidation::Ignore);
        let document = document.map_err(Refusal::internal_error)?.value;
        let result = match (self.patch_type, patched.of) {
            (PatchType::Json, _) => {
                let lenient = self.validation == FieldValidation::Ignore;
                let reading = if lenient { Reading::Lenient } else { Reading::Checked };
                let operations = JsonPatch::decode(&patch.value, reading);
                operations.and_then(|operations| operations.apply(document.clone()))
            }
            (PatchType::Strategic, Some((types, of))) => {
                strategic::apply(types, of, document.clone(), patch.value.clone())
            }
            (PatchType::Merge | PatchType::Strategic, _) => {
                merge::apply(document.clone(), patch.value.clone())
            }
        };
        let result = result.map_err(|error| refuse(&error))?;
        let outcome = self.take(patched, &result);
        // Kubernetes: the error shows the patched object, or for a strategic merge the patch.
        outcome.map_err(|problem| match self.patch_type {
            PatchType::Strategic => unreadable(&patch::printed(&patch.value), &problem),
            _ => unreadable(&text_of_whole(patched.json, &document, &result), &problem),
        })
    }

    /// The result as an object of its kind, or an error text.
    fn take<D>(&self, patched: &Patched<'_, D>, result: &Value) -> Result<Decoded, String>
    where
        D: Fn(&[u8], FieldValidation) -> Result<Decoded, Undecodable>,
    {
        let checks_fields = self.validation != FieldValidation::Ignore;
        let mut result = Cow::Borrowed(result);
        let unknown = match (self.patch_type, patched.of) {
            (PatchType::Strategic, Some((types, of))) => {
                Some(strategic::convert(types, of, result.to_mut())?)
            }
            _ => None,
        };
        let result = &*result;
        let validation = if checks_fields { FieldValidation::Warn } else { FieldValidation::Ignore };
        // Kubernetes: a strategic merge patch cannot change apiVersion and kind.
        let named = unknown.is_some().then(|| with_kind_of(patched.json, result)).flatten();
        let without_version = patched.of.filter(|_| named.is_none() && has_no_version(result));
        let mut decoded = match without_version {
            Some((types, of)) => {
                let given = decode::type_meta(&encode_any(result)).map_err(|error| error.to_string())?;
                check_internal_kind(types, of, &given.kind)?;
                read_without_version(result)
            }
            None => {
                let decoded = (patched.decode)(&spelled(named.as_ref().unwrap_or(result)), validation);
                decoded.map_err(|undecodable| undecodable.problem)?
            }
        };
        if !checks_fields {
            return Ok(Decoded { warnings: Vec::new(), ..decoded });
        }
        let mut all_warnings = self.read.as_ref().map(|patch| patch.warnings.clone()).unwrap_or_default();
        all_warnings.extend(unknown.unwrap_or(decoded.warnings));
        if self.validation == FieldValidation::Strict && !all_warnings.is_empty() {
            return Err(decode::DecodeError::Strict(all_warnings).to_string());
        }
        decoded.warnings = all_warnings;
        Ok(decoded)
    }
}

impl PatchType {
    /// Decodes the patch itself, with warnings.
    fn read(self, body: &[u8], validation: FieldValidation) -> Result<Decoded, Refusal> {
        let checks_fields = validation != FieldValidation::Ignore;
        let level = if checks_fields { FieldValidation::Warn } else { FieldValidation::Ignore };
        let decoding = |problem: &dyn std::fmt::Display| match (self, checks_fields) {
            (PatchType::Strategic, _) | (PatchType::Json, false) => Refusal::bad_request(problem.to_string()),
            (PatchType::Merge, false) => Refusal::bad_request("Invalid JSON Patch"),
            _ => Refusal::bad_request(format!("error decoding patch: {problem}")),
        };
        match self {
            PatchType::Json => {
                let mut read = decode::decode_json(body, level).map_err(|problem| decoding(&problem))?;
                if checks_fields {
                    read.warnings.iter_mut().for_each(|text| *text = format!("json patch {text}"));
                    read.warnings.extend(JsonPatch::unknown_members(&read.value));
                }
                Ok(read)
            }
            PatchType::Merge if !checks_fields => {
                decode::decode_json(body, level).map_err(|problem| decoding(&problem))
            }
            PatchType::Merge | PatchType::Strategic => {
                decode::decode_any(body, level).map_err(|problem| decoding(&problem))
            }
        }
    }
}

fn refuse(error: &PatchError) -> Refusal {
    match error {
        PatchError::Malformed(text) => Refusal::bad_request(text.clone()),
        // Kubernetes: the cause is not sent to the client.
        PatchError::Unfit(_) => {
            Refusal::by_router(422, "the server rejected our request due to an error in our request")
        }
        PatchError::TooManyOperations { .. } => Refusal::request_entity_too_large(error.to_string()),
        PatchError::Unexpected(text) => Refusal::unclassified(text.clone()),
    }
}

/// The error for a patch whose result is not an object of the kind.
fn unreadable(shown: &str, problem: &str) -> Refusal {
    let mut errors = ErrorList::new();
    errors.push(Error::invalid(&Path::new("patch"), shown, problem));
    Refusal::invalid(&GroupKind::new("", ""), "", &errors)
}

fn has_no_version(object: &Value) -> bool {
    match object.get("apiVersion") {
        None | Some(Value::Null) => object.is_object(),
        Some(version) => version == "",
    }
}

/// A patch has removed the apiVersion: the kind that is left must be that of the object.
// Kubernetes: looks the kind up among the internal types of the group.
fn check_internal_kind(types: &Types, of: TypeId, given: &str) -> Result<(), String> {
    let Some(own) = types.get(of).kind.as_deref().filter(|own| !given.is_empty() && *own.kind != *given)
    else {
        return Ok(());
    };
    let group = &*own.group;
    let mut kinds = types.iter().filter_map(|(_, each)| each.kind.as_deref());
    match kinds.any(|kind| *kind.group == *group && *kind.kind == *given) {
        true => {
            let package = package(group);
            Err(format!("converting ({package}.{given}) to ({package}.{}): unknown conversion", own.kind))
        }
        false => Err(format!(
            "no kind {given:?} is registered for the internal version of group {group:?} in scheme {:?}",
            scheme(group)
        )),
    }
}

/// A patch has removed the apiVersion of an object of a built-in kind.
// Kubernetes: decodes it into an internal type with other field names, so that nothing of it is left.
fn read_without_version(object: &Value) -> Decoded {
    let known = ["kind", "apiVersion"];
    let names = object.as_object().into_iter().flat_map(serde_json::Map::keys);
    let unknown = names.filter(|name| !known.contains(&name.as_str()));
    Decoded {
        value: Value::Object(serde_json::Map::new()),
        warnings: unknown.map(|name| format!("unknown field \"{name}\"")).collect(),
    }
}

/// The patched object with its previous kind and apiVersion, where it has others.
fn with_kind_of(json: &[u8], made: &Value) -> Option<Value> {
    let before = ["kind", "apiVersion"].map(|name| (name, schema::scan::text(json, &[name])));
    let is_same = |(name, text): &(&str, Cow<'_, str>)| made.get(*name).and_then(Value::as_str) == Some(text);
    if before.iter().all(is_same) {
        return None;
    }
    let mut made = made.clone();
    let members = made.as_object_mut()?;
    members.extend(before.map(|(name, text)| (name.to_owned(), text.into_owned().into())));
    Some(made)
}

/// The patched object as Go's patch library writes it: untouched parts keep their text, touched ones have
/// sorted members.
fn text_of(json: &[u8], before: &Value, after: &Value) -> String {
    match before == after {
        true => String::from_utf8_lossy(json).into_owned(),
        false => text_of_whole(json, before, after),
    }
}

/// The text of an object that was touched, even if nothing changed.
fn text_of_whole(json: &[u8], before: &Value, after: &Value) -> String {
    let json = std::str::from_utf8(json).unwrap_or_default();
    if let (Value::Object(before), Value::Object(after)) = (before, after)
        && let Ok(parts) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json)
    {
        let member = |(name, after): (&String, &Value)| {
            let text = match (parts.get(name), before.get(name)) {
                (Some(json), Some(before)) => text_of(json.get().as_bytes(), before, after),
                _ => plain(after),
            };
            format!("{}:{text}", plain(&Value::from(name.as_str())))
        };
        return format!("{{{}}}", after.iter().map(member).collect::<Vec<_>>().join(","));
    }
    plain(after)
}

/// The JSON of a patched object. An integral number with a fraction keeps it: integer fields reject it.
fn spelled(value: &Value) -> Vec<u8> {
    fn has_fractions(value: &Value) -> bool {
        match value {
            Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|it| it.fract() == 0.0),
            Value::Array(items) => items.iter().any(has_fractions),
            Value::Object(members) => members.values().any(has_fractions),
            Value::Null | Value::Bool(_) | Value::String(_) => false,
        }
    }
    match has_fractions(value) {
        true => serde_json::to_vec(value).unwrap_or_default(),
        false => encode_any(value),
    }
}

fn plain(value: &Value) -> String {
    String::from_utf8(encode_any(value)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_MAP: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null},"data":{"k":"v"}}"#;

    fn run(patch_type: &str, body: &str, validation: FieldValidation) -> Result<Decoded, String> {
        let (of, _) = kinds::types().kind("", "v1", "ConfigMap").unwrap();
        let patched = Patched {
            json: CONFIG_MAP.as_bytes(),
            of: Some((kinds::types(), of)),
            decode: |json: &[u8], validation| {
                let decoded = decode::decode(kinds::types(), of, json, validation);
                decoded
                    .map_err(|error| Undecodable::new(&error, Some(("ConfigMap", "v1")), "ConfigMap", json))
            },
        };
        let patch =
            Patch::read(patch_type, body.as_bytes(), validation).map_err(|refusal| refusal.to_string())?;
        let applied = patch.apply(&patched).map_err(Refusal::into_status);
        applied.map_err(|status| format!("{} {}", status.code, status.message))
    }

    #[test]
    fn duplicate_and_unknown_fields_in_patches_warn() {
        for (patch_type, body, expected) in [
            (PATCH_TYPES[2], r#"{"data":{"k":"x"}}"#, vec![]),
            (
                PATCH_TYPES[2],
                r#"{"data":{"k":"x","k":"y"},"nope":1,"metadata":{"nope":1}}"#,
                vec![
                    "duplicate field \"data.k\"",
                    "unknown field \"metadata.nope\"",
                    "unknown field \"nope\"",
                ],
            ),
            (
                PATCH_TYPES[3],
                r#"{"nope":1,"data":{"k":"x","k":"y"}}"#,
                vec!["duplicate field \"data.k\"", "unknown field \"nope\""],
            ),
            (
                PATCH_TYPES[1],
                r#"[{"op":"add","path":"/nope","value":1,"odd":2}]"#,
                vec!["json patch unknown field \"[0].odd\"", "unknown field \"nope\""],
            ),
        ] {
            let read = run(patch_type, body, FieldValidation::Warn).unwrap();
            assert_eq!(read.warnings, expected, "{body}");
            assert!(run(patch_type, body, FieldValidation::Ignore).unwrap().warnings.is_empty(), "{body}");
            assert_eq!(run(patch_type, body, FieldValidation::Strict).is_ok(), expected.is_empty(), "{body}");
        }
    }

    #[test]
    fn malformed_patches_are_rejected_with_kube_apiservers_texts() {
        use FieldValidation::{Ignore, Strict, Warn};
        for (patch_type, body, validation, expected) in [
            (
                PATCH_TYPES[2],
                r#"{"nope":1}"#,
                Strict,
                r#"422  "" is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"k\":\"v\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"creationTimestamp\":null},\"nope\":1}": strict decoding error: unknown field "nope""#,
            ),
            (
                PATCH_TYPES[3],
                r#"{"nope":{"a":1}}"#,
                Strict,
                r#"422  "" is invalid: patch: Invalid value: "map[nope:map[a:1]]": strict decoding error: unknown field "nope""#,
            ),
            (
                PATCH_TYPES[3],
                r#"{"data":{"k":1}}"#,
                Warn,
                r#"422  "" is invalid: patch: Invalid value: "map[data:map[k:1]]": cannot convert int64 to string"#,
            ),
            (
                PATCH_TYPES[2],
                "[]",
                Warn,
                "400 error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            ),
            (PATCH_TYPES[2], "5", Ignore, "400 Invalid JSON Patch"),
            (PATCH_TYPES[3], "[", Warn, "400 unexpected end of JSON input"),
            (
                PATCH_TYPES[1],
                "x",
                Warn,
                "400 error decoding patch: invalid character 'x' looking for beginning of value",
            ),
            (PATCH_TYPES[0], "{}", Warn, ""),
            ("text/plain", "{}", Warn, "415: Unsupported Media Type"),
        ] {
            let said = run(patch_type, body, validation).unwrap_err();
            assert!(said == expected || expected.is_empty(), "{body}: {said}");
        }
    }
}
