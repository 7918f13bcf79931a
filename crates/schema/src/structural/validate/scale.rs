//! Validates the fields that the scale of a definition points to: replicas must be integers, the selector a
//! string.

use api::field::{BadValue, Error, ErrorList};
use serde_json::Value;

use super::ScalePaths;
use crate::patch::print;

const MAX_REPLICAS: i64 = i32::MAX as i64;

impl ScalePaths {
    pub(super) fn check_spec(&self, object: &Value, errors: &mut ErrorList) {
        check_replicas(object, &self.spec_replicas, errors);
    }

    pub(super) fn check_status(&self, object: &Value, errors: &mut ErrorList) {
        check_replicas(object, &self.status_replicas, errors);
        let Some(path) = &self.label_selector else { return };
        match find(object, path) {
            Ok(Some(value)) if !value.is_string() => {
                errors.push(invalid(path, "".into(), wrong_type(path, value, "string")));
            }
            Err(message) => errors.push(invalid(path, "".into(), message)),
            Ok(_) => {}
        }
    }
}

fn check_replicas(object: &Value, path: &str, errors: &mut ErrorList) {
    let (count, message) = match find(object, path) {
        Ok(None) => return,
        Err(message) => (0, message),
        Ok(Some(value)) => match value.as_i64() {
            None => (0, wrong_type(path, value, "int64")),
            Some(count) if count < 0 => (count, "should be a non-negative integer".to_owned()),
            Some(count) if count > MAX_REPLICAS => {
                (count, format!("should be less than or equal to {MAX_REPLICAS}"))
            }
            Some(_) => return,
        },
    };
    errors.push(invalid(path, count.into(), message));
}

/// The value at a path of field names, or the error on the way.
fn find<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let mut at = object;
    let mut gone = String::new();
    for name in path.strip_prefix('.').unwrap_or(path).split('.') {
        gone.push('.');
        gone.push_str(name);
        match at {
            Value::Null => return Ok(None),
            Value::Object(members) => match members.get(name) {
                None => return Ok(None),
                Some(value) => at = value,
            },
            other => return Err(accessor_error(&gone, other, "map[string]interface{}")),
        }
    }
    Ok(Some(at))
}

fn wrong_type(path: &str, value: &Value, wanted: &str) -> String {
    accessor_error(&format!(".{}", path.strip_prefix('.').unwrap_or(path)), value, wanted)
}

fn accessor_error(path: &str, value: &Value, wanted: &str) -> String {
    let (shown, found) = (print::plain(value), print::type_name(value));
    format!("{path} accessor error: {shown} is of the type {found}, expected {wanted}")
}

/// Kubernetes: the field is the path as the definition writes it, with its dot.
fn invalid(path: &str, value: BadValue, message: String) -> Error {
    Error { field: path.to_owned(), ..Error::invalid(&api::field::Path::ROOT, value, message) }
}
