//! Parses the `fieldPath` of a rule into the path of its errors.

use crate::structural::shape::{Additional, Shape, Structural};

/// The path relative to the rule; `None` if the schema has no such field.
pub(super) fn normalize(schema: &Structural, from: &Shape, text: &str) -> Option<String> {
    let mut path = String::new();
    let mut shape = from;
    let mut rest = text;
    while !rest.is_empty() {
        let name;
        (name, rest) = if let Some(after) = rest.strip_prefix("['") {
            quoted(after)?
        } else {
            let after = rest.strip_prefix('.')?;
            let (name, rest) = after.split_at(after.find(['.', '[', ']']).unwrap_or(after.len()));
            (name.to_owned(), rest)
        };
        if !shape.properties.is_empty() {
            shape = schema.shape(schema.property(shape, &name)?);
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
        } else if let Additional::Shape(id) = shape.additional {
            shape = schema.shape(id);
            path.push_str(&format!("[{name}]"));
        } else {
            return None;
        }
    }
    Some(path)
}

/// A name up to its closing quote, unescaped, and the text after the bracket.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '\'' => return Some((name, text[at + 1..].strip_prefix(']')?)),
            '\\' => name.push(match rest.next()?.1 {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                plain @ ('\'' | '\\') => plain,
                _ => return None,
            }),
            c => name.push(c),
        }
    }
    None
}
