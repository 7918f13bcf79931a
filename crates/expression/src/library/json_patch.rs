//! `jsonpatch.escapeKey`: a key as a segment of a JSON pointer.

use super::{Function, Library, Outcome, Overload, charge};
use crate::{error::Error, ty::Type, value::Value};

pub fn library() -> Library {
    let escape =
        Overload::global("string_jsonpatch_escapeKey_string", vec![Type::String], Type::String, escape_key)
            .costs(charge::walk)
            .estimated(charge::copy_estimate);
    Library { functions: vec![Function::new("jsonpatch.escapeKey", vec![escape])], ..Library::default() }
}

fn escape_key<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(key)] = args else { return Err(Error::no_such_overload()) };
    Ok(Value::string(key.replace('~', "~0").replace('/', "~1")))
}
