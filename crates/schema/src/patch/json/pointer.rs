//! JSON pointers (RFC 6901): finds the container that a path leads into, and the last step.

use serde_json::{Map, Value};

/// The object or list that contains the value of a path.
pub(super) enum Container<'d> {
    Object(&'d mut Map<String, Value>),
    List(&'d mut Vec<Value>),
}

/// The container of a path and the unescaped last step. Text before the first slash is ignored.
pub(super) fn find<'d>(document: &'d mut Value, path: &str) -> Option<(Container<'d>, String)> {
    let (_, steps) = path.split_once('/')?;
    let (leading, last) = match steps.rsplit_once('/') {
        Some((leading, last)) => (Some(leading), last),
        None => (None, steps),
    };
    let mut found = document;
    for step in leading.into_iter().flat_map(|leading| leading.split('/')) {
        let step = unescape(step);
        found = match found {
            Value::Object(members) => members.get_mut(&step)?,
            Value::Array(items) => {
                let at = existing(&step, items.len()).ok()?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    let container = match found {
        Value::Object(members) => Container::Object(members),
        Value::Array(items) => Container::List(items),
        _ => return None,
    };
    Some((container, unescape(last)))
}

impl Container<'_> {
    /// The value: an error if a list lacks it, `None` if an object does.
    pub(super) fn get(&self, key: &str) -> Result<Option<&Value>, String> {
        match self {
            Container::Object(members) => Ok(members.get(key)),
            Container::List(items) => existing(key, items.len()).map(|at| items.get(at)),
        }
    }

    /// How many items shift when one is added or removed there.
    pub(super) fn moved_items(&self, key: &str) -> usize {
        match self {
            Container::Object(_) => 0,
            Container::List(_) if key == "-" => 0,
            Container::List(items) => {
                let at = number(key).ok().and_then(|at| usize::try_from(at).ok());
                items.len().saturating_sub(at.unwrap_or(0))
            }
        }
    }

    pub(super) fn add(&mut self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Container::Object(members) => {
                members.insert(key.into(), value);
            }
            Container::List(items) if key == "-" => items.push(value),
            Container::List(items) => {
                let index = number(key)
                    .map_err(|problem| format!("value was not a proper array index: '{key}': {problem}"))?;
                let at = within(index, items.len() + 1)?;
                items.insert(at, value);
            }
        }
        Ok(())
    }

    /// Sets a value that a list must have and an object may lack.
    pub(super) fn replace(&mut self, key: &str, value: Value) -> Result<(), String> {
        match self {
            Container::Object(members) => {
                members.insert(key.into(), value);
            }
            Container::List(items) => {
                let at = existing(key, items.len())?;
                items[at] = value;
            }
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, key: &str) -> Result<Value, String> {
        match self {
            Container::Object(members) => members
                .remove(key)
                .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
            Container::List(items) => existing(key, items.len()).map(|at| items.remove(at)),
        }
    }
}

fn existing(key: &str, length: usize) -> Result<usize, String> {
    within(number(key)?, length)
}

/// The position of an index in a list of this length; negative ones count from the end.
fn within(index: i64, length: usize) -> Result<usize, String> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let at = if index < 0 { index.saturating_add(length) } else { index };
    if at < 0 || at >= length {
        return Err(format!("Unable to access invalid index: {index}: invalid index referenced"));
    }
    usize::try_from(at).map_err(|problem| problem.to_string())
}

/// `strconv.Atoi`.
fn number(key: &str) -> Result<i64, String> {
    let digits = key.strip_prefix(['+', '-']).unwrap_or(key);
    let problem = match key.parse() {
        Ok(number) => return Ok(number),
        Err(_) if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            "value out of range"
        }
        Err(_) => "invalid syntax",
    };
    Err(format!("strconv.Atoi: parsing {}: {problem}", api::go::quote(key)))
}

/// `~1` is a slash and `~0` a tilde, in one pass.
fn unescape(step: &str) -> String {
    let mut pieces = step.split('~');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match (piece.strip_prefix('1'), piece.strip_prefix('0')) {
            (Some(rest), _) => text.extend(["/", rest]),
            (_, Some(rest)) => text.extend(["~", rest]),
            _ => text.extend(["~", piece]),
        }
    }
    text
}
