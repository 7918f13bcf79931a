//! The table of types: what every engine of this crate walks, for built-in kinds and custom resources alike.
//!
//! A [`Type`] is one object shape: its [`Field`]s in the order in which the real server writes them. What a
//! field holds is a [`Node`]: a scalar, another type by its [`TypeId`], a list or a map. Nothing else in the
//! house says what a Kubernetes object looks like, so decoding, encoding, protobuf, patch and apply are one
//! engine each instead of one handler per kind:
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
//! the types. It is built once and then only read.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

mod lookup;
mod message;
mod table;

use lookup::NameIndex;
pub use message::{Proto, Slot};
pub use table::{TypeId, Types};

/// A name that usually points into the binary's own data, and is owned only for custom resources.
pub type Name = Cow<'static, str>;

/// One object shape.
#[derive(Clone, Debug)]
pub struct Type {
    /// Its name in OpenAPI: `io.k8s.api.apps.v1.Deployment`.
    pub name: Name,
    /// Set where objects of this type stand alone and say their `kind`.
    pub kind: Option<Box<Kind>>,
    /// What becomes of a member that is no field.
    pub unknown: Unknown,
    fields: Box<[Field]>,
    index: NameIndex,
    message: Box<[Slot]>,
}

/// The group, version and kind by which an object names its type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    pub group: Name,
    pub version: Name,
    pub kind: Name,
}

/// What becomes of a member that is no field of its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// Built-in types and structural schemas: dropped, and reported where the caller asked.
    #[default]
    Drop,
    /// `x-kubernetes-preserve-unknown-fields`: kept as it is.
    Keep,
}

/// One member of an object.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: Name,
    pub node: Node,
    /// The schema demands it. Decoding does not: validation does.
    pub required: bool,
    /// Written even when empty: Go has no `omitempty` here, or it is a struct by value, which Go never omits.
    pub always: bool,
    /// A pointer in Go: absent and zero differ, so a zero that is present is written.
    pub pointer: bool,
    /// What the schema says stands here when nothing does. Keys of a list map take it too.
    pub default: Option<Arc<Value>>,
    /// How a strategic merge patch treats it.
    pub patch: PatchStrategy,
    /// For lists under [`PatchStrategy::Merge`]: the member that tells items apart.
    pub merge_key: Option<Name>,
    /// Its number in protobuf. `None` where the message has no such field.
    pub proto: Option<Proto>,
    /// What Go calls it, where that is not plain from the rest.
    pub go: Option<Box<GoNames>>,
}

/// What Go calls a field. Decode errors say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoNames {
    /// Its type: `v1.PullPolicy` for a string, `v1.ResourceList` for a map.
    pub type_name: Option<Name>,
    /// The embedded structs that it lies in: `LocalObjectReference`.
    pub within: Option<Name>,
}

/// What stands in one place of an object.
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
    /// `FieldsV1`: a set of field paths, kept as it is.
    FieldsV1,
    /// Any JSON at all.
    Json,
    Object(TypeId),
    /// The same, but apply replaces it as a whole (`x-kubernetes-map-type: atomic`).
    AtomicObject(TypeId),
    List(Box<List>),
    Map(Box<Map>),
    /// An object of the type, or what [`Other`] says: the three unions inside a CRD's schema.
    Either(TypeId, Other),
}

/// The second face of a [`Node::Either`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// `JSONSchemaPropsOrArray`.
    List,
    /// `JSONSchemaPropsOrBool`.
    Bool,
    /// `JSONSchemaPropsOrStringArray`.
    Strings,
}

/// A list and what tells its items apart.
#[derive(Clone, Debug)]
pub struct List {
    pub items: Node,
    pub kind: ListKind,
    /// In protobuf a message of its own, with the items under 1: a list that Go gave a name (`ExtraValue`).
    pub wrapped: bool,
}

/// `x-kubernetes-list-type`: what apply takes for one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// The list is one value.
    Atomic,
    /// Each value is there once.
    Set,
    /// Items are objects, told apart by these members.
    Map(Box<[Name]>),
}

/// A map from string to one sort of value.
#[derive(Clone, Debug)]
pub struct Map {
    pub values: Node,
    /// Apply replaces it as a whole (`x-kubernetes-map-type: atomic`).
    pub atomic: bool,
}

/// `x-kubernetes-patch-strategy`: what a strategic merge patch does with a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Lists are replaced; objects are merged all the same.
    #[default]
    Replace,
    /// Said in so many words: objects are replaced, too.
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

    /// Says that objects of this type stand alone under this group, version and kind.
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

    /// Keeps members that are no field.
    #[must_use]
    pub fn keeping_unknown(mut self) -> Self {
        self.unknown = Unknown::Keep;
        self
    }

    /// The fields in the order in which they are written.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The field of a name; names are case-sensitive. Takes a few nanoseconds.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.position(name).map(|at| &self.fields[at])
    }

    /// Where the field of a name lies in [`Type::fields`].
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
    /// A field that Go would write `json:"name,omitempty"`, with nothing else said about it.
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
    /// Whether a value that stands here says more than nothing would. It does not if Go's encoder would leave it
    /// out, or write the same in its absence.
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
            // Kubernetes: a list or map that is there but empty differs from none, if only in what is written.
            (Value::Array(items), _) => self.always || !items.is_empty(),
            (Value::Object(members), Node::Map(_)) => self.always || !members.is_empty(),
            (Value::Object(members), _) => !members.is_empty(),
        }
    }
}

impl Node {
    /// Go's zero value, as JSON shows it: what stands for `null` in a list or map.
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

    /// Whether Go holds it as a struct, which is never empty and so never omitted unless behind a pointer.
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

    /// Whether `$retainKeys` counts.
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
