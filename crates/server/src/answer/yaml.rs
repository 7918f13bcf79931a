//! A value in, YAML as the real server writes it out, to the last quote and fold.

mod order;
mod scalar;

use api::go;
use scalar::Style;
use serde_json::{Map, Value};

/// How far nested blocks stand in.
const STEP: usize = 2;

// Kubernetes: a line is folded at the first space behind this column.
const WIDTH: usize = 80;

pub(crate) fn to_yaml(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.node(value, 0, Place::Line);
    if !writer.out.ends_with('\n') {
        writer.out.push('\n');
    }
    writer.out
}

/// Where a node begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// On a line of its own.
    Line,
    /// Behind a dash.
    Dash,
    /// Behind a key.
    Key,
}

#[derive(Default)]
struct Writer {
    out: String,
    column: usize,
}

impl Writer {
    /// A node inside a block that stands in by `indent`.
    fn node(&mut self, value: &Value, indent: usize, place: Place) {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let indent = if place == Place::Line { indent } else { indent + STEP };
                self.mapping(members, indent, place);
            }
            Value::Array(items) if !items.is_empty() => {
                // Kubernetes: lists are not indented below their key.
                let indent = if place == Place::Dash { indent + STEP } else { indent };
                for (at, item) in items.iter().enumerate() {
                    self.begin(indent, place == Place::Dash && at == 0);
                    self.text("-");
                    self.node(item, indent, Place::Dash);
                }
            }
            leaf => {
                if place != Place::Line {
                    self.text(" ");
                }
                self.leaf(leaf, indent + STEP);
            }
        }
    }

    fn mapping(&mut self, members: &Map<String, Value>, indent: usize, place: Place) {
        let mut keys: Vec<&String> = members.keys().collect();
        keys.sort_by(|one, other| order::compare(one, other));
        for (at, key) in keys.into_iter().enumerate() {
            self.begin(indent, place == Place::Dash && at == 0);
            self.scalar(key, true, indent + STEP);
            self.text(":");
            self.node(&members[key], indent, Place::Key);
        }
    }

    /// A new line, or the rest of the one that a dash has begun.
    fn begin(&mut self, indent: usize, is_behind_dash: bool) {
        if is_behind_dash {
            return self.text(" ");
        }
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
        self.column = 0;
        self.text(&" ".repeat(indent));
    }

    fn text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn leaf(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) => self.scalar(text, false, indent),
            Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => self.text(&go::float(float)),
                None => self.text(&number.to_string()),
            },
            other => self.text(&other.to_string()),
        }
    }

    fn scalar(&mut self, text: &str, is_key: bool, indent: usize) {
        match scalar::style(text, is_key) {
            Style::Plain => self.folded(text, is_key, indent, |out, c| out.text(c.encode_utf8(&mut [0; 4]))),
            Style::Single => {
                self.text("'");
                self.folded(text, is_key, indent, |out, c| match c {
                    '\'' => out.text("''"),
                    c => out.text(c.encode_utf8(&mut [0; 4])),
                });
                self.text("'");
            }
            Style::Double => {
                self.text("\"");
                self.folded(text, is_key, indent, |out, c| out.text(&scalar::escape(c)));
                self.text("\"");
            }
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Writes characters; a space far to the right becomes a new line, but not in a key.
    fn folded(&mut self, text: &str, is_key: bool, indent: usize, write: impl Fn(&mut Writer, char)) {
        let chars: Vec<char> = text.chars().collect();
        for (at, c) in chars.iter().enumerate() {
            let is_alone =
                at > 0 && chars[at - 1] != ' ' && chars.get(at + 1).is_some_and(|next| *next != ' ');
            if *c == ' ' && !is_key && self.column > WIDTH && is_alone {
                self.begin(indent, false);
            } else {
                write(self, *c);
            }
        }
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.text("|");
        if text.starts_with([' ', '\n']) {
            self.text(&STEP.to_string());
        }
        self.text(match (text.ends_with('\n'), text.ends_with("\n\n") || text == "\n") {
            (false, _) => "-",
            (true, true) => "+",
            (true, false) => "",
        });
        self.out.push('\n');
        for line in text.split_inclusive('\n') {
            if line != "\n" {
                self.out.push_str(&" ".repeat(indent));
            }
            self.out.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn yaml_is_what_go_writes() {
        let long = format!("{} {} c d", "a".repeat(40), "b".repeat(40));
        for (value, expected) in [
            (json!({"b": 1, "a": {"c": [], "d": {}}}), "a:\n  c: []\n  d: {}\nb: 1\n".to_owned()),
            (json!({"a10": 1, "a9": 1, "f:x": 1, ".": {}}), ".: {}\na9: 1\na10: 1\nf:x: 1\n".to_owned()),
            (
                json!({"l": ["a", {"b": 1, "c": [2]}, [1, 2]]}),
                "l:\n- a\n- b: 1\n  c:\n  - 2\n- - 1\n  - 2\n".to_owned(),
            ),
            (json!({"y": "y", "n": "123"}), "\"n\": \"123\"\n\"y\": \"y\"\n".to_owned()),
            (json!({"t": "2026-01-01T00:00:00Z"}), "t: \"2026-01-01T00:00:00Z\"\n".to_owned()),
            (json!({"m": "pods \"a\" not found"}), "m: pods \"a\" not found\n".to_owned()),
            (json!({"m": "a: b", "n2": "it's: x"}), "m: 'a: b'\nn2: 'it''s: x'\n".to_owned()),
            (json!({"a": "x\ny\n", "b": "x\ny"}), "a: |\n  x\n  y\nb: |-\n  x\n  y\n".to_owned()),
            (json!({"a": "  x\ny", "b": "x\n\n"}), "a: |2-\n    x\n  y\nb: |+\n  x\n\n".to_owned()),
            (json!({"a": "x \ny", "b": "a\tb"}), "a: \"x \\ny\"\nb: \"a\\tb\"\n".to_owned()),
            (json!({"e": "é😀", "f": 1.5, "z": null}), "e: \"é\\U0001F600\"\nf: 1.5\nz: null\n".to_owned()),
            (
                json!({"k:{\"a\":\"b\"}": {}, "v:\"x y\"": {}}),
                "k:{\"a\":\"b\"}: {}\nv:\"x y\": {}\n".to_owned(),
            ),
            (json!({"k": long}), format!("k: {} {}\n  c d\n", "a".repeat(40), "b".repeat(40))),
        ] {
            assert_eq!(to_yaml(&value), expected, "{value}");
        }
    }
}
