//! The path of a field in, the schema of that field out: `.spec.size`, and `.spec['a.b']` where that is allowed.

use serde_json::Value;

/// How a path may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    Dots,
    DotsAndBrackets,
}

type Problem = String;

/// The steps of the path and the schema that it leads to.
pub(super) fn find<'v>(
    path: &str,
    schema: &'v Value,
    notation: Notation,
) -> Result<(Vec<String>, &'v Value), Problem> {
    let end = || "unexpected end of JSON path".to_owned();
    let mut schema = schema;
    let mut steps = Vec::new();
    let mut rest = path;
    while let Some(token) = next_token(&mut rest) {
        let name = match token {
            "." => next_token(&mut rest).ok_or_else(end)?.to_owned(),
            "[" if notation == Notation::Dots => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = next_token(&mut rest).ok_or_else(end)?;
                let inner = quoted.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
                let inner = inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                unescape(inner).map_err(|problem| format!("invalid string literal: {problem}"))?
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        schema = member(schema, &name).ok_or("does not refer to a valid field")?;
        steps.push(name);
        if token == "[" {
            match next_token(&mut rest) {
                None => return Err(end()),
                Some("]") => {}
                Some(other) => return Err(format!("expected ] but got {other}")),
            }
        }
    }
    Ok((steps, schema))
}

fn member<'v>(schema: &'v Value, name: &str) -> Option<&'v Value> {
    let properties = schema.get("properties").and_then(Value::as_object).filter(|it| !it.is_empty());
    match properties {
        Some(properties) => properties.get(name),
        None => schema.get("additionalProperties").filter(|it| it.is_object()),
    }
}

/// A delimiter, a quoted text, or whatever stands before the next delimiter.
fn next_token<'t>(rest: &mut &'t str) -> Option<&'t str> {
    let text = *rest;
    let first = text.chars().next()?;
    let end = match first {
        '.' | '[' | ']' => 1,
        '\'' => closing_quote(text).map_or(text.len(), |at| at + 1),
        _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
    };
    let (token, after) = text.split_at(end);
    *rest = after;
    Some(token)
}

fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\')
}

fn unescape(text: &str) -> Result<String, Problem> {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        let escaped = if letter == '\\' { letters.next() } else { None };
        plain.push(match escaped {
            None => letter,
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some(itself @ ('\'' | '\\')) => itself,
            Some(other) => return Err(format!("invalid escape char \\{other}")),
        });
    }
    Ok(plain)
}
