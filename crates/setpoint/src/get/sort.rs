//! `--sort-by`: rows and objects in the order of a field.

use crate::client::{
    failure::{ClientError, ClientResult},
    template::Template,
};
use schema::structural::json_path::JsonPath;
use serde_json::Value;
use std::cmp::Ordering;

/// Sorts the rows of tables of one type, which become rows of the first.
pub(super) fn rows(tables: &mut Vec<Value>, path: &str) -> ClientResult<()> {
    let path = Template::relaxed(path).map_err(ClientError::error)?;
    let mut rows = Vec::new();
    for table in tables.iter_mut() {
        if let Some(found) = table["rows"].as_array_mut() {
            rows.append(found);
        }
    }
    sort(&mut rows, &path, |row| &row["object"])?;
    tables.truncate(1);
    if let Some(first) = tables.first_mut() {
        first["rows"] = Value::Array(rows);
    }
    Ok(())
}

pub(super) fn objects(objects: &mut [Value], path: &str) -> ClientResult<()> {
    let path = Template::relaxed(path).map_err(ClientError::error)?;
    sort(objects, &path, |object| object)
}

fn sort(values: &mut [Value], path: &JsonPath, object: fn(&Value) -> &Value) -> ClientResult<()> {
    let key = |value: &Value| path.find(object(value)).ok().and_then(|found| found.first().copied().cloned());
    if !values.is_empty() && values.iter().all(|value| key(value).is_none()) {
        return Err(ClientError::error(
            "couldn't find any field with the path of --sort-by in the list of objects",
        ));
    }
    values.sort_by(|a, b| compare(key(a).as_ref(), key(b).as_ref()));
    Ok(())
}

/// Objects without the field come first.
fn compare(a: Option<&Value>, b: Option<&Value>) -> Ordering {
    match (a, b) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => {
            a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Some(Value::String(a)), Some(Value::String(b))) => quantities(a, b).unwrap_or_else(|| a.cmp(b)),
        (a, b) => a.map(ToString::to_string).cmp(&b.map(ToString::to_string)),
    }
}

/// Kubernetes: texts that are quantities are compared by their amount.
fn quantities(a: &str, b: &str) -> Option<Ordering> {
    let (a, b): (api::quantity::Quantity, api::quantity::Quantity) = (a.parse().ok()?, b.parse().ok()?);
    Some(a.cmp(&b))
}
