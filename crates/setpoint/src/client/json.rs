//! JSON as kubectl prints it: four spaces for each level, keys sorted, HTML characters escaped.

use serde_json::Value;

const LEVEL: &str = "    ";

/// With a line break at the end.
pub(crate) fn pretty(value: &Value) -> String {
    let compact = compact(value);
    let mut out = String::with_capacity(compact.len() * 2);
    let mut depth = 0;
    let mut is_text = false;
    let mut is_escaped = false;
    let mut characters = compact.chars().peekable();
    while let Some(c) = characters.next() {
        if is_text {
            out.push(c);
            (is_text, is_escaped) = (is_escaped || c != '"', c == '\\' && !is_escaped);
            continue;
        }
        match c {
            '"' => {
                is_text = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line_break(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth -= 1;
                line_break(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line_break(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push(c),
        }
    }
    out.push('\n');
    out
}

/// In one line.
pub(crate) fn compact(value: &Value) -> String {
    api::go::json(value).expect("a JSON value can be written as JSON")
}

fn line_break(out: &mut String, depth: usize) {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str(LEVEL));
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_are_indented_by_four_spaces() {
        let value = json!({"b": [1, {"x": "a\"{,:<"}], "a": {}, "c": []});
        let expected = "{\n    \"a\": {},\n    \"b\": [\n        1,\n        {\n            \"x\": \"a\\\"{,:\\u003c\"\n        }\n    ],\n    \"c\": []\n}\n";
        assert_eq!(pretty(&value), expected);
    }
}
