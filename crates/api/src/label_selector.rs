//! Which labels an object must carry: `app=web,tier in (a,b),!legacy` and its form as an object.

mod object;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::field::{BadValue, Error, ErrorList, Path};
use crate::name::Format;

pub use object::{LabelSelector, LabelSelectorRequirement, Tolerance};
pub use parse::BadSelector;

/// All of the requirements must hold; none at all match everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector(Terms);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Terms {
    /// An absent object form selects nothing, unlike an empty one.
    Nothing,
    /// Sorted by key.
    All(Vec<Requirement>),
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operator {
    In,
    NotIn,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    Exists,
    DoesNotExist,
}

/// Whatever can look up a label.
pub trait Labels {
    fn label(&self, key: &str) -> Option<&str>;
}

impl Default for Selector {
    /// Everything.
    fn default() -> Self {
        Selector::new(Vec::new())
    }
}

impl Selector {
    pub const fn everything() -> Self {
        Selector(Terms::All(Vec::new()))
    }

    pub const fn nothing() -> Self {
        Selector(Terms::Nothing)
    }

    /// The requirements are kept sorted by key, so that equal selectors print alike.
    pub fn new(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|left, right| left.key.cmp(&right.key));
        Selector(Terms::All(requirements))
    }

    /// Exactly these labels, which must be valid already.
    pub fn from_labels<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let equals = |(key, value): (&str, &str)| Requirement {
            key: key.to_owned(),
            operator: Operator::Equals,
            values: vec![value.to_owned()],
        };
        Self::new(labels.into_iter().map(equals).collect())
    }

    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        match &self.0 {
            Terms::Nothing => false,
            Terms::All(requirements) => requirements.iter().all(|requirement| requirement.matches(labels)),
        }
    }

    pub fn is_everything(&self) -> bool {
        self.0 == Terms::All(Vec::new())
    }

    pub fn is_nothing(&self) -> bool {
        self.0 == Terms::Nothing
    }

    pub fn requirements(&self) -> &[Requirement] {
        match &self.0 {
            Terms::Nothing => &[],
            Terms::All(requirements) => requirements,
        }
    }

    /// The only value that the label may have, if the selector says so: what an index can be asked for.
    pub fn required_value(&self, key: &str) -> Option<&str> {
        let requirement = self.requirements().iter().find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [only]) => Some(only),
            _ => None,
        }
    }
}

impl Requirement {
    /// `path` is where in an object the requirement stands; a text has none.
    pub fn new(
        path: &Path<'_>,
        key: impl Into<String>,
        operator: Operator,
        values: Vec<String>,
    ) -> Result<Self, ErrorList> {
        let requirement = Requirement { key: key.into(), operator, values };
        requirement.problems(path).into_result().map(|()| requirement)
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    pub fn values(&self) -> &[String] {
        &self.values
    }

    pub fn matches(&self, labels: &(impl Labels + ?Sized)) -> bool {
        let label = labels.label(&self.key);
        let is_listed = |label: &str| self.values.iter().any(|value| value == label);
        match self.operator {
            Operator::In | Operator::Equals | Operator::DoubleEquals => label.is_some_and(is_listed),
            Operator::NotIn | Operator::NotEquals => !label.is_some_and(is_listed),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compare(label).is_some_and(|(label, limit)| label > limit),
            Operator::LessThan => self.compare(label).is_some_and(|(label, limit)| label < limit),
        }
    }

    fn compare(&self, label: Option<&str>) -> Option<(i64, i64)> {
        Some((label?.parse().ok()?, self.values.first()?.parse().ok()?))
    }

    fn problems(&self, path: &Path<'_>) -> ErrorList {
        let mut errors = ErrorList::new();
        errors.extend(key_problem(&path.child("key"), &self.key));
        let path = path.child("values");
        let count_problem = match (self.operator, self.values.len()) {
            (Operator::In | Operator::NotIn, 0) => {
                Some("for 'in', 'notin' operators, values set can't be empty")
            }
            (Operator::Equals | Operator::DoubleEquals | Operator::NotEquals, 0 | 2..) => {
                Some("exact-match compatibility requires one single value")
            }
            (Operator::Exists | Operator::DoesNotExist, 1..) => {
                Some("values set must be empty for exists and does not exist")
            }
            (Operator::GreaterThan | Operator::LessThan, 0 | 2..) => {
                Some("for 'Gt', 'Lt' operators, exactly one value is required")
            }
            _ => None,
        };
        errors.extend(count_problem.map(|problem| Error::invalid(&path, self.values_or_null(), problem)));
        if matches!(self.operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in
                self.values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err())
            {
                let problem = "for 'Gt', 'Lt' operators, the value must be an integer";
                errors.push(Error::invalid(&path.index(index), value, problem));
            }
        }
        for (index, value) in self.values.iter().enumerate() {
            let problems = Format::LabelValue.problems(value);
            if !problems.is_empty() {
                errors.push(Error::invalid(&path.index(index).key(&self.key), value, problems.join("; ")));
            }
        }
        errors
    }

    /// Go prints an absent list as `null`.
    fn values_or_null(&self) -> BadValue {
        if self.values.is_empty() { BadValue::verbatim("null") } else { BadValue::json(&self.values) }
    }
}

fn key_problem(path: &Path<'_>, key: &str) -> Option<Error> {
    let problems = Format::QualifiedName.problems(key);
    (!problems.is_empty()).then(|| Error::invalid(path, key, problems.join("; ")))
}

impl Operator {
    /// As it is written in a selector, or called in a message if it is not written at all.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operator::In => "in",
            Operator::NotIn => "notin",
            Operator::Equals => "=",
            Operator::DoubleEquals => "==",
            Operator::NotEquals => "!=",
            Operator::GreaterThan => "gt",
            Operator::LessThan => "lt",
            Operator::Exists => "exists",
            Operator::DoesNotExist => "!",
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.iter().map(String::as_str).collect::<Vec<_>>();
        values.sort_unstable();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::In | Operator::NotIn => write!(f, "{key} {} ({values})", self.operator.as_str()),
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals => {
                write!(f, "{key}{}{values}", self.operator.as_str())
            }
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
            Operator::Exists => write!(f, "{key}"),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// The labels as they stand in an object.
impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Value::as_str)
    }
}

/// An object without labels.
impl<T: Labels> Labels for Option<T> {
    fn label(&self, key: &str) -> Option<&str> {
        self.as_ref().and_then(|labels| labels.label(key))
    }
}

impl<T: Labels + ?Sized> Labels for &T {
    fn label(&self, key: &str) -> Option<&str> {
        (**self).label(key)
    }
}
