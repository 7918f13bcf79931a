//! Decodes bytes into a custom object without unknown members.

use api::field::Path;
use serde_json::Value;

use super::metadata::{Malformed, normalize_embedded, normalize_metadata};
use super::prune::{drop_nulls, prune};
use super::shape::Structural;
use crate::decode::{DecodeError, Decoded, FieldValidation, decode_any};
use crate::patch::print;
use crate::yaml;

/// The format of a body.
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
    let (mut value, mut errors) = parse(body, encoding, validation)?;
    let unknown = coerce(schema, &mut value)?;
    errors.extend(unknown);
    match validation {
        FieldValidation::Ignore => Ok(Decoded { value, warnings: Vec::new() }),
        FieldValidation::Strict if !errors.is_empty() => Err(DecodeError::Strict(errors)),
        FieldValidation::Warn | FieldValidation::Strict => Ok(Decoded { value, warnings: errors }),
    }
}

/// The object as the client sent it, and the errors about duplicate members.
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
            let errors = match (read.duplicates, validation) {
                (Some(duplicates), FieldValidation::Warn) => yaml::lines(&duplicates),
                (duplicates, _) => duplicates.into_iter().collect(),
            };
            Ok((value, errors))
        }
    }
}

pub(super) fn coerce(schema: &Structural, object: &mut Value) -> Result<Vec<String>, DecodeError> {
    for name in ["kind", "apiVersion"] {
        if let Some(value) = object.get(name).filter(|value| !value.is_string()) {
            let (shown, found) = (print::plain(value), print::type_name(value));
            let message = format!(".{name} accessor error: {shown} is of the type {found}, expected string");
            return Err(DecodeError::Malformed(message));
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
        normalize_metadata(members, &Path::ROOT, malformed, &mut unknown)?;
    }
    unknown.extend(prune(schema, object));
    // The metadata is normalized already, independent of the schema.
    let metadata = object.get_mut("metadata").map(Value::take);
    drop_nulls(schema, Some(schema.root), object);
    if let (Some(metadata), Value::Object(members)) = (metadata, &mut *object) {
        members.insert("metadata".to_owned(), metadata);
    }
    let mut embedded = Vec::new();
    normalize_embedded(schema, object, malformed, &mut embedded)?;
    embedded.sort_unstable();
    unknown.extend(embedded);
    Ok(unknown)
}
