//! String functions: `substring`, `split`, `replace`, `format` and others.

pub(crate) mod format;

use super::{Argument, Body, CallEstimate, Function, Library, Outcome, Overload, charge};
use crate::{
    cost::{Range, STRING_TRAVERSAL, scale},
    error::Error,
    ty::Type,
    value::Value,
};

pub(crate) fn library() -> Library {
    use Type::{Int, String};
    let texts = || Type::list(String);
    let functions = vec![
        Function::new("charAt", vec![member("string_char_at_int", &[String, Int], String, char_at)]),
        Function::new(
            "indexOf",
            vec![
                search("string_index_of_string", &[String, String], index_of),
                search("string_index_of_string_int", &[String, String, Int], index_of),
            ],
        ),
        Function::new(
            "lastIndexOf",
            vec![
                search("string_last_index_of_string", &[String, String], last_index_of),
                search("string_last_index_of_string_int", &[String, String, Int], last_index_of),
            ],
        ),
        Function::new("lowerAscii", vec![copy("string_lower_ascii", &[String], lower)]),
        Function::new("upperAscii", vec![copy("string_upper_ascii", &[String], upper)]),
        Function::new("trim", vec![copy("string_trim", &[String], trim)]),
        Function::new(
            "substring",
            vec![
                copy("string_substring_int", &[String, Int], substring),
                copy("string_substring_int_int", &[String, Int, Int], substring),
            ],
        ),
        Function::new(
            "replace",
            vec![
                replacing("string_replace_string_string", &[String, String, String]),
                replacing("string_replace_string_string_int", &[String, String, String, Int]),
            ],
        ),
        Function::new(
            "split",
            vec![
                splitting("string_split_string", &[String, String]),
                splitting("string_split_string_int", &[String, String, Int]),
            ],
        ),
        Function::new(
            "join",
            vec![joining("list_join", &[texts()]), joining("list_join_string", &[texts(), String])],
        ),
        Function::new("strings.quote", vec![quoting()]),
        Function::new("format", vec![formatting()]),
    ];
    Library { functions, ..Library::default() }
}

fn member(id: &'static str, parameters: &[Type], result: Type, body: Body) -> Overload {
    Overload::member(id, parameters.to_vec(), result, body)
}

fn search(id: &'static str, parameters: &[Type], body: Body) -> Overload {
    member(id, parameters, Type::Int, body).costs(charge::traverse).estimated(charge::traverse_estimate)
}

fn copy(id: &'static str, parameters: &[Type], body: Body) -> Overload {
    member(id, parameters, Type::String, body).costs(charge::walk).estimated(charge::copy_estimate)
}

fn replacing(id: &'static str, parameters: &[Type]) -> Overload {
    member(id, parameters, Type::String, replace).costs(charge::walk_twice).estimated(replace_estimate)
}

fn splitting(id: &'static str, parameters: &[Type]) -> Overload {
    let texts = Type::list(Type::String);
    member(id, parameters, texts, split).costs(charge::walk_twice).estimated(split_estimate)
}

fn joining(id: &'static str, parameters: &[Type]) -> Overload {
    member(id, parameters, Type::String, join).costs(join_cost).estimated(join_estimate)
}

fn quoting() -> Overload {
    let overload = Overload::global("strings_quote", vec![Type::String], Type::String, quote);
    overload.costs(charge::walk).estimated(quote_estimate)
}

fn formatting() -> Overload {
    let parameters = [Type::String, Type::list(Type::Dyn)];
    let overload = member("string_format", &parameters, Type::String, format::format);
    overload.costs(charge::walk).estimated(charge::walk_estimate)
}

fn out_of_range(index: i64) -> Error {
    Error::new(format!("index out of range: {index}"))
}

/// The byte offset of a character by its number; the end counts as one more.
fn offset(text: &str, index: i64) -> Result<usize, Error> {
    let index = usize::try_from(index).map_err(|_| out_of_range(index))?;
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.into_iter().nth(index).ok_or_else(|| out_of_range(index as i64))
}

fn char_at<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text), Value::Int(index)] = args else { return Err(Error::no_such_overload()) };
    let rest = &text[offset(text, *index)?..];
    let end = rest.chars().next().map_or(0, char::len_utf8);
    Ok(Value::string(&rest[..end]))
}

fn index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text, part, 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        _ => return Err(Error::no_such_overload()),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    // Past the end there is nothing to find.
    let Ok(start) = offset(text, from) else { return Ok(Value::Int(-1)) };
    let found = text[start..].find(&**part);
    Ok(Value::Int(found.map_or(-1, |at| characters(&text[..start + at]))))
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => {
            let length = characters(text);
            if part.is_empty() {
                return Ok(Value::Int(length));
            }
            if text.len() < part.len() {
                return Ok(Value::Int(-1));
            }
            (text, part, length - 1)
        }
        [Value::String(text), Value::String(part), Value::Int(from)] => (text, part, *from),
        _ => return Err(Error::no_such_overload()),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from));
    }
    if from >= characters(text) {
        return Ok(Value::Int(-1));
    }
    // Matches that begin at or before the last permitted character end before this.
    let mut end = text.len().min(offset(text, from)? + part.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Ok(Value::Int(text[..end].rfind(&**part).map_or(-1, |at| characters(&text[..at]))))
}

fn characters(text: &str) -> i64 {
    text.chars().count() as i64
}

fn lower<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    Ok(Value::string(text.to_ascii_lowercase()))
}

fn upper<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    Ok(Value::string(text.to_ascii_uppercase()))
}

fn trim<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    Ok(Value::string(text.trim()))
}

fn substring<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::String(text), Value::Int(start)] => Ok(Value::string(&text[offset(text, *start)?..])),
        [Value::String(text), Value::Int(start), Value::Int(end)] => {
            if start > end {
                let problem = format!("invalid substring range. start: {start}, end: {end}");
                return Err(Error::new(problem));
            }
            Ok(Value::string(&text[offset(text, *start)?..offset(text, *end)?]))
        }
        _ => Err(Error::no_such_overload()),
    }
}

fn replace<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, old, new, limit) = match args {
        [Value::String(text), Value::String(old), Value::String(new)] => (text, old, new, -1),
        [Value::String(text), Value::String(old), Value::String(new), Value::Int(limit)] => {
            (text, old, new, *limit)
        }
        _ => return Err(Error::no_such_overload()),
    };
    // A negative limit is none.
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = text.matches(&**old).take(limit).count();
    if text.len().saturating_add(count.saturating_mul(new.len())) > charge::TEXT_LIMIT {
        return Err(Error::cost_limit_exceeded());
    }
    Ok(Value::string(text.replacen(&**old, new, count)))
}

fn split<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text, separator, -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(Error::no_such_overload()),
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<&str> =
        if separator.is_empty() { explode(text, limit) } else { text.splitn(limit, &**separator).collect() };
    Ok(Value::list(parts.into_iter().map(Value::string).collect::<Vec<_>>()))
}

/// One text for each character, the rest in the last.
fn explode(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while parts.len() < limit
        && let Some(first) = rest.chars().next()
    {
        let end = if parts.len() + 1 == limit { rest.len() } else { first.len_utf8() };
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts
}

fn join<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let (list, separator) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, &**separator),
        _ => return Err(Error::no_such_overload()),
    };
    let mut out = String::new();
    for (index, item) in list.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        let Some(text) = item.as_str() else {
            return Err(Error::new(format!("join: invalid input: {}", format::plain(&item))));
        };
        out.push_str(text);
        if out.len() > charge::TEXT_LIMIT {
            return Err(Error::cost_limit_exceeded());
        }
    }
    Ok(Value::string(out))
}

fn quote<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\x07' => out.push_str(r"\a"),
            '\x08' => out.push_str(r"\b"),
            '\x0c' => out.push_str(r"\f"),
            '\n' => out.push_str(r"\n"),
            '\r' => out.push_str(r"\r"),
            '\t' => out.push_str(r"\t"),
            '\x0b' => out.push_str(r"\v"),
            '\\' | '"' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(Value::string(out))
}

/// Two quotes, and at worst a backslash for every character. cel-go: an unknown size wraps around to nothing.
fn quote_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args.first()?.size;
    let quoted = Range { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
    Some(CallEstimate::sized(size.scaled(STRING_TRAVERSAL), quoted))
}

fn join_cost(_: &[Value<'_>], result: &Value<'_>) -> u64 {
    scale(result.size(), 2.0 * STRING_TRAVERSAL)
}

fn join_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let list = args.first()?;
    let mut size = Range::ZERO;
    if list.ty.first_parameter().is_some() {
        size = list.size.times(list.element_size);
    }
    if let Some(separator) = args.get(1) {
        let between = Range { min: list.size.min.saturating_sub(1), max: list.size.max.saturating_sub(1) };
        size = size.plus(separator.size.times(between));
    }
    Some(CallEstimate::sized(size.scaled(STRING_TRAVERSAL), size))
}

/// At worst every character becomes an element, unless a literal says how many there are.
fn split_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let size = args.first()?.size;
    let max = match args.get(2).and_then(|limit| limit.literal) {
        // Kubernetes: a negative limit becomes a very large number.
        Some(Value::Int(limit)) => *limit as u64,
        _ => size.max,
    };
    Some(CallEstimate::sized(size.scaled(2.0 * STRING_TRAVERSAL), Range { min: 0, max }))
}

fn replace_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let [text, old, new, ..] = args else { return None };
    let (longest, kept) = replacements(text.size.max, old.size.min, new.size.max <= old.size.min);
    let max = longest.saturating_mul(new.size.max).saturating_add(kept);
    let (fewest, kept) = replacements(text.size.min, old.size.max, old.size.max <= new.size.min);
    let min = fewest.saturating_mul(new.size.min).saturating_add(kept);
    Some(CallEstimate::sized(text.size.scaled(2.0 * STRING_TRAVERSAL), Range { min, max }))
}

/// The number of replacements for the extreme result, and how much of the text remains in it.
fn replacements(text: u64, old: u64, none: bool) -> (u64, u64) {
    if old == 0 {
        // The empty text is found around every character.
        (text.saturating_add(1), text)
    } else if none {
        (0, text)
    } else {
        ((text as f64 / old as f64).ceil() as u64, 0)
    }
}
