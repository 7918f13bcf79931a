//! An object that was checked against its type, as far as field ownership needs it.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use crate::depth::{MAX_OWNED_DEPTH, depth};
use crate::field_set::shape::{FieldShape, ListShape, MapShape, Place, Scalar};
use crate::field_set::{Element, FieldSet};
use crate::patch::print;
use crate::types::{Node, TypeId, Types};

/// An object with its type. Only [`Typed::new`] makes one, so that walks over it cannot fail.
#[derive(Clone, Debug)]
pub(super) struct Typed<'t> {
    pub(super) value: Cow<'t, Value>,
    pub(super) types: &'t Types,
    pub(super) of: TypeId,
}

/// Whether two items of a list may have the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DuplicateItems {
    Allowed,
    Refused,
}

/// Where an object does not fit its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Violations(Vec<Violation>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Violation {
    path: String,
    problem: String,
}

impl<'t> Typed<'t> {
    pub(super) fn new(
        types: &'t Types,
        of: TypeId,
        value: Cow<'t, Value>,
        duplicates: DuplicateItems,
    ) -> Result<Self, Violations> {
        if nests_too_deep(&value) {
            return Err(Violations::of("exceeded max depth"));
        }
        Check { types, duplicates }.place(Place::Typed(&Node::Object(of)), &value)?;
        Ok(Typed { value, types, of })
    }

    pub(super) fn fields(&self) -> FieldSet {
        FieldSet::of_value(self.types, self.of, &self.value)
    }

    /// The same type with another value that was derived from this one.
    pub(super) fn with(&self, value: Value) -> Self {
        Typed { value: Cow::Owned(value), types: self.types, of: self.of }
    }

    /// Adds to a set the named fields that lead to its members, see [`FieldSet::with_named_fields`].
    pub(super) fn with_named_fields(&self, set: FieldSet) -> FieldSet {
        set.with_named_fields(self.types, Some(Place::Typed(&Node::Object(self.of))))
    }
}

/// Whether an object nests too deep for recursive walks. They skip its managedFields, which nest deeper than
/// the fields that they name.
fn nests_too_deep(object: &Value) -> bool {
    let members = object.as_object().into_iter().flatten();
    members.into_iter().any(|(name, member)| match member {
        Value::Object(metadata) if name == "metadata" => metadata
            .iter()
            .any(|(name, member)| name != "managedFields" && depth(member) + 2 > MAX_OWNED_DEPTH),
        member => depth(member) + 1 > MAX_OWNED_DEPTH,
    })
}

/// Whether a value fits its type.
pub(super) fn fits(types: &Types, place: Place<'_>, value: &Value) -> bool {
    Check { types, duplicates: DuplicateItems::Allowed }.place(place, value).is_ok()
}

struct Check<'t> {
    types: &'t Types,
    duplicates: DuplicateItems,
}

impl<'t> Check<'t> {
    fn place(&self, place: Place<'t>, value: &Value) -> Result<(), Violations> {
        match (place.shape(self.types, Some(value)), value) {
            (_, Value::Null) => Ok(()),
            (FieldShape::Scalar(scalar), _) => check_scalar(scalar, value),
            (FieldShape::List(list), Value::Array(items)) => self.items(list, items),
            (FieldShape::List(_), _) => Err(Violations::of(format!("expected list, got {}", wrapped(value)))),
            (FieldShape::Map(map), Value::Object(members)) => self.members(map, members),
            (FieldShape::Map(_), _) => Err(Violations::of(format!("expected map, got {}", wrapped(value)))),
        }
    }

    fn items(&self, list: ListShape<'t>, items: &[Value]) -> Result<(), Violations> {
        let mut found = Violations(Vec::new());
        let mut seen = BTreeSet::new();
        for (at, item) in items.iter().enumerate() {
            let element = if list.is_atomic() {
                Element::Index(i64::try_from(at).unwrap_or(i64::MAX))
            } else {
                match list.element(self.types, item) {
                    Ok(element) => element,
                    // Neither its inside nor the items after it can be checked.
                    Err(problem) => {
                        found.add(Violations::of(format!("element {at}: {problem}")));
                        break;
                    }
                }
            };
            if self.duplicates == DuplicateItems::Refused && !seen.insert(element.clone()) {
                found.add(Violations::of(format!("duplicate entries for key {element}")));
            }
            if let Err(inside) = self.place(list.items, item) {
                found.add(inside.under(&element));
            }
        }
        found.into_result()
    }

    fn members(&self, map: MapShape<'t>, members: &serde_json::Map<String, Value>) -> Result<(), Violations> {
        let mut found = Violations(Vec::new());
        for (name, value) in members {
            let Some(place) = map.place(name) else {
                // Kubernetes: the first undeclared field ends the check.
                found.add(Violations::of("field not declared in schema").under(&Element::field(name)));
                break;
            };
            if let Err(inside) = self.place(place, value) {
                found.add(inside.under(&Element::field(name)));
            }
        }
        found.into_result()
    }
}

fn check_scalar(scalar: Scalar, value: &Value) -> Result<(), Violations> {
    let problem = match scalar {
        Scalar::Numeric if !value.is_number() => {
            format!("expected numeric (int or float), got {}", print::type_name(value))
        }
        Scalar::String if !value.is_string() => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", print::syntax(value))
        }
        Scalar::Boolean if !value.is_boolean() => format!("expected boolean, got {}", wrapped(value)),
        Scalar::Any if value.is_array() || value.is_object() => {
            format!("expected any scalar, got {}", wrapped(value))
        }
        _ => return Ok(()),
    };
    Err(Violations::of(problem))
}

/// The items, if the value is a list.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Kubernetes: it prints the pointer to its wrapper.
fn wrapped(value: &Value) -> String {
    format!("&{{{}}}", print::plain(value))
}

impl Violations {
    pub(super) fn of(problem: impl Into<String>) -> Self {
        Violations(vec![Violation { path: String::new(), problem: problem.into() }])
    }

    fn under(mut self, element: &Element) -> Self {
        for violation in &mut self.0 {
            violation.path.insert_str(0, &element.to_string());
        }
        self
    }

    fn add(&mut self, more: Violations) {
        self.0.extend(more.0);
    }

    fn into_result(self) -> Result<(), Violations> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => f.write_str(&self.problem),
            path => write!(f, "{path}: {}", self.problem),
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => only.fmt(f),
            several => {
                f.write_str("errors:")?;
                several.iter().try_for_each(|violation| write!(f, "\n  {violation}"))
            }
        }
    }
}

impl std::error::Error for Violations {}
