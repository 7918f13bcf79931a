//! The table of types that decode, encode, patch and apply use, for built-in kinds and custom resources
//! alike.
//!
//! A [`Type`] is the type of an object: its [`Field`]s in the order in which kube-apiserver writes them. The
//! type of a field is a [`Node`]: a scalar, another type by its [`TypeId`], a list or a map. No other code
//! describes Kubernetes objects, so decoding, encoding, protobuf, patch and apply are one engine each instead
//! of one handler per kind:
//!
//! ```
//! use schema::types::{Field, List, Node, Type, Types};
//!
//! let mut types = Types::default();
//! let port = types.add(Type::new("example.Port", vec![Field::new("port", Node::Int32)]));
//! let ports = Node::List(Box::new(List::atomic(Node::Object(port))));
//! types.add(Type::new("example.Service", vec![Field::new("ports", ports)]).of_kind("", "v1", "Service"));
//!
//! let (_, service) = types.kind("", "v1", "Service").expect("just added");
//! assert!(service.field("ports").is_some());
//! ```
//!
//! The table is a graph (a JSON schema contains JSON schemas), so a walk is bounded by the object, never by
//! the types. It is built once and then read-only.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

mod lookup;
mod message;
mod table;

use lookup::NameIndex;
pub use message::{Proto, Slot};
pub use table::{TypeId, Types};

/// A name, borrowed from the binary's data for built-in kinds and owned for custom resources.
pub type Name = Cow<'static, str>;

/// The type of an object.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its name in OpenAPI: `io.k8s.api.apps.v1.Deployment`.
    pub name: Name,
    /// Set for top-level objects, which have a `kind`.
    pub kind: Option<Box<Kind>>,
    pub unknown: Unknown,
    fields: Box<[Field]>,
    index: NameIndex,
    message: Box<[Slot]>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub group: Name,
    pub version: Name,
    pub kind: Name,
}

/// What happens to members that are not fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Built-in types and structural schemas: dropped, and reported under strict or warning field validation.
    #[default]
    Drop,
    /// `x-kubernetes-preserve-unknown-fields`: kept.
    Keep,
}

/// One member of an object.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: Name,
    pub node: Node,
    /// Required by the schema. Checked by validation, not by decoding.
    pub required: bool,
    /// Written even when empty: Go has no `omitempty` here, or it is a struct by value, which Go never omits.
    pub always: bool,
    /// A pointer in Go: absent and zero differ, so a zero that is present is written.
    pub pointer: bool,
    /// The schema's default. Also applies to keys of a list map.
    pub default: Option<Arc<Value>>,
    /// Its strategic merge patch strategy.
    pub patch: PatchStrategy,
    /// For lists under [`PatchStrategy::Merge`]: the merge key of items.
    pub merge_key: Option<Name>,
    /// Its number in protobuf. `None` where the message has no such field.
    pub proto: Option<Proto>,
    /// Its Go names, where they do not follow from the rest.
    pub go: Option<Box<GoNames>>,
}

/// Go's names for a field, for decode errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoNames {
    /// Its type: `v1.PullPolicy` for a string, `v1.ResourceList` for a map.
    pub type_name: Option<Name>,
    /// The embedded structs around it: `LocalObjectReference`.
    pub within: Option<Name>,
}

/// The type of a value.
#[derive(Clone, Debug)]
pub enum Node {
    String,
    Bool,
    Int32,
    Int64,
    Double,
    /// Base64 in JSON, raw in protobuf.
    Bytes,
    /// RFC 3339 with seconds.
    Time,
    /// RFC 3339 with microseconds.
    MicroTime,
    Quantity,
    IntOrString,
    /// `RawExtension`: an object of any kind.
    Raw,
    /// `FieldsV1`: a set of field paths, kept unchanged.
    FieldsV1,
    /// Any JSON.
    Json,
    Object(TypeId),
    /// As `Object`, but apply replaces it as a whole (`x-kubernetes-map-type: atomic`).
    AtomicObject(TypeId),
    List(Box<List>),
    Map(Box<Map>),
    /// An object of the type, or an [`Other`]: the three unions inside a CRD's schema.
    Either(TypeId, Other),
}

/// The alternative of a [`Node::Either`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// `JSONSchemaPropsOrArray`.
    List,
    /// `JSONSchemaPropsOrBool`.
    Bool,
    /// `JSONSchemaPropsOrStringArray`.
    Strings,
}

/// A list and how its items are identified.
#[derive(Clone, Debug)]
pub struct List {
    pub items: Node,
    pub kind: ListKind,
    /// In protobuf its own message, with the items under 1: a named list type in Go (`ExtraValue`).
    pub wrapped: bool,
}

/// `x-kubernetes-list-type`: how apply identifies items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// The list is one value.
    Atomic,
    /// Items are unique scalars.
    Set,
    /// Items are objects, identified by these members.
    Map(Box<[Name]>),
}

/// A map from string to one type of value.
#[derive(Clone, Debug)]
pub struct Map {
    pub values: Node,
    /// Apply replaces it as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Lists are replaced, objects are merged: no strategy is given.
    #[default]
    Replace,
    /// `replace` is given explicitly: objects are replaced, too.
    ReplaceWhole,
    /// Lists are merged by [`Field::merge_key`], or as sets of scalars without one.
    Merge,
    /// Members that the patch does not list in `$retainKeys` are dropped.
    RetainKeys,
    MergeRetainKeys,
}

impl Type {
    #[must_use]
    pub fn new(name: impl Into<Name>, fields: impl IntoIterator<Item = Field>) -> Self {
        let fields: Box<[Field]> = fields.into_iter().collect();
        let index = NameIndex::new(fields.iter().map(|field| &*field.name));
        let message = Slot::message(&fields);
        Self { name: name.into(), kind: None, unknown: Unknown::default(), fields, index, message }
    }

    /// Marks the type as that of a top-level group, version and kind.
    #[must_use]
    pub fn of_kind(
        mut self,
        group: impl Into<Name>,
        version: impl Into<Name>,
        kind: impl Into<Name>,
    ) -> Self {
        let kind = Kind { group: group.into(), version: version.into(), kind: kind.into() };
        self.kind = Some(Box::new(kind));
        self
    }

    /// Keeps unknown members.
    #[must_use]
    pub fn keeping_unknown(mut self) -> Self {
        self.unknown = Unknown::Keep;
        self
    }

    /// The fields in the order in which they are encoded.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of a name; names are case-sensitive. Takes a few nanoseconds.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.position(name).map(|at| &self.fields[at])
    }

    /// The position of a field in [`Type::fields`].
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.index.find(name, |at| &*self.fields[at].name)
    }

    /// The protobuf message in the order of its numbers; empty where the type has none.
    #[must_use]
    pub fn message(&self) -> &[Slot] {
        &self.message
    }

    /// Its name without the package: `Deployment`.
    #[must_use]
    pub fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(&self.name)
    }

    fn key(&self) -> (&str, &str, &str) {
        self.kind.as_deref().map_or(("", "", ""), |kind| (&*kind.group, &*kind.version, &*kind.kind))
    }
}

impl Field {
    /// A field with `json:"name,omitempty"` and no other properties.
    #[must_use]
    pub fn new(name: impl Into<Name>, node: Node) -> Self {
        Self {
            name: name.into(),
            node,
            required: false,
            always: false,
            pointer: false,
            default: None,
            patch: PatchStrategy::default(),
            merge_key: None,
            proto: None,
            go: None,
        }
    }
}

impl Field {
    /// Whether a value differs from an absent one. It does not if Go's encoder would omit it, or write the
    /// same in its absence.
    #[must_use]
    pub fn keeps(&self, value: &Value) -> bool {
        match (value, &self.node) {
            (Value::Null, _) => false,
            _ if self.pointer => true,
            (_, Node::Raw | Node::FieldsV1 | Node::Json | Node::Either(..)) => true,
            (Value::Bool(set), _) => *set,
            (Value::Number(number), _) => number.as_f64() != Some(0.0),
            (Value::String(text), Node::Quantity) => text != "0",
            (Value::String(_), Node::IntOrString) => true,
            (Value::String(text), Node::Bytes) => self.always || !text.is_empty(),
            (Value::String(text), _) => !text.is_empty(),
            // Kubernetes: an empty list or map differs from an absent one, if only in its encoding.
            (Value::Array(items), _) => self.always || !items.is_empty(),
            (Value::Object(members), Node::Map(_)) => self.always || !members.is_empty(),
            (Value::Object(members), _) => !members.is_empty(),
        }
    }
}

impl Node {
    /// Go's zero value as JSON: it replaces `null` in a list or map.
    #[must_use]
    pub fn zero(&self) -> Value {
        match self {
            Node::String => Value::String(String::new()),
            Node::Bool => Value::Bool(false),
            Node::Int32 | Node::Int64 | Node::Double | Node::IntOrString => Value::from(0),
            Node::Quantity => Value::from("0"),
            Node::Object(_) | Node::AtomicObject(_) => Value::Object(serde_json::Map::new()),
            Node::Either(_, Other::Bool) => Value::Bool(false),
            Node::Bytes | Node::List(_) | Node::Map(_) => Value::Null,
            Node::Time | Node::MicroTime | Node::Raw | Node::FieldsV1 | Node::Json | Node::Either(..) => {
                Value::Null
            }
        }
    }

    /// The type of an object, atomic or not.
    #[must_use]
    pub fn object(&self) -> Option<TypeId> {
        match self {
            Node::Object(id) | Node::AtomicObject(id) => Some(*id),
            _ => None,
        }
    }

    /// Whether it is a struct in Go, which is never empty and so never omitted unless behind a pointer.
    #[must_use]
    pub fn is_struct(&self) -> bool {
        match self {
            Node::Time | Node::MicroTime | Node::Quantity | Node::IntOrString => true,
            Node::Raw | Node::FieldsV1 | Node::Json => true,
            Node::Object(_) | Node::AtomicObject(_) | Node::Either(..) => true,
            Node::String | Node::Bool | Node::Int32 | Node::Int64 | Node::Double => false,
            Node::Bytes | Node::List(_) | Node::Map(_) => false,
        }
    }
}

impl List {
    #[must_use]
    pub fn atomic(items: Node) -> Self {
        Self { items, kind: ListKind::Atomic, wrapped: false }
    }
}

impl PatchStrategy {
    /// Whether lists are merged.
    #[must_use]
    pub fn merges(self) -> bool {
        matches!(self, Self::Merge | Self::MergeRetainKeys)
    }

    /// Whether `$retainKeys` applies.
    #[must_use]
    pub fn retains_keys(self) -> bool {
        matches!(self, Self::RetainKeys | Self::MergeRetainKeys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_exact_name() {
        let names: Vec<String> = (0..300).map(|n| format!("field{n}")).collect();
        let found = Type::new("t", names.iter().map(|name| Field::new(name.clone(), Node::Bool)));
        for (at, name) in names.iter().enumerate() {
            assert_eq!(found.position(name), Some(at), "{name}");
        }
        for name in ["", "field", "Field1", "field300", "field1\0"] {
            assert_eq!(found.position(name), None, "{name:?}");
        }
        assert_eq!(Type::new("empty", Vec::new()).position("x"), None);
    }
}
