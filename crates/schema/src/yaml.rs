//! Converts YAML to JSON by the rules of sigs.k8s.io/yaml: YAML 1.1, the first document only.
//!
//! ```
//! let read = schema::yaml::to_json(b"mode: 0644\non: yes\nname: 1e3\n")?;
//! assert_eq!(read.json, br#"{"mode":420,"name":1000,"true":true}"#);
//! # Ok::<(), schema::decode::DecodeError>(())
//! ```
//!
//! Uses the events of serde-saphyr's parser: only they show which scalars are numbers or booleans, and the
//! line of a duplicate key.

use std::collections::HashMap;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use crate::decode::{DecodeError, Decoded, FieldValidation, decode};
use crate::depth::MAX_DEPTH;
use crate::encode::encode_any;
use crate::types::{TypeId, Types};

mod resolve;
mod words;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromYaml {
    /// Keys are sorted; of duplicates the last counts.
    pub json: Vec<u8>,
    /// The strict errors about duplicate keys.
    pub duplicates: Option<String>,
}

/// Whether a text needs quotes, since YAML would read it as a number, a time or null.
#[must_use]
pub fn means_more(text: &str) -> bool {
    !matches!(resolve::plain(text), Ok(serde_json::Value::String(_)))
        || resolve::is_time(text)
        || resolve::is_base_60(text)
}

/// Converts YAML to JSON.
pub fn to_json(yaml: &[u8]) -> Result<FromYaml, DecodeError> {
    let text = std::str::from_utf8(yaml).map_err(|_| error("invalid UTF-8"))?;
    check_first_line(text)?;
    let mut options = Options::default();
    (options.flow_nesting_limit, options.block_nesting_limit) = (MAX_DEPTH + 1, MAX_DEPTH + 1);
    let events = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder {
        text,
        events,
        ragged_end: (!text.ends_with('\n')).then_some(text.len()),
        open: Vec::new(),
        anchors: HashMap::new(),
        built: Size::default(),
        copied: Size::default(),
        duplicates: Vec::new(),
    };
    let value = builder.document()?;
    let duplicates = (!builder.duplicates.is_empty())
        .then(|| format!("{DUPLICATES}  {}", builder.duplicates.join("\n  ")));
    Ok(FromYaml { json: encode_any(&value), duplicates })
}

/// Kubernetes: the first line must not begin with a tab. The parser skips it there, and rejects it on later
/// lines only.
fn check_first_line(text: &str) -> Result<(), DecodeError> {
    for (at, line) in text.lines().enumerate() {
        match line.trim_start_matches(' ').chars().next() {
            None | Some('#') => {}
            Some('\t') if at == 0 => return Err(error(words::NO_TOKEN)),
            Some('\t') => return Err(error(&format!("line {}: {}", at + 1, words::NO_TOKEN))),
            Some(_) => break,
        }
    }
    Ok(())
}

/// Decodes an object of a type from YAML: as from JSON, but duplicate keys are reported by line.
pub fn decode_yaml(
    types: &Types,
    id: TypeId,
    yaml: &[u8],
    validation: FieldValidation,
) -> Result<Decoded, DecodeError> {
    let FromYaml { json, duplicates } = to_json(yaml)?;
    let read = decode(types, id, &json, validation);
    let Some(duplicates) = duplicates.filter(|_| validation != FieldValidation::Ignore) else { return read };
    match (read, validation) {
        (Ok(_), FieldValidation::Strict) => Err(DecodeError::Strict(vec![duplicates])),
        (Ok(mut read), _) => {
            read.warnings.splice(0..0, lines(&duplicates));
            Ok(read)
        }
        (Err(DecodeError::Strict(mut errors)), _) => {
            errors.insert(0, duplicates);
            Err(DecodeError::Strict(errors))
        }
        (malformed, _) => malformed,
    }
}

/// The strict errors, one warning per line.
#[must_use]
pub fn lines(duplicates: &str) -> Vec<String> {
    duplicates.trim_start_matches(DUPLICATES).lines().map(|line| line.trim().to_owned()).collect()
}

// Kubernetes: the texts of Go's library.
const EXCESSIVE: &str = "document contains excessive aliasing";

/// Kubernetes: the error begins with this; the warnings omit it.
const DUPLICATES: &str = "yaml: unmarshal errors:\n";

/// Builds the value of a document from its events, without recursion.
struct Builder<'y> {
    text: &'y str,
    events: Parser<'y, granit_parser::StrInput<'y>>,
    /// The end of the text, if its last line has no line break.
    ragged_end: Option<usize>,
    /// The open lists and maps, outermost first.
    open: Vec<Open>,
    anchors: HashMap<usize, Named>,
    /// All nodes built so far.
    built: Size,
    /// How much of that is copies for anchors and aliases.
    copied: Size,
    duplicates: Vec<String>,
}

#[derive(Clone, Copy, Default)]
struct Size {
    nodes: usize,
    /// Memory, roughly.
    bytes: usize,
}

impl Size {
    fn of_scalar(text: &str) -> Size {
        Size { nodes: 1, bytes: NODE_BYTES + text.len() }
    }

    fn add(&mut self, other: Size) {
        self.nodes += other.nodes;
        self.bytes += other.bytes;
    }

    fn since(self, earlier: Size) -> Size {
        Size { nodes: self.nodes - earlier.nodes, bytes: self.bytes - earlier.bytes }
    }
}

/// The size of a node: a `serde_json::Value`.
const NODE_BYTES: usize = 32;
/// The size of a map without its members: the first allocation of a `BTreeMap` has room for 11.
const MAP_BYTES: usize = 640;
/// The most memory for copies of anchors and aliases. That is several times the largest body, so no manifest
/// that can be stored needs more; without a limit each line of a text could double the result.
const MAX_COPIED_BYTES: usize = 16 << 20;
/// How many duplicate keys are listed in an error. A response carries 64 warnings at most.
const MAX_DUPLICATES: usize = 1000;

/// A value with an anchor.
struct Named {
    value: Value,
    size: Size,
    /// Its nesting depth.
    depth: usize,
}

/// A list or map that is not complete yet.
struct Open {
    holds: Holds,
    /// Its anchor, or 0.
    anchor: usize,
    /// The total size before it.
    before: Size,
    /// Its first line.
    line: usize,
}

enum Holds {
    List(Vec<Value>),
    /// Its members, and the key whose value comes next.
    Map(Map<String, Value>, Option<MappingKey>),
}

enum MappingKey {
    Name(String),
    /// `<<`
    Merge,
}

type Read<T> = Result<T, DecodeError>;

impl<'y> Builder<'y> {
    fn document(&mut self) -> Read<Value> {
        loop {
            let (event, span) = match self.events.next() {
                None | Some(Ok((Event::StreamEnd, _))) => return Ok(Value::Null),
                Some(Err(found)) => return Err(error(&words::of(&found, self.text))),
                Some(Ok(next)) => next,
            };
            let merge = is_merge(&event);
            // Kubernetes: the line of a list or map is its first.
            let line = match (&event, self.open.last()) {
                (Event::SequenceEnd | Event::MappingEnd, Some(open)) => open.line,
                _ => span.start.line(),
            };
            let Some(value) = self.event(event, span)? else { continue };
            if self.open.is_empty() {
                return Ok(value);
            }
            self.place(value, merge, line)?;
        }
    }

    /// The value that an event completes, if any.
    fn event(&mut self, event: Event<'y>, span: Span) -> Read<Option<Value>> {
        let before = self.built;
        let (value, anchor, before) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let cut = block && self.ragged_end.is_some() && span.end.byte_offset() == self.ragged_end;
                // Kubernetes: a last line without a line break gets none.
                let text = text.strip_suffix('\n').filter(|_| cut).unwrap_or(&text);
                self.built.add(Size::of_scalar(text));
                (scalar(text, style, tag.as_deref(), span)?, anchor, before)
            }
            Event::Alias(anchor) => return self.copy(anchor).map(Some),
            Event::SequenceStart(_, anchor, _) => return self.begin(Holds::List(Vec::new()), anchor, span),
            Event::MappingStart(_, anchor, _) => {
                return self.begin(Holds::Map(Map::new(), None), anchor, span);
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                None => return Ok(None),
                Some(Open { holds: Holds::List(items), anchor, before, .. }) => {
                    (Value::Array(items), anchor, before)
                }
                Some(Open { holds: Holds::Map(members, _), anchor, before, .. }) => {
                    (Value::Object(members), anchor, before)
                }
            },
            _ => return Ok(None),
        };
        if anchor != 0 {
            let size = self.built.since(before);
            // Nested anchors copy their content once for each level.
            self.spend(Size { nodes: 0, ..size })?;
            self.anchors.insert(anchor, Named { value: value.clone(), size, depth: depth(&value) });
        }
        Ok(Some(value))
    }

    fn begin(&mut self, holds: Holds, anchor: usize, span: Span) -> Read<Option<Value>> {
        if self.open.len() == MAX_DEPTH {
            return Err(error("exceeded max depth"));
        }
        let before = self.built;
        let bytes = if matches!(holds, Holds::Map(..)) { NODE_BYTES + MAP_BYTES } else { NODE_BYTES };
        self.built.add(Size { nodes: 1, bytes });
        self.open.push(Open { holds, anchor, before, line: span.start.line() });
        Ok(None)
    }

    /// Adds a value to the innermost open list or map; in a map every other one is a key.
    fn place(&mut self, value: Value, merge: bool, line: usize) -> Read<()> {
        let Some(Open { holds, .. }) = self.open.last_mut() else { return Ok(()) };
        let duplicates = &mut self.duplicates;
        match holds {
            Holds::List(items) => items.push(value),
            Holds::Map(members, key) => match key.take() {
                None if merge => *key = Some(MappingKey::Merge),
                None => {
                    *key =
                        Some(MappingKey::Name(resolve::key(value).ok_or_else(|| error("invalid map key"))?))
                }
                Some(MappingKey::Name(name)) => insert(name, value, members, line, duplicates),
                Some(MappingKey::Merge) => merge_into(members, value, line, duplicates)?,
            },
        }
        Ok(())
    }

    /// Copies an anchor's value. The limits on nodes are those of Go's library; the limit on bytes is ours.
    fn copy(&mut self, anchor: usize) -> Read<Value> {
        let Some(Named { size, depth, .. }) = self.anchors.get(&anchor) else {
            return Err(error("anchor value contains itself"));
        };
        let size = *size;
        if self.open.len() + depth > MAX_DEPTH {
            return Err(error("exceeded max depth"));
        }
        // Go's library counts the alias itself too.
        self.built.add(Size { nodes: size.nodes + 1, ..size });
        self.spend(size)?;
        let (all, copied) = (self.built.nodes as f64, self.copied.nodes as f64);
        let share = match self.built.nodes {
            ..=400_000 => 0.99,
            4_000_000.. => 0.10,
            _ => 0.99 - 0.89 * (all - 400_000.0) / 3_600_000.0,
        };
        if self.built.nodes > 100 && self.copied.nodes > 1000 && copied / all > share {
            return Err(error(EXCESSIVE));
        }
        self.anchors.get(&anchor).map(|named| named.value.clone()).ok_or_else(|| error(EXCESSIVE))
    }

    /// Counts a copy before it is made.
    fn spend(&mut self, size: Size) -> Read<()> {
        self.copied.add(size);
        if self.copied.bytes > MAX_COPIED_BYTES { Err(error(EXCESSIVE)) } else { Ok(()) }
    }
}

fn insert(
    name: String,
    value: Value,
    members: &mut Map<String, Value>,
    line: usize,
    duplicates: &mut Vec<String>,
) {
    if duplicates.len() < MAX_DUPLICATES && members.contains_key(&name) {
        let shown = api::go::quote(&name);
        duplicates.push(format!("line {line}: key {shown} already set in map"));
    }
    members.insert(name, value);
}

/// `<<`: merges the members of a map, or of several, of which the first has precedence.
fn merge_into(
    members: &mut Map<String, Value>,
    value: Value,
    line: usize,
    duplicates: &mut Vec<String>,
) -> Read<()> {
    let maps = match value {
        Value::Array(maps) => maps,
        one => vec![one],
    };
    for map in maps.into_iter().rev() {
        let Value::Object(merged) = map else {
            return Err(error("map merge requires map or sequence of maps as the value"));
        };
        for (name, value) in merged {
            insert(name, value, members, line, duplicates);
        }
    }
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn is_merge(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(text, ScalarStyle::Plain, _, None) if text == "<<")
}

fn scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Read<Value> {
    let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
    let tag = tag.as_deref().map(|tag| tag.strip_prefix("tag:yaml.org,2002:").unwrap_or(tag));
    match tag {
        None if style == ScalarStyle::Plain => resolve::plain(text),
        None | Some("!") => Ok(Value::from(text)),
        Some(tag) => resolve::tagged(text, tag),
    }
    .map_err(|message| error(&format!("line {}: {message}", span.start.line())))
}

fn error(text: &str) -> DecodeError {
    DecodeError::Malformed(format!("yaml: {text}"))
}

#[cfg(test)]
mod tests;
