//! Bytes in, a custom object out that its schema knows every member of.

use api::field::Path;
use serde_json::Value;

use super::metadata::{Malformed, settle, settle_embedded};
use super::prune::{drop_nulls, prune};
use super::shape::Structural;
use crate::decode::{DecodeError, Decoded, FieldValidation, decode_any};
use crate::patch::print;
use crate::yaml;

/// What a body is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Yaml,
}

pub(super) fn read(
    schema: &Structural,
    body: &[u8],
    encoding: Encoding,
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    let (mut value, mut told) = parse(body, encoding, validation)?;
    let unknown = coerce(schema, &mut value)?;
    told.extend(unknown);
    match validation {
        FieldValidation::Ignore => Ok(Decoded { value, warnings: Vec::new() }),
        FieldValidation::Strict if !told.is_empty() => Err(DecodeError::Strict(told)),
        FieldValidation::Warn | FieldValidation::Strict => Ok(Decoded { value, warnings: told }),
    }
}

/// The object as it is written, and what is said about members that come twice.
fn parse(
    body: &[u8],
    encoding: Encoding,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), DecodeError> {
    match encoding {
        Encoding::Json => {
            let read = decode_any(body, FieldValidation::Warn)?;
            Ok((read.value, read.warnings))
        }
        Encoding::Yaml => {
            let read = yaml::to_json(body)?;
            let value = decode_any(&read.json, FieldValidation::Ignore)?.value;
            let told = match (read.duplicates, validation) {
                (Some(told), FieldValidation::Warn) => yaml::lines(&told),
                (told, _) => told.into_iter().collect(),
            };
            Ok((value, told))
        }
    }
}

pub(super) fn coerce(schema: &Structural, object: &mut Value) -> Result<Vec<String>, DecodeError> {
    for name in ["kind", "apiVersion"] {
        if let Some(value) = object.get(name).filter(|value| !value.is_string()) {
            let (shown, found) = (print::plain(value), print::type_name(value));
            let says = format!(".{name} accessor error: {shown} is of the type {found}, expected string");
            return Err(DecodeError::Malformed(says));
        }
    }
    let unknown = bring_in_line(schema, object, Malformed::Refused)?;
    Ok(unknown.into_iter().map(|path| format!("unknown field \"{path}\"")).collect())
}

pub(super) fn adopt(schema: &Structural, object: &mut Value) {
    bring_in_line(schema, object, Malformed::Dropped).expect("nothing is refused where it may be dropped");
}

fn bring_in_line(
    schema: &Structural,
    object: &mut Value,
    malformed: Malformed,
) -> Result<Vec<String>, DecodeError> {
    let mut unknown = Vec::new();
    if let Value::Object(members) = object {
        settle(members, &Path::ROOT, malformed, &mut unknown)?;
    }
    unknown.extend(prune(schema, object));
    // The metadata is in order, whatever the schema says about it.
    let metadata = object.get_mut("metadata").map(Value::take);
    drop_nulls(schema, Some(schema.root), object);
    if let (Some(metadata), Value::Object(members)) = (metadata, &mut *object) {
        members.insert("metadata".to_owned(), metadata);
    }
    let mut embedded = Vec::new();
    settle_embedded(schema, object, malformed, &mut embedded)?;
    embedded.sort_unstable();
    unknown.extend(embedded);
    Ok(unknown)
}
