//! `'%d of %s'.format([…])`: parses, checks and renders the clauses of a format.

mod check;
mod render;

use crate::{error::Error, library::Outcome, library::charge, value::Value};

pub(crate) use check::problem;
pub(super) use render::plain;

/// The conversion of a clause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Text,
    Decimal,
    Fixed,
    Scientific,
    Binary,
    Hex { upper: bool },
    Octal,
}

/// `%.2f` is the verb `f` with the precision 2.
#[derive(Clone, Copy)]
struct Clause {
    verb: Verb,
    precision: Option<usize>,
}

/// A piece of a format.
enum Piece<'f> {
    Literal(&'f str),
    Clause(&'f str),
}

/// The text before the next clause, or that clause without its percent sign; and the rest.
fn next_piece(format: &str) -> Option<(Piece<'_>, &str)> {
    if let Some(rest) = format.strip_prefix("%%") {
        return Some((Piece::Literal("%"), rest));
    }
    if let Some(rest) = format.strip_prefix('%') {
        return Some((Piece::Clause(rest), rest));
    }
    let end = format.find('%').unwrap_or(format.len());
    (end > 0).then(|| (Piece::Literal(&format[..end]), &format[end..]))
}

impl Clause {
    /// Parses the clause at the beginning of the text; returns the rest.
    fn read(text: &str) -> Result<(Clause, &str), String> {
        let wrap = |problem: String| format!("could not parse formatting clause: {problem}");
        let (precision, rest) =
            precision(text).map_err(|problem| wrap(format!("error while parsing precision: {problem}")))?;
        let letter = rest.as_bytes().first().copied().unwrap_or_default();
        let verb = match letter {
            b's' => Verb::Text,
            b'd' => Verb::Decimal,
            b'f' => Verb::Fixed,
            b'e' => Verb::Scientific,
            b'b' => Verb::Binary,
            b'x' | b'X' => Verb::Hex { upper: letter == b'X' },
            b'o' => Verb::Octal,
            _ => {
                let letter = char::from(letter);
                return Err(wrap(format!("unrecognized formatting clause \"{letter}\"")));
            }
        };
        Ok((Clause { verb, precision }, &rest[1..]))
    }
}

fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(rest) = text.strip_prefix('.') else { return Ok((None, text)) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = rest.split_at(digits);
    if rest.is_empty() {
        return Err("could not find end of precision specifier".to_owned());
    }
    let number = digits.parse::<i64>().ok().and_then(|number| usize::try_from(number).ok());
    let Some(number) = number else {
        let problem = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
        let quoted = api::go::quote(digits);
        return Err(format!(
            "error while converting precision to integer: strconv.Atoi: parsing {quoted}: {problem}"
        ));
    };
    Ok((Some(number), rest))
}

/// cel-go's error for an argument that a clause does not accept.
fn refusal(verb: Verb, given: &str) -> String {
    let rule = match verb {
        Verb::Text => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
             durations, and timestamps"
        }
        Verb::Decimal => "decimal clause can only be used on integers",
        Verb::Fixed => "fixed-point clause can only be used on doubles",
        Verb::Scientific => "scientific clause can only be used on doubles",
        Verb::Binary => "only integers and bools can be formatted as binary",
        Verb::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
        Verb::Octal => "octal clause can only be used on integers",
    };
    format!("{rule}, was given {given}")
}

fn out_of_range(index: usize) -> String {
    format!("index {index} out of range")
}

const CUT_SHORT: &str = "unexpected end of string";

fn during_formatting(problem: impl std::fmt::Display) -> String {
    format!("error during formatting: {problem}")
}

pub(super) fn format<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(format), Value::List(values)] = args else { return Err(Error::no_such_overload()) };
    let mut out = String::new();
    let mut rest = &**format;
    let mut index = 0;
    while let Some((piece, after)) = next_piece(rest) {
        rest = match piece {
            Piece::Literal(text) => {
                out.push_str(text);
                after
            }
            Piece::Clause(text) => {
                let value = values.at(index).ok_or_else(|| Error::new(out_of_range(index)))?;
                if text.is_empty() {
                    return Err(Error::new(CUT_SHORT));
                }
                let (clause, after) = Clause::read(text).map_err(Error::new)?;
                if clause.precision.is_some_and(|precision| precision > charge::TEXT_LIMIT) {
                    return Err(Error::cost_limit_exceeded());
                }
                let text = render::clause(clause, &value);
                out.push_str(&text.map_err(|problem| Error::new(during_formatting(problem)))?);
                index += 1;
                after
            }
        };
        if out.len() > charge::TEXT_LIMIT {
            return Err(Error::cost_limit_exceeded());
        }
    }
    Ok(Value::string(out))
}
