//! Writes JSON values as YAML, to the byte as kubectl writes them: its order of keys, quotes and line breaks.

mod key_order;
mod scalar;

use scalar::{Style, style};
use serde_json::{Map, Value};

const STEP: usize = 2;
/// Kubernetes: kubectl breaks a text at the first space behind this column.
const WIDTH: usize = 80;
/// A longer key is written after a question mark, on a line of its own.
const MAX_SIMPLE_KEY: usize = 128;

/// One document, with a line break at its end.
pub(crate) fn document(value: &Value) -> String {
    let mut writer = YamlWriter::default();
    match value {
        Value::Object(map) if !map.is_empty() => writer.mapping(map, 0),
        Value::Array(items) if !items.is_empty() => writer.sequence(items, 0),
        other => writer.inline(other, 0),
    }
    writer.end_line();
    writer.out
}

#[derive(Debug, Default)]
struct YamlWriter {
    out: String,
    column: usize,
    /// Only spaces and indicators are on this line: a mapping or sequence may begin on it.
    is_open: bool,
}

impl YamlWriter {
    fn mapping(&mut self, map: &Map<String, Value>, indent: usize) {
        let mut entries: Vec<_> = map.iter().collect();
        entries.sort_by(|(a, _), (b, _)| key_order::compare(a, b));
        for (key, value) in entries {
            self.indent(indent);
            if key.len() > MAX_SIMPLE_KEY || key.contains('\n') {
                self.long_entry(key, value, indent);
                continue;
            }
            self.text(key, indent, true);
            self.put(":");
            self.is_open = false;
            match value {
                Value::Object(map) if !map.is_empty() => self.mapping(map, indent + STEP),
                Value::Array(items) if !items.is_empty() => self.sequence(items, indent),
                other => {
                    self.put(" ");
                    self.inline(other, indent + STEP);
                }
            }
        }
    }

    /// `? key` and `: value`, each on its line.
    fn long_entry(&mut self, key: &str, value: &Value, indent: usize) {
        self.put("? ");
        self.text(key, indent + STEP, false);
        self.is_open = false;
        self.indent(indent);
        self.put(": ");
        self.nested(value, indent);
    }

    fn sequence(&mut self, items: &[Value], indent: usize) {
        for item in items {
            self.indent(indent);
            self.put("- ");
            self.nested(item, indent);
        }
    }

    /// A value that begins on this line, behind an indicator.
    fn nested(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Object(map) if !map.is_empty() => self.mapping(map, indent + STEP),
            Value::Array(items) if !items.is_empty() => self.sequence(items, indent + STEP),
            other => self.inline(other, indent + STEP),
        }
    }

    /// A scalar, or an empty mapping or sequence.
    fn inline(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.put("null"),
            Value::Bool(value) => self.put(&value.to_string()),
            Value::Number(number) if number.is_f64() => {
                self.put(&number.as_f64().map(api::go::float).unwrap_or_default());
            }
            Value::Number(number) => self.put(&number.to_string()),
            Value::String(text) => self.text(text, indent, false),
            Value::Array(_) => self.put("[]"),
            Value::Object(_) => self.put("{}"),
        }
        self.is_open = false;
    }

    fn text(&mut self, text: &str, indent: usize, is_key: bool) {
        match style(text, is_key) {
            Style::Plain => self.folded(text, indent, is_key, |c| c.to_string()),
            Style::SingleQuoted => {
                self.put("'");
                self.folded(
                    text,
                    indent,
                    is_key,
                    |c| if c == '\'' { "''".to_owned() } else { c.to_string() },
                );
                self.put("'");
            }
            Style::DoubleQuoted => self.double_quoted(text, indent, is_key),
            Style::Literal => self.literal(text, indent),
        }
    }

    /// Plain or single-quoted: a single space behind the width becomes a line break.
    fn folded(&mut self, text: &str, indent: usize, is_key: bool, write: fn(char) -> String) {
        let characters: Vec<char> = text.chars().collect();
        let mut is_after_space = false;
        for (at, &c) in characters.iter().enumerate() {
            let may_break = !is_key && !is_after_space && at > 0 && self.column > WIDTH;
            if c == ' ' && may_break && characters.get(at + 1).is_some_and(|next| *next != ' ') {
                self.break_line(indent);
            } else {
                self.put(&write(c));
            }
            is_after_space = c == ' ';
        }
    }

    fn double_quoted(&mut self, text: &str, indent: usize, is_key: bool) {
        self.put("\"");
        let characters: Vec<char> = text.chars().collect();
        let mut is_after_space = false;
        for (at, &c) in characters.iter().enumerate() {
            let may_break = !is_key && !is_after_space && at > 0 && self.column > WIDTH;
            match (c, characters.get(at + 1)) {
                (' ', Some(next)) if may_break => {
                    self.break_line(indent);
                    if *next == ' ' {
                        self.put("\\");
                    }
                }
                _ => self.put(&scalar::escaped(c)),
            }
            is_after_space = c == ' ';
        }
        self.put("\"");
    }

    /// A block: each line as it is, behind its indentation.
    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put(&STEP.to_string());
        }
        if !text.ends_with('\n') {
            self.put("-");
        } else if text == "\n" || text.ends_with("\n\n") {
            self.put("+");
        }
        self.end_line();
        let (body, ends) = text.strip_suffix('\n').map_or((text, false), |body| (body, true));
        let count = body.split('\n').count();
        for (at, line) in body.split('\n').enumerate() {
            if !line.is_empty() {
                self.spaces(indent);
                self.put(line);
            }
            if ends || at + 1 < count {
                self.out.push('\n');
                self.column = 0;
            }
        }
    }

    /// Goes to the start of an entry: on a new line, unless this one has only indicators.
    fn indent(&mut self, indent: usize) {
        if !self.is_open {
            self.end_line();
        }
        self.spaces(indent);
        self.is_open = true;
    }

    fn spaces(&mut self, column: usize) {
        while self.column < column {
            self.put(" ");
        }
    }

    fn break_line(&mut self, indent: usize) {
        self.out.push('\n');
        self.column = 0;
        self.spaces(indent);
    }

    fn end_line(&mut self) {
        if self.column > 0 {
            self.out.push('\n');
            self.column = 0;
        }
    }

    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(value: Value, expected: &str) {
        assert_eq!(document(&value), expected);
    }

    #[test]
    fn mappings_and_sequences_nest_as_in_kubectl() {
        check(
            json!({"b": [{"x": 1, "y": [1, [2, 3]]}, "s", {}], "a": {"c": {"d": null}}, "e": []}),
            "a:\n  c:\n    d: null\nb:\n- x: 1\n  \"y\":\n  - 1\n  - - 2\n    - 3\n- s\n- {}\ne: []\n",
        );
        check(json!({}), "{}\n");
        check(json!([]), "[]\n");
    }

    #[test]
    fn texts_are_quoted_only_where_they_must_be() {
        for (text, expected) in [
            ("plain", "plain"),
            ("", "\"\""),
            ("true", "\"true\""),
            ("yes", "\"yes\""),
            ("1", "\"1\""),
            ("1e3", "\"1e3\""),
            ("null", "\"null\""),
            ("2026-11-18T11:34:22Z", "\"2026-11-18T11:34:22Z\""),
            ("a: b", "'a: b'"),
            ("it's: x", "'it''s: x'"),
            ("*", "'*'"),
            ("- x", "'- x'"),
            ("-x", "-x"),
            ("a #b", "'a #b'"),
            ("a#b", "a#b"),
            (" x", "' x'"),
            ("tab\there", "\"tab\\there\""),
            ("{}", "'{}'"),
            ("a\u{1f600}", "\"a\\U0001F600\""),
            ("ä", "ä"),
        ] {
            check(json!({ "k": text }), &format!("k: {expected}\n"));
        }
    }

    #[test]
    fn texts_of_several_lines_are_blocks() {
        check(json!({"k": "a\nb\n", "l": 1}), "k: |\n  a\n  b\nl: 1\n");
        check(json!({"k": "a\n\nb", "l": 1}), "k: |-\n  a\n\n  b\nl: 1\n");
        check(json!({"k": "a\n\n", "l": 1}), "k: |+\n  a\n\nl: 1\n");
        check(json!({"k": ["  a\nb\n"]}), "k:\n- |2\n    a\n  b\n");
        check(json!({"k": "a \nb"}), "k: \"a \\nb\"\n");
    }

    #[test]
    fn long_texts_are_broken_at_spaces_behind_column_80() {
        let word = "x".repeat(78);
        check(json!({"k": format!("{word} y z")}), &format!("k: {word}\n  y z\n"));
        check(json!({"k": format!("{word}: y z")}), &format!("k: '{word}:\n  y z'\n"));
        check(json!({"k": format!("{word}\t y z")}), &format!("k: \"{word}\\t\n  y z\"\n"));
    }

    #[test]
    fn keys_are_in_natural_order_and_long_ones_stand_alone() {
        check(
            json!({"a10": 1, "a9": 1, "aB": 1, "f:x": 1, "a.b": 1}),
            "a.b: 1\na9: 1\na10: 1\naB: 1\nf:x: 1\n",
        );
        let key = "k".repeat(129);
        check(json!({&key: {"a": 1}, "z": [1]}), &format!("? {key}\n: a: 1\nz:\n- 1\n"));
    }
}
