//! The compiled schema: a table of shapes that refer to each other by number; equal shapes are stored once.

use std::sync::OnceLock;

use regex::Regex;
use serde_json::Value;

use super::rules::Rules;

/// The schema of one version of a definition.
#[derive(Debug)]
pub struct Structural {
    pub(super) root: ShapeId,
    pub(super) shapes: Box<[Shape]>,
    pub(super) names: Box<[Box<str>]>,
    pub(super) patterns: Box<[Pattern]>,
    /// Compiled when first needed; `None` where there are none.
    pub(super) rules: OnceLock<Option<Rules>>,
}

/// The index of a [`Shape`] in its [`Structural`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ShapeId(pub(super) u32);

/// The index of a name in its [`Structural`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NameId(pub(super) u32);

/// The index of a pattern in its [`Structural`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PatternId(pub(super) u32);

/// The schema of one value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    pub(super) kind: ValueType,
    pub(super) nullable: bool,
    pub(super) preserve: bool,
    pub(super) embedded: bool,
    pub(super) atomic_map: bool,
    pub(super) list: ListType,
    /// Sorted by name.
    pub(super) properties: Box<[(NameId, ShapeId)]>,
    pub(super) items: Option<ShapeId>,
    pub(super) additional: Additional,
    /// In the order of the schema.
    pub(super) required: Box<[NameId]>,
    /// Keywords that most schemas lack.
    pub(super) more: Option<Box<More>>,
}

/// `type`, including `x-kubernetes-int-or-string`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum ValueType {
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
}

impl ValueType {
    /// By its name in the schema.
    pub(super) fn named(name: &str) -> ValueType {
        match name {
            "object" => ValueType::Object,
            "array" => ValueType::Array,
            "string" => ValueType::String,
            "integer" => ValueType::Integer,
            "number" => ValueType::Number,
            "boolean" => ValueType::Boolean,
            _ => ValueType::Any,
        }
    }
}

/// `additionalProperties`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Additional {
    #[default]
    Unsaid,
    Allowed,
    Forbidden,
    Shape(ShapeId),
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum ListType {
    #[default]
    Unsaid,
    Atomic,
    Set,
    Map,
}

/// The rarer keywords.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct More {
    pub(super) default: Option<Value>,
    pub(super) list_keys: Box<[String]>,
    pub(super) format: Option<Box<str>>,
    pub(super) one_of_these: Box<[Value]>,
    pub(super) pattern: Option<PatternId>,
    pub(super) min_length: Option<i64>,
    pub(super) max_length: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) max_items: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) max_properties: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) minimum: Option<Bound>,
    pub(super) maximum: Option<Bound>,
    pub(super) multiple_of: Option<Real>,
    pub(super) all_of: Box<[ShapeId]>,
    pub(super) any_of: Box<[ShapeId]>,
    pub(super) one_of: Box<[ShapeId]>,
    pub(super) not: Option<ShapeId>,
    pub(super) rules: Box<[Rule]>,
}

/// `minimum` or `maximum`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bound {
    pub(super) at: Real,
    pub(super) exclusive: bool,
}

/// A number that is compared by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Real(u64);

/// One of `x-kubernetes-validations`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Rule {
    pub(super) rule: Box<str>,
    pub(super) message: Box<str>,
    pub(super) message_expression: Box<str>,
    pub(super) reason: Option<Box<str>>,
    pub(super) field_path: Box<str>,
    pub(super) optional_old_self: Option<bool>,
}

/// A pattern, compiled when it first runs: most never do, and compiled ones are large.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) text: Box<str>,
    pub(super) compiled: OnceLock<Result<Regex, expression::Error>>,
}

impl Real {
    pub(super) fn new(number: f64) -> Self {
        Self(number.to_bits())
    }

    pub(super) fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl ValueType {
    /// The names of the types, as the schema writes them.
    pub(super) fn names(self) -> &'static [&'static str] {
        match self {
            ValueType::Any => &[],
            ValueType::Object => &["object"],
            ValueType::Array => &["array"],
            ValueType::String => &["string"],
            ValueType::Integer => &["integer"],
            ValueType::Number => &["number"],
            ValueType::Boolean => &["boolean"],
            ValueType::IntOrString => &["integer", "string"],
        }
    }
}

impl Shape {
    pub(super) fn default_value(&self) -> Option<&Value> {
        self.more.as_ref()?.default.as_ref()
    }

    /// `x-kubernetes-list-map-keys`
    pub(super) fn list_keys(&self) -> &[String] {
        self.more.as_ref().map_or(&[], |more| &more.list_keys)
    }

    pub(super) fn rules(&self) -> &[Rule] {
        self.more.as_ref().map_or(&[], |more| &more.rules)
    }
}

impl Structural {
    pub(super) fn shape(&self, id: ShapeId) -> &Shape {
        &self.shapes[id.0 as usize]
    }

    pub(super) fn name(&self, id: NameId) -> &str {
        &self.names[id.0 as usize]
    }

    pub(super) fn pattern(&self, id: PatternId) -> &Pattern {
        &self.patterns[id.0 as usize]
    }

    pub(super) fn property(&self, shape: &Shape, name: &str) -> Option<ShapeId> {
        let found = shape.properties.binary_search_by(|(id, _)| self.name(*id).cmp(name)).ok()?;
        Some(shape.properties[found].1)
    }

    /// The shape of a member: of its property, or of `additionalProperties`.
    pub(super) fn member(&self, shape: &Shape, name: &str) -> Option<ShapeId> {
        self.property(shape, name).or(match shape.additional {
            Additional::Shape(id) => Some(id),
            _ => None,
        })
    }

    pub(super) fn rules(&self) -> Option<&Rules> {
        self.rules.get_or_init(|| Rules::compile(self)).as_ref()
    }
}
