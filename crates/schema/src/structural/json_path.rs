//! kubectl's JSONPath, as far as definitions use it.
//!
//! ```
//! use schema::structural::json_path::JsonPath;
//! use serde_json::json;
//!
//! let path = JsonPath::parse(r#".status.conditions[?(@.type=="Ready")].status"#)?;
//! let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
//! assert_eq!(path.find(&object)?, [&json!("True")]);
//! assert!(path.find(&json!({}))?.is_empty());
//! # Ok::<(), schema::structural::json_path::PathError>(())
//! ```

use std::borrow::Cow;

use serde_json::Value;
use thiserror::Error;

use crate::patch::print;

mod compare;
mod parse;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<PathStep>,
}

/// Why a text is not a path, or why evaluating it fails.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct PathError(pub String);

#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Field(String),
    Slice(Slice),
    Wildcard,
    /// The value itself and all values below it.
    Recursive,
    Union(Vec<JsonPath>),
    Filter(Box<FilterExpression>),
    /// A literal in the path, as on the right of a comparison.
    Literal(Value),
    /// An identifier without a meaning here.
    Word(String),
}

/// `[from:to:step]`, or `[index]`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    step: Option<i64>,
    /// Only an index was given; `to` is derived from it.
    single: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct FilterExpression {
    left: JsonPath,
    /// `None`: true if the path finds anything.
    test: Option<(String, JsonPath)>,
}

type Found<'v> = Vec<Cow<'v, Value>>;

impl JsonPath {
    /// Parses a path without its braces: `.spec.replicas`.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        parse::parse(text)
    }

    /// The values at the path; none if a field is missing.
    pub fn find<'v>(&self, value: &'v Value) -> Result<Vec<&'v Value>, PathError> {
        let found = self.walk(vec![Cow::Borrowed(value)])?;
        // All results are inside the object, except literals.
        Ok(found
            .into_iter()
            .filter_map(|found| if let Cow::Borrowed(v) = found { Some(v) } else { None })
            .collect())
    }

    /// The value that field selectors compare: as Go prints it, empty where there is none.
    #[must_use]
    pub fn text(&self, object: &Value) -> String {
        let found = self.find(object).ok().and_then(|found| found.first().copied());
        found.filter(|value| !value.is_null()).map(print::plain).unwrap_or_default()
    }

    /// The field names, if the path has nothing else, as paths of selectable fields and scales do.
    #[must_use]
    pub fn names(&self) -> Option<Vec<&str>> {
        self.steps.iter().map(PathStep::name).collect()
    }

    fn walk<'v>(&self, from: Found<'v>) -> Result<Found<'v>, PathError> {
        self.steps.iter().try_fold(from, |found, step| step.walk(found))
    }
}

impl PathStep {
    fn name(&self) -> Option<&str> {
        match self {
            PathStep::Field(name) => Some(name),
            _ => None,
        }
    }

    fn walk<'v>(&self, from: Found<'v>) -> Result<Found<'v>, PathError> {
        let present = from
            .iter()
            .filter_map(|value| if let Cow::Borrowed(value) = value { Some(*value) } else { None });
        let present = present.filter(|value| !value.is_null());
        match self {
            PathStep::Field(name) => {
                Ok(present.filter_map(|value| value.get(name)).map(Cow::Borrowed).collect())
            }
            PathStep::Slice(slice) => {
                let mut found = Vec::new();
                for value in present {
                    let Value::Array(items) = value else {
                        return Err(PathError(format!("{} is not array or slice", go_type(value))));
                    };
                    found.extend(slice.of(items)?);
                }
                Ok(found)
            }
            PathStep::Wildcard => Ok(present.flat_map(children).map(Cow::Borrowed).collect()),
            PathStep::Recursive => {
                let mut found = Vec::new();
                present.for_each(|value| descend(value, &mut found));
                Ok(found)
            }
            PathStep::Union(paths) => {
                let mut found = Vec::new();
                for path in paths {
                    found.extend(path.walk(from.clone())?);
                }
                Ok(found)
            }
            PathStep::Filter(filter) => filter.walk(from),
            PathStep::Literal(literal) => Ok(from.iter().map(|_| Cow::Owned(literal.clone())).collect()),
            PathStep::Word(word) => Err(PathError(format!("unrecognized identifier {word}"))),
        }
    }
}

impl Slice {
    fn of<'v>(&self, items: &'v [Value]) -> Result<Found<'v>, PathError> {
        let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let mut from = self.from.unwrap_or(0);
        if from < 0 {
            from += length;
        }
        let mut to = self.to.unwrap_or(length);
        if to < 0 || (to == 0 && self.single) {
            to += length;
        }
        if from == to {
            return Ok(Vec::new());
        }
        let beyond =
            |index| Err(PathError(format!("array index out of bounds: index {index}, length {length}")));
        if from >= length || from < 0 {
            return beyond(from);
        }
        if to > length || to < 0 {
            return beyond(to - 1);
        }
        if from > to {
            return Err(PathError(format!("starting index {from} is greater than ending index {to}")));
        }
        let step = match self.step {
            None => 1,
            Some(step) if step > 0 => step,
            Some(_) => return Err(PathError("step must be > 0".to_owned())),
        };
        let index = |at: i64| usize::try_from(at).unwrap_or(usize::MAX);
        Ok(items[index(from)..index(to)].iter().step_by(index(step)).map(Cow::Borrowed).collect())
    }
}

impl FilterExpression {
    fn walk<'v>(&self, from: Found<'v>) -> Result<Found<'v>, PathError> {
        let mut kept = Vec::new();
        for value in from {
            let Cow::Borrowed(Value::Array(items)) = value else {
                let shown = print::plain(&value);
                return Err(PathError(format!("{shown} is not array or slice and cannot be filtered")));
            };
            for item in items {
                if self.keeps(item)? {
                    kept.push(Cow::Borrowed(item));
                }
            }
        }
        Ok(kept)
    }

    fn keeps(&self, item: &Value) -> Result<bool, PathError> {
        let left = self.left.walk(vec![Cow::Borrowed(item)]);
        let Some((operator, right)) = &self.test else { return Ok(left.is_ok_and(|left| !left.is_empty())) };
        let right = right.walk(vec![Cow::Borrowed(item)]);
        match (&left?[..], &right?[..]) {
            ([], _) | (_, []) => Ok(false),
            ([left], [right]) => compare::holds(left, operator, right),
            _ => Err(PathError("can only compare one element at a time".to_owned())),
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn descend<'v>(value: &'v Value, found: &mut Found<'v>) {
    let below = children(value);
    if !below.is_empty() {
        found.push(Cow::Borrowed(value));
        below.into_iter().for_each(|child| descend(child, found));
    }
}

fn go_type(value: &Value) -> &'static str {
    print::type_name(value)
}

#[cfg(test)]
mod tests;
