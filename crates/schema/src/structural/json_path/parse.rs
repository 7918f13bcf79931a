//! Parses the text of a path into steps, with the error texts of kubectl's parser.

use serde_json::Value;

use super::{FilterExpression, JsonPath, PathError, PathStep, Slice};

/// How deep paths may nest in unions and filters.
const MAX_DEPTH: usize = 16;

type Parsed<T> = Result<T, PathError>;

pub(super) fn parse(text: &str) -> Parsed<JsonPath> {
    nested(text, 0)
}

fn nested(text: &str, depth: usize) -> Parsed<JsonPath> {
    if depth > MAX_DEPTH {
        return Err(error("path nests too deep"));
    }
    Parser { rest: text, steps: Vec::new(), depth }.parse()
}

struct Parser<'t> {
    rest: &'t str,
    steps: Vec<PathStep>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn parse(mut self) -> Parsed<JsonPath> {
        while let Some(c) = self.rest.chars().next() {
            match c {
                _ if self.rest.starts_with("[?(") => self.filter()?,
                _ if self.rest.starts_with("..") => self.recursive()?,
                '\r' | '\n' => return Err(error("unclosed action")),
                ' ' | '@' | '$' => self.rest = &self.rest[1..],
                '[' => self.brackets()?,
                '"' | '\'' => self.quoted(c)?,
                '.' => {
                    self.rest = &self.rest[1..];
                    self.field();
                }
                '+' | '-' => self.number()?,
                c if c.is_numeric() => self.number()?,
                c if c == '_' || c.is_alphanumeric() => self.word(),
                c => {
                    let code = u32::from(c);
                    return Err(error(&format!("unrecognized character in action: U+{code:04X} '{c}'")));
                }
            }
        }
        Ok(JsonPath { steps: self.steps })
    }

    fn field(&mut self) {
        let mut escaped = false;
        let end = self.rest.find(|c: char| {
            let ends = !escaped && is_terminator(c);
            escaped = !escaped && c == '\\';
            ends
        });
        let name = self.take(end.unwrap_or(self.rest.len()));
        self.steps.push(match name {
            "*" => PathStep::Wildcard,
            name => PathStep::Field(name.replace('\\', "")),
        });
    }

    fn recursive(&mut self) -> Parsed<()> {
        if self.steps.last() == Some(&PathStep::Recursive) {
            return Err(error("invalid multiple recursive descent"));
        }
        self.rest = &self.rest[2..];
        self.steps.push(PathStep::Recursive);
        if self.rest.starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    fn word(&mut self) {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        let step = match self.take(end) {
            "true" => PathStep::Literal(true.into()),
            "false" => PathStep::Literal(false.into()),
            word => PathStep::Word(word.to_owned()),
        };
        self.steps.push(step);
    }

    fn number(&mut self) -> Parsed<()> {
        let sign = usize::from(self.rest.starts_with(['+', '-']));
        let digits = self.rest[sign..].find(|c: char| c != '.' && !c.is_numeric());
        let text = self.take(digits.map_or(self.rest.len(), |digits| digits + sign));
        let integer = text.parse::<i64>().map(Value::from).ok();
        let number = integer.or_else(|| text.parse::<f64>().ok().map(Value::from));
        self.steps
            .push(PathStep::Literal(number.ok_or_else(|| error(&format!("cannot parse number {text}")))?));
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Parsed<()> {
        let Some(end) = end_of_quote(self.rest, quote) else {
            return Err(error("unterminated quoted string"));
        };
        let text = self.take(end);
        self.steps.push(PathStep::Literal(unquote(&text[1..text.len() - 1]).into()));
        Ok(())
    }

    fn brackets(&mut self) -> Parsed<()> {
        let Some(end) = self.rest.find([']', '\n']).filter(|end| self.rest[*end..].starts_with(']')) else {
            return Err(error("unterminated array"));
        };
        let text = self.take(end + 1);
        let inside = &text[1..text.len() - 1];
        if inside.contains(',') {
            let part = |part: &str| nested(&format!("[{}]", part.trim_matches(' ')), self.depth + 1);
            let parts = inside.split(',').map(part).collect::<Parsed<_>>()?;
            self.steps.push(PathStep::Union(parts));
        } else if let Some(key) = single_quoted(inside) {
            let mut steps = nested(&format!(".{key}"), self.depth + 1)?.steps;
            self.steps.append(&mut steps);
        } else {
            self.steps.push(PathStep::Slice(slice(if inside == "*" { ":" } else { inside })?));
        }
        Ok(())
    }

    fn filter(&mut self) -> Parsed<()> {
        self.rest = &self.rest[3..];
        let end = end_of_filter(self.rest).ok_or_else(|| error("unterminated filter"))?;
        let text = self.take(end);
        if !self.rest.starts_with(")]") {
            return Err(error("unclosed array expect ]"));
        }
        self.rest = &self.rest[2..];
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let compared = text.find(is_operator).filter(|start| *start > 0).and_then(|start| {
            let (left, rest) = text.split_at(start);
            let right = rest.trim_start_matches(is_operator);
            let operator = &rest[..rest.len() - right.len()];
            (!right.is_empty()).then_some((left, operator, right))
        });
        let filter = match compared {
            None => FilterExpression { left: nested(text, self.depth + 1)?, test: None },
            Some((left, operator, right)) => FilterExpression {
                left: nested(left, self.depth + 1)?,
                test: Some((operator.to_owned(), nested(right, self.depth + 1)?)),
            },
        };
        self.steps.push(PathStep::Filter(Box::new(filter)));
        Ok(())
    }

    fn take(&mut self, length: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }
}

/// The position of the parenthesis that ends a filter, outside quotes, which must be paired.
fn end_of_filter(text: &str) -> Option<usize> {
    let (mut open, mut closed, mut before) = (None, false, '\0');
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return None,
            '"' | '\'' if open.is_none() => open = Some(c),
            '"' | '\'' if before != '\\' && open == Some(c) => closed = true,
            ')' if open.is_some() == closed => return Some(at),
            _ => {}
        }
        before = c;
    }
    None
}

/// The end of a quoted text, quotes included.
fn end_of_quote(text: &str, quote: char) -> Option<usize> {
    let mut before = quote;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '\n' => return None,
            c if c == quote && before != '\\' => return Some(at + 1),
            _ => before = c,
        }
    }
    None
}

fn unquote(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match (c, c == '\\') {
            (_, true) => match rest.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(other) => out.push(other),
                None => {}
            },
            (c, false) => out.push(c),
        }
    }
    out
}

fn single_quoted(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('\'')?.strip_suffix('\'')?;
    (!inside.contains('\'')).then_some(inside)
}

fn slice(text: &str) -> Parsed<Slice> {
    let bad = || error(&format!("invalid array index {text}"));
    let parts: Vec<_> = text.split(':').collect();
    let is_index =
        |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(is_index) {
        return Err(bad());
    }
    let number = |nth: usize| match parts.get(nth) {
        None | Some(&"") => Ok(None),
        Some(part) => {
            part.parse::<i64>().map(Some).map_err(|_| error(&format!("array index {part} is not a number")))
        }
    };
    let (from, to, step) = (number(0)?, number(1)?, number(2)?);
    let single = parts.len() == 1;
    Ok(Slice { from, to: if single { Some(from.unwrap_or(0) + 1) } else { to }, step, single })
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

fn error(text: &str) -> PathError {
    PathError(text.to_owned())
}
