//! A value in, the text that a field error shows for it out.

use serde::Serialize;
use serde_json::Value;

use crate::go;

/// The offending value, already as Go would print it, or left out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BadValue(Option<String>);

impl BadValue {
    /// The message goes on without a value.
    pub const OMITTED: BadValue = BadValue(None);

    /// A struct, or a Go string of a named type: as `json.Marshal` prints it, fields in their order.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Self {
        BadValue(Some(go::json(value).unwrap_or_else(|problem| problem.to_string())))
    }

    /// Text that is printed as it stands.
    pub fn verbatim(text: impl Into<String>) -> Self {
        BadValue(Some(text.into()))
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        BadValue(Some(go::quote(text)))
    }
}

impl From<&String> for BadValue {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for BadValue {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<f64> for BadValue {
    fn from(number: f64) -> Self {
        BadValue(Some(go::float(number)))
    }
}

macro_rules! print_as_is {
    ($($simple:ty)*) => {
        $(impl From<$simple> for BadValue {
            fn from(value: $simple) -> Self {
                BadValue(Some(value.to_string()))
            }
        })*
    };
}
print_as_is!(bool i32 i64 u64 usize);

impl From<&Value> for BadValue {
    fn from(value: &Value) -> Self {
        match value {
            Value::String(text) => text.into(),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => float.into(),
                None => BadValue(Some(number.to_string())),
            },
            other => BadValue::json(other),
        }
    }
}

/// A pointer is followed; an absent one prints as `null`.
impl<T: Into<BadValue>> From<Option<T>> for BadValue {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(|| BadValue::verbatim("null"), Into::into)
    }
}
