//! A value in, the text that a field error shows for it out.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::go;

/// The offending value as Go would print it, or left out.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BadValue(Shown);

#[derive(Clone, Debug, PartialEq, Eq, Default)]
enum Shown {
    #[default]
    Omitted,
    /// A Go `string`, which the message quotes with `%q`.
    PlainString(String),
    /// Text that is printed as it stands.
    Verbatim(String),
}

impl BadValue {
    /// The message goes on without a value.
    pub const OMITTED: BadValue = BadValue(Shown::Omitted);

    /// A struct, or a Go string of a named type: as `json.Marshal` prints it, fields in their order.
    pub fn json(value: &(impl Serialize + ?Sized)) -> Self {
        BadValue::verbatim(go::json(value).unwrap_or_else(|problem| problem.to_string()))
    }

    /// Text that is printed as it stands.
    pub fn verbatim(text: impl Into<String>) -> Self {
        BadValue(Shown::Verbatim(text.into()))
    }

    /// A Go string of a named type, or one behind a pointer, is printed as JSON; a plain one is quoted with `%q`.
    #[must_use]
    pub fn with_named_string_type(self) -> Self {
        match self.0 {
            Shown::PlainString(text) => BadValue::json(&text),
            shown => BadValue(shown),
        }
    }

    /// A string that Kubernetes has made a plain one of, whatever the type of the field is: quoted with `%q` for good.
    #[must_use]
    pub fn of_plain_type(self) -> Self {
        match self.0 {
            Shown::PlainString(text) => BadValue::verbatim(go::quote(&text)),
            shown => BadValue(shown),
        }
    }

    /// Whether the message says `null`, as for a pointer that is not set.
    pub fn is_null(&self) -> bool {
        matches!(&self.0, Shown::Verbatim(text) if text == "null")
    }

    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        match &self.0 {
            Shown::Omitted => None,
            Shown::PlainString(text) => Some(Cow::Owned(go::quote(text))),
            Shown::Verbatim(text) => Some(Cow::Borrowed(text)),
        }
    }

    /// About how long it is in the message.
    pub(super) fn len(&self) -> usize {
        match &self.0 {
            Shown::Omitted => 0,
            Shown::PlainString(text) | Shown::Verbatim(text) => text.len(),
        }
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        BadValue(Shown::PlainString(text.to_owned()))
    }
}

impl From<&String> for BadValue {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for BadValue {
    fn from(text: String) -> Self {
        BadValue(Shown::PlainString(text))
    }
}

impl From<f64> for BadValue {
    fn from(number: f64) -> Self {
        BadValue::verbatim(go::float(number))
    }
}

macro_rules! print_as_is {
    ($($simple:ty)*) => {
        $(impl From<$simple> for BadValue {
            fn from(value: $simple) -> Self {
                BadValue::verbatim(value.to_string())
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
                None => BadValue::verbatim(number.to_string()),
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
