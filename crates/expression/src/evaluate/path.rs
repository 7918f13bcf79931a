//! Fields and indexes: `a.b[c].?d`.

use super::{Machine, fold::go_type};
use crate::{
    error::Error,
    library::Outcome,
    number::format_double,
    plan::{Op, Step, StepKey},
    text::describe,
    value::{List, Value},
};

impl<'r, 'a> Machine<'r, 'a> {
    pub(super) fn eval_path(&mut self, root: &'r Op, steps: &'r [Step], is_test: bool) -> Outcome<'a> {
        let mut at = match root {
            Op::Variable(_) | Op::Local(_) | Op::Path { .. } | Op::If(_) => self.eval_raw(root)?,
            other => self.eval(other)?,
        };
        let mut optional = false;
        if let Value::Optional(inner) = &at {
            let Some(inner) = inner else {
                return Ok(if is_test { Value::Bool(false) } else { Value::Optional(None) });
            };
            optional = true;
            at = (**inner).clone();
        }
        for (index, step) in steps.iter().enumerate() {
            let computed;
            let key = match &step.key {
                StepKey::Constant(value) => value,
                StepKey::Computed(op) => {
                    let key = self.eval_raw(op);
                    computed = match key.and_then(refuse_odd_key) {
                        Ok(key) => key,
                        Err(error) => {
                            self.charge(u64::from(!optional && !step.optional && !error.is_cancelled()))?;
                            return Err(error);
                        }
                    };
                    &computed
                }
            };
            if is_test && index + 1 == steps.len() {
                self.charge(u64::from(!matches!(root, Op::If(_))))?;
                return Ok(Value::Bool(find(&at, key)?.is_some()));
            }
            optional |= step.optional;
            let found = find(&at, key);
            if !optional || matches!(found, Ok(Some(_))) {
                self.charge(1)?;
            }
            at = match found? {
                Some(value) => value,
                None if optional => return Ok(Value::Optional(None)),
                None => return Err(missing(&at, key)),
            };
        }
        Ok(if optional { Value::some(at) } else { at })
    }
}

/// Kubernetes: the text names the type of the implementation.
fn refuse_odd_key(key: Value<'_>) -> Outcome<'_> {
    match key {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(key),
        Value::Null => Err(Error::new("invalid qualifier type: <nil>")),
        other => Err(Error::new(format!("invalid qualifier type: {}", go_type(&other)))),
    }
}

/// As [`refuse_odd_key`], for a literal key before the run.
pub(crate) fn refuse_literal_key(key: &Value<'static>) -> Result<(), Error> {
    match key {
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::String(_) => Ok(()),
        Value::List(_) => Err(Error::new("invalid qualifier type: *types.baseList")),
        Value::Map(_) => Err(Error::new("invalid qualifier type: *types.baseMap")),
        other => Err(Error::new(format!("invalid qualifier type: {}", go_type(other)))),
    }
}

/// The value under this key; `None` where there is none.
fn find<'a>(value: &Value<'a>, key: &Value<'a>) -> Result<Option<Value<'a>>, Error> {
    match value {
        Value::Map(map) => Ok(map.find(key)),
        Value::List(list) => Ok(element(list, key)?),
        Value::Object(object) => {
            let name = key.as_str().unwrap_or_default();
            let field = object.fields.iter().find(|(known, _)| &**known == name);
            Ok(field.map(|(_, value)| value.clone()))
        }
        _ => Ok(None),
    }
}

fn element<'a>(list: &List<'a>, key: &Value<'_>) -> Result<Option<Value<'a>>, Error> {
    let index = match key {
        Value::Int(index) => *index,
        Value::Uint(index) => i64::try_from(*index)
            .map_err(|_| Error::new(format!("unsupported index value {index} in list")))?,
        Value::Double(index) if index.fract() == 0.0 && index.abs() < 9.2e18 => *index as i64,
        Value::Double(index) => return Err(Error::new(format!("unsupported index value {index} in list"))),
        other => {
            return Err(Error::new(format!("unsupported index type '{}' in list", other.ty().name())));
        }
    };
    Ok(usize::try_from(index).ok().and_then(|index| list.at(index)))
}

fn missing(value: &Value<'_>, key: &Value<'_>) -> Error {
    let key = match key {
        Value::String(text) => text.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => format_double(*number),
        other => describe(other),
    };
    match value {
        Value::List(_) => Error::new(format!("index out of bounds: {key}")),
        _ => Error::no_such_key(&key),
    }
}
