//! Encodes a value as YAML, byte for byte as Go's library does.

use serde_json::Value;
use std::cmp::Ordering;

/// Kubernetes: lines are broken after this many characters where possible.
const WIDTH: usize = 80;
const INDENT: usize = 2;
/// Kubernetes: longer keys, in bytes, are written as explicit keys with a question mark.
const MAX_SIMPLE_KEY: usize = 128;

pub(super) fn to_yaml(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(members) if !members.is_empty() => write_block(value, 0, &mut out),
        Value::Array(items) if !items.is_empty() => write_block(value, 0, &mut out),
        scalar => {
            write_scalar(scalar, INDENT, &mut out);
            out.push('\n');
        }
    }
    out
}

/// A value as an item of a list at the left margin.
pub(super) fn yaml_item(value: &Value) -> String {
    let mut out = String::from("- ");
    write_item(value, INDENT, &mut out);
    out
}

/// Writes a non-empty map or list whose first line is begun already.
fn write_block(value: &Value, indent: usize, out: &mut String) {
    let mut is_first = true;
    let mut begin = |out: &mut String| {
        if !is_first {
            out.push_str(&" ".repeat(indent));
        }
        is_first = false;
    };
    for item in value.as_array().into_iter().flatten() {
        begin(out);
        out.push_str("- ");
        write_item(item, indent + INDENT, out);
    }
    let mut members: Vec<_> = value.as_object().into_iter().flatten().collect();
    members.sort_by(|one, other| key_order(one.0, other.0));
    for (key, member) in members {
        begin(out);
        if is_simple_key(key) {
            out.push_str(&key_text(key));
            out.push(':');
            write_member(member, indent, out);
        } else {
            out.push_str("? ");
            write_item(&Value::from(key.as_str()), indent + INDENT, out);
            out.push_str(&" ".repeat(indent));
            out.push_str(": ");
            write_item(member, indent + INDENT, out);
        }
    }
}

/// Whether a key can share a line with its value.
fn is_simple_key(key: &str) -> bool {
    key.len() <= MAX_SIMPLE_KEY && !key.contains(is_break)
}

fn write_item(item: &Value, indent: usize, out: &mut String) {
    if is_block(item) {
        write_block(item, indent, out);
    } else {
        write_scalar(item, indent, out);
        out.push('\n');
    }
}

fn write_member(member: &Value, indent: usize, out: &mut String) {
    if !is_block(member) {
        out.push(' ');
        write_scalar(member, indent + INDENT, out);
        out.push('\n');
        return;
    }
    // Lists are not indented below their key.
    let indent = if member.is_array() { indent } else { indent + INDENT };
    out.push('\n');
    out.push_str(&" ".repeat(indent));
    write_block(member, indent, out);
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// Kubernetes: go-yaml's order of keys, with numbers in them by value.
fn key_order(one: &str, other: &str) -> Ordering {
    let (a, b): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(a, b)| a != b) else { return a.len().cmp(&b.len()) };
    match (a[at].is_alphabetic(), b[at].is_alphabetic()) {
        (true, true) => return a[at].cmp(&b[at]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let before = a[..at].iter().rev().take_while(|c| c.is_ascii_digit());
    let is_inside = (a[at] == '0' || b[at] == '0') && before.clone().any(|c| *c != '0');
    let number = |letters: &[char]| {
        let digits = letters[at..].iter().take_while(|c| c.is_ascii_digit());
        let start = u64::from(is_inside);
        let value = digits.clone().fold(start, |value, c| {
            value.wrapping_mul(10).wrapping_add(u64::from(c.to_digit(10).unwrap_or(0)))
        });
        (value, digits.count())
    };
    number(&a).cmp(&number(&b)).then(a[at].cmp(&b[at]))
}

fn key_text(key: &str) -> String {
    let styles = ScalarStyles::of(key);
    let mut out = String::new();
    match styles {
        _ if styles.is_plain(key) => out.push_str(key),
        _ if styles.may_be_single && !key.contains('\n') && !schema::yaml::means_more(key) => {
            out.push_str(&format!("'{}'", key.replace('\'', "''")));
        }
        _ => write_double(key, None, &mut out),
    }
    out
}

fn write_scalar(value: &Value, indent: usize, out: &mut String) {
    let Value::String(text) = value else {
        out.push_str(&value.to_string());
        return;
    };
    let styles = ScalarStyles::of(text);
    if text.contains('\n') && styles.may_be_block {
        write_literal(text, indent, out);
    } else if styles.is_plain(text) {
        write_folded(text, indent, out);
    } else if styles.may_be_single && !schema::yaml::means_more(text) && !text.contains('\n') {
        out.push('\'');
        write_folded(&text.replace('\'', "''"), indent, out);
        out.push('\'');
    } else {
        write_double(text, Some(indent), out);
    }
}

/// The styles in which a text can be written.
#[derive(Clone, Copy, Debug)]
struct ScalarStyles {
    may_be_plain: bool,
    may_be_single: bool,
    may_be_block: bool,
}

impl ScalarStyles {
    // Kubernetes: go-yaml's analysis of a scalar.
    fn of(text: &str) -> ScalarStyles {
        let letters: Vec<char> = text.chars().collect();
        let is_blank = |at: usize| letters.get(at).is_none_or(|c| matches!(c, ' ' | '\t') || is_break(*c));
        let mut indicates = text.starts_with("---") || text.starts_with("...");
        let (mut is_special, mut breaks_after_space, mut spaces_after_break) = (false, false, false);
        for (at, letter) in letters.iter().copied().enumerate() {
            let before = at.checked_sub(1).map(|before| letters[before]);
            indicates |= match letter {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if at == 0 =>
                {
                    true
                }
                '?' | '-' if at == 0 => is_blank(at + 1),
                ':' => is_blank(at + 1),
                '#' => before.is_some_and(|before| matches!(before, ' ' | '\t') || is_break(before)),
                _ => false,
            };
            is_special |= !is_printable(letter);
            breaks_after_space |= is_break(letter) && before == Some(' ');
            spaces_after_break |= letter == ' ' && before.is_some_and(is_break);
        }
        let edge = |c: Option<&char>| c.is_some_and(|c| *c == ' ' || is_break(*c));
        let is_bare = edge(letters.first()) || edge(letters.last());
        let is_bad = is_special || breaks_after_space;
        ScalarStyles {
            may_be_plain: !indicates && !is_bare && !is_bad && !text.contains(is_break),
            may_be_single: !is_bad && !spaces_after_break,
            may_be_block: !is_bad && letters.last() != Some(&' ') && !text.is_empty(),
        }
    }

    fn is_plain(self, text: &str) -> bool {
        self.may_be_plain && !schema::yaml::means_more(text)
    }
}

/// Line breaks of YAML.
fn is_break(letter: char) -> bool {
    matches!(letter, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_printable(letter: char) -> bool {
    matches!(letter, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && letter != '\u{feff}'
}

/// Breaks long lines at single spaces.
fn write_folded(text: &str, indent: usize, out: &mut String) {
    let mut column = column(out);
    let letters: Vec<char> = text.chars().collect();
    for (at, letter) in letters.iter().copied().enumerate() {
        let is_single =
            at > 0 && letters[at - 1] != ' ' && letters.get(at + 1).is_some_and(|next| *next != ' ');
        if letter == ' ' && is_single && column > WIDTH {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else {
            if at > 0 && is_break(letters[at - 1]) && !is_break(letter) {
                out.push_str(&" ".repeat(indent));
                column = indent;
            }
            out.push(letter);
            column += 1;
        }
    }
}

fn column(out: &str) -> usize {
    out.rsplit('\n').next().map_or(0, |line| line.chars().count())
}

/// `indent` is `None` where the text may not be broken.
fn write_double(text: &str, indent: Option<usize>, out: &mut String) {
    out.push('"');
    let mut column = column(out);
    let letters: Vec<char> = text.chars().collect();
    let mut was_space = false;
    for (at, letter) in letters.iter().copied().enumerate() {
        let escaped = match letter {
            '\0' => "\\0".to_owned(),
            '\u{7}' => "\\a".to_owned(),
            '\u{8}' => "\\b".to_owned(),
            '\t' => "\\t".to_owned(),
            '\n' => "\\n".to_owned(),
            '\u{b}' => "\\v".to_owned(),
            '\u{c}' => "\\f".to_owned(),
            '\r' => "\\r".to_owned(),
            '\u{1b}' => "\\e".to_owned(),
            '"' => "\\\"".to_owned(),
            '\\' => "\\\\".to_owned(),
            '\u{85}' => "\\N".to_owned(),
            '\u{2028}' => "\\L".to_owned(),
            '\u{2029}' => "\\P".to_owned(),
            odd if !is_printable(odd) => match u32::from(odd) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            },
            ' ' => {
                let is_inside = at > 0 && at + 1 < letters.len();
                match indent.filter(|_| !was_space && column > WIDTH && is_inside) {
                    Some(indent) => {
                        out.push('\n');
                        out.push_str(&" ".repeat(indent));
                        column = indent;
                        if letters[at + 1] == ' ' {
                            out.push('\\');
                            column += 1;
                        }
                    }
                    None => {
                        out.push(' ');
                        column += 1;
                    }
                }
                was_space = true;
                continue;
            }
            plain => plain.to_string(),
        };
        was_space = false;
        column += escaped.chars().count();
        out.push_str(&escaped);
    }
    out.push('"');
}

fn write_literal(text: &str, indent: usize, out: &mut String) {
    out.push('|');
    if text.starts_with([' ', '\n']) {
        out.push_str(&INDENT.to_string());
    }
    let body = match text.strip_suffix('\n') {
        None => {
            out.push('-');
            text
        }
        Some(rest) if rest.is_empty() || rest.ends_with('\n') => {
            out.push('+');
            rest
        }
        Some(rest) => rest,
    };
    for line in body.split('\n') {
        out.push('\n');
        let mut is_begun = false;
        for letter in line.chars() {
            if !is_begun && !is_break(letter) {
                out.push_str(&" ".repeat(indent));
            }
            is_begun = !is_break(letter);
            out.push(letter);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::to_yaml;
    use serde_json::json;

    #[test]
    fn yaml_equals_that_of_go() {
        let long = "a word and another one ".repeat(6);
        for (value, expected) in [
            (json!({}), "{}\n".to_owned()),
            (
                json!({"b": "x", "a": ["1", 1, null, true, {"k": "v", "j": []}], "e": ""}),
                "a:\n- \"1\"\n- 1\n- null\n- true\n- j: []\n  k: v\nb: x\ne: \"\"\n".to_owned(),
            ),
            (
                json!({"a10": 1, "a2": 2, "a": 3, "-": 4}),
                "'-': 4\na: 3\na2: 2\na10: 1\n".to_owned(),
            ),
            (
                json!({"f:x": {".": {}}, "yes": "no", "t": "2026-01-01T00:00:00Z", "v": "- x", "w": "a: b"}),
                "f:x:\n  .: {}\nt: \"2026-01-01T00:00:00Z\"\nv: '- x'\nw: 'a: b'\n\"yes\": \"no\"\n".to_owned(),
            ),
            (
                json!({"one": "a\nb\n", "two": "a\n\nb", "three": "a\n\n", "four": " a\nb"}),
                "four: |2-\n   a\n  b\none: |\n  a\n  b\nthree: |+\n  a\n\ntwo: |-\n  a\n\n  b\n".to_owned(),
            ),
            (
                json!({"k": long.trim()}),
                "k: a word and another one a word and another one a word and another one a word and\n  another one a \
                 word and another one a word and another one\n"
                    .to_owned(),
            ),
        ] {
            assert_eq!(to_yaml(&value), expected);
        }
    }

    #[test]
    fn long_keys_are_explicit_keys() {
        let key = "k".repeat(129);
        let value = json!({"a": {key.clone(): "v", "b": {key.clone(): {"c": 1, "d": [2]}}, "l": {key.clone(): [1, 2]}}});
        let expected = format!(
            "a:\n  b:\n    ? {key}\n    : c: 1\n      d:\n      - 2\n  ? {key}\n  : v\n  l:\n    ? {key}\n    : - 1\n      - 2\n"
        );
        assert_eq!(to_yaml(&value), expected);
    }

    #[test]
    fn line_separators_break_lines_as_in_go() {
        for (value, expected) in [
            (json!({"z": "<&>\u{2028}é"}), "z: '<&>\u{2028}  é'\n"),
            (json!({"z": "a\u{2029}"}), "z: 'a\u{2029}'\n"),
            (json!({"z": "a\u{2028} b"}), "z: \"a\\L b\"\n"),
            (json!({"z": "a\n\u{2028}b"}), "z: |-\n  a\n\u{2028}  b\n"),
        ] {
            assert_eq!(to_yaml(&value), expected);
        }
    }
}
