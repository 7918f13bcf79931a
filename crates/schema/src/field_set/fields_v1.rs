//! Reads and writes FieldsV1: the JSON in managedFields that lists the fields of a manager.
//!
//! `{"f:spec":{"f:replicas":{}}}` is the set of `.spec.replicas`; a `"."` says that the element above is in
//! the set too. The text is byte for byte that of kube-apiserver.

use std::fmt::{self, Write as _};

use serde_json::{Map, Value};

use super::{Element, Entry, FieldSet, Key};
use crate::depth::MAX_DEPTH;

/// The text is not FieldsV1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFields(String);

impl FieldSet {
    /// Reads FieldsV1. Element types that only a later version knows are skipped.
    pub fn from_json(text: &str) -> Result<FieldSet, BadFields> {
        FieldSet::from_value(&serde_json::from_str(text).map_err(bad)?)
    }

    /// The same from JSON that was parsed already.
    pub fn from_value(fields: &Value) -> Result<FieldSet, BadFields> {
        FieldSet::read(fields, 0).map(|(set, _)| set)
    }

    /// A set, and whether it has a `"."`: the element above is a member.
    fn read(fields: &Value, depth: usize) -> Result<(FieldSet, bool), BadFields> {
        let members = match fields {
            // The deepest field contains one more object, an empty one.
            Value::Object(members) if depth <= MAX_DEPTH => members,
            Value::Null => return Ok((FieldSet::default(), true)),
            Value::Object(_) => return Err(BadFields("fields are nested too deeply".into())),
            other => return Err(BadFields(format!("expected an object of path elements, got {other}"))),
        };
        let mut read = Vec::with_capacity(members.len());
        for (name, below) in members.iter().filter(|(name, _)| *name != ".") {
            if let Some(element) = Element::from_text(name)? {
                let (below, member) = FieldSet::read(below, depth + 1)?;
                read.push((element, member, below));
            }
        }
        // Sorted by element, which differs from the order of the texts, so that each is appended at the end.
        read.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        let mut set = FieldSet::default();
        for (element, member, below) in read {
            set.graft(element, member, below);
        }
        let alone = set.is_empty();
        Ok((set, alone || members.contains_key(".")))
    }

    /// Writes FieldsV1, elements in their order.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, false);
        out
    }

    /// The same as a value, whose members come in the order of their text.
    #[must_use]
    pub fn to_value(&self) -> Value {
        self.members(false)
    }

    fn write(&self, out: &mut String, itself: bool) {
        out.push('{');
        if itself {
            out.push_str("\".\":{}");
        }
        for (at, entry) in self.entries.iter().enumerate() {
            if at > 0 || itself {
                out.push(',');
            }
            write_string(out, &entry.element.to_text(), Html::AsIs);
            out.push(':');
            entry.below.write(out, entry.needs_dot());
        }
        out.push('}');
    }

    fn members(&self, itself: bool) -> Value {
        let mut members = Map::new();
        if itself {
            members.insert(".".into(), Value::Object(Map::new()));
        }
        for entry in &self.entries {
            members.insert(entry.element.to_text(), entry.below.members(entry.needs_dot()));
        }
        Value::Object(members)
    }
}

impl Entry {
    /// Whether a member needs a `"."`: one with nothing below it does not.
    fn needs_dot(&self) -> bool {
        self.member && !self.below.is_empty()
    }
}

impl Element {
    /// The element as a member's name: `f:spec`, `k:{"name":"main"}`, `v:"a"`, `i:0`.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Element::Field(name) => ["f:", name].concat(),
            Element::Key(key) => {
                let mut out = String::from("k:{");
                for (at, (name, value)) in key.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_string(&mut out, name, Html::AsIs);
                    out.push(':');
                    write_value(&mut out, value);
                }
                out.push('}');
                out
            }
            Element::Value(value) => {
                let mut out = String::from("v:");
                write_value(&mut out, value);
                out
            }
            Element::Index(index) => format!("i:{index}"),
        }
    }

    /// Parses such a name. `None` for an element type that only a later version knows.
    pub fn from_text(text: &str) -> Result<Option<Element>, BadFields> {
        if text.len() < 2 {
            return Err(BadFields("key must be 2 characters long:".into()));
        }
        if text.as_bytes()[1] != b':' {
            return Err(BadFields(format!("missing colon: {text}")));
        }
        let (sort, content) = text.split_at(2);
        match sort {
            "f:" => Ok(Some(Element::field(content))),
            "v:" => serde_json::from_str(content).map(|value| Some(Element::Value(value))).map_err(bad),
            "k:" => Key::from_text(content).map(|key| Some(Element::Key(key))),
            "i:" => content.parse().map(|index| Some(Element::Index(index))).map_err(bad),
            _ => Ok(None),
        }
    }
}

impl Key {
    fn from_text(text: &str) -> Result<Key, BadFields> {
        let parts: Option<Map<String, Value>> = serde_json::from_str(text).map_err(bad)?;
        Ok(Key::new(parts.into_iter().flatten().map(|(name, value)| (name.into(), value)).collect()))
    }
}

fn bad(problem: impl fmt::Display) -> BadFields {
    BadFields(problem.to_string())
}

/// Whether `<`, `>` and `&` are escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Html {
    AsIs,
    Escaped,
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&number_text(number)),
        Value::String(text) => write_string(out, text, Html::Escaped),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (name, member)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_string(out, name, Html::Escaped);
                out.push(':');
                write_value(out, member);
            }
            out.push('}');
        }
    }
}

/// Kubernetes: integers without an exponent however they were written, very large and very small numbers with
/// one.
fn number_text(number: &serde_json::Number) -> String {
    let Some(value) = number.as_f64().filter(|_| number.as_i64().is_none()) else {
        return number.to_string();
    };
    if value == 0.0 || (1e-6..1e21).contains(&value.abs()) {
        return value.to_string();
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

/// Kubernetes: control characters except tab and line ends are written as `\u` escapes.
fn write_string(out: &mut String, text: &str, html: Html) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' => push_code(out, c),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html == Html::Escaped => push_code(out, c),
            _ => out.push(c),
        }
    }
    out.push('"');
}

fn push_code(out: &mut String, c: char) {
    write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a String cannot fail");
}
