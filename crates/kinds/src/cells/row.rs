//! One object and the moment at which it is looked at: what the printers read from.

use api::object;
use api::quantity::Quantity;
use api::time::{MicroTime, Time};
use jiff::Timestamp;
use serde_json::Value;

use super::age::age;

pub(crate) const NONE: &str = "<none>";
pub(crate) const UNSET: &str = "<unset>";
pub(crate) const UNKNOWN: &str = "<unknown>";

#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    pub(crate) object: &'a Value,
    pub(crate) now: Timestamp,
}

impl<'a> Row<'a> {
    pub(crate) fn name(&self) -> &'a str {
        object::name(self.object)
    }

    /// How long ago the object was made.
    pub(crate) fn age(&self) -> String {
        let moment = object::creation_timestamp(self.object).filter(|moment| !moment.is_zero());
        moment.map_or(UNKNOWN.to_owned(), |moment| age(moment.timestamp(), self.now))
    }

    /// How long ago a moment was that the object tells of.
    pub(crate) fn since(&self, moment: &Value) -> String {
        instant(moment).map_or(UNKNOWN.to_owned(), |moment| age(moment, self.now))
    }

    pub(crate) fn is_deleting(&self) -> bool {
        object::is_deleting(self.object)
    }

    /// What stands at a JSON pointer, `null` if nothing does.
    pub(crate) fn at(&self, pointer: &str) -> &'a Value {
        at(self.object, pointer)
    }

    pub(crate) fn text(&self, pointer: &str) -> &'a str {
        text(self.at(pointer))
    }

    pub(crate) fn text_or(&self, pointer: &str, otherwise: &'a str) -> &'a str {
        or(self.text(pointer), otherwise)
    }

    pub(crate) fn number(&self, pointer: &str) -> i64 {
        number(self.at(pointer))
    }

    pub(crate) fn flag(&self, pointer: &str) -> bool {
        self.at(pointer).as_bool().unwrap_or_default()
    }

    pub(crate) fn items(&self, pointer: &str) -> &'a [Value] {
        items(self.at(pointer))
    }

    /// How many members a list or map has.
    pub(crate) fn count(&self, pointer: &str) -> usize {
        match self.at(pointer) {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        }
    }
}

pub(crate) fn at<'a>(value: &'a Value, pointer: &str) -> &'a Value {
    value.pointer(pointer).unwrap_or(&Value::Null)
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(crate) fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

pub(crate) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The strings of a list.
pub(crate) fn texts(value: &Value) -> Vec<&str> {
    items(value).iter().map(text).collect()
}

/// The value of the member of that name in each item, joined by commas.
pub(crate) fn joined(list: &Value, member: &str) -> String {
    items(list).iter().map(|item| text(&item[member])).collect::<Vec<_>>().join(",")
}

/// As Go prints it; what is missing is zero.
pub(crate) fn quantity(value: &Value) -> String {
    serde_json::from_value::<Quantity>(value.clone()).unwrap_or_default().to_string()
}

/// A time with or without microseconds, unless it is missing.
pub(crate) fn instant(value: &Value) -> Option<Timestamp> {
    let written = value.as_str()?;
    match written.parse::<MicroTime>() {
        Ok(moment) => (!moment.is_zero()).then(|| moment.timestamp()),
        Err(_) => {
            let moment = written.parse::<Time>().ok()?;
            (!moment.is_zero()).then(|| moment.timestamp())
        }
    }
}

/// The condition of a type.
pub(crate) fn condition<'a>(conditions: &'a Value, kind: &str) -> Option<&'a Value> {
    items(conditions).iter().find(|condition| condition["type"] == kind)
}

/// Whether the condition of a type is there and holds.
pub(crate) fn holds(conditions: &Value, kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|condition| condition["status"] == "True")
}

/// At most so many, and how many are left out.
pub(crate) fn shortened(list: &[String], limit: usize, total: usize) -> String {
    let shown = list[..list.len().min(limit)].join(",");
    if list.len() > limit { format!("{shown} + {} more...", total - limit) } else { shown }
}
