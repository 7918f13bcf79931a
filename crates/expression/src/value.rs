//! Values of expressions: owned values, and typed views of JSON that is not copied.

use crate::{time::Timestamp, ty::Type};
use std::{any::Any, fmt, ops::Deref, sync::Arc};

pub use json::{view, view_resource};
pub use list::List;
pub use map::{Key, Map};

mod json;
mod list;
mod map;

/// A value while an expression runs. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Text<'a>),
    Bytes(Arc<[u8]>),
    /// Nanoseconds.
    Duration(i64),
    Timestamp(Timestamp),
    List(List<'a>),
    Map(Map<'a>),
    Optional(Option<Arc<Value<'a>>>),
    Type(Type),
    Opaque(Arc<dyn Opaque>),
    Object(Arc<Instance<'a>>),
}

/// Text that is borrowed from the object under test or shared.
#[derive(Clone)]
pub enum Text<'a> {
    Borrowed(&'a str),
    Shared(Arc<str>),
}

/// A value that only its library understands.
pub trait Opaque: fmt::Debug + Send + Sync + Any {
    fn ty(&self) -> Type;

    /// `==` with another value of any opaque type.
    fn equals(&self, other: &dyn Opaque) -> bool;

    /// What `size` counts for the cost of calls; `None` counts as one.
    fn size(&self) -> Option<u64> {
        None
    }
}

/// An object that an expression made: `Object.spec{replicas: 1}`.
#[derive(Clone, Debug)]
pub struct Instance<'a> {
    pub name: Arc<str>,
    pub fields: Vec<(Arc<str>, Value<'a>)>,
}

impl<'a> Value<'a> {
    pub fn string(text: impl Into<Arc<str>>) -> Value<'a> {
        Value::String(Text::Shared(text.into()))
    }

    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Value<'a> {
        Value::Bytes(bytes.into())
    }

    pub fn list(items: impl Into<Arc<[Value<'a>]>>) -> Value<'a> {
        Value::List(List::new(items))
    }

    pub fn opaque(value: impl Opaque) -> Value<'a> {
        Value::Opaque(Arc::new(value))
    }

    pub fn some(value: Value<'a>) -> Value<'a> {
        Value::Optional(Some(Arc::new(value)))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&List<'a>> {
        match self {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The opaque value inside, if it is a `T`.
    pub fn as_opaque<T: Opaque>(&self) -> Option<&T> {
        match self {
            Value::Opaque(value) => (&**value as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// The run-time type; parameters of lists, maps and optionals are dyn.
    pub fn ty(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Duration(_) => Type::Duration,
            Value::Timestamp(_) => Type::Timestamp,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Type(_) => Type::type_of(Type::Dyn),
            Value::Opaque(value) => value.ty(),
            Value::Object(object) => Type::Object(crate::ty::Object::new(object.name.clone(), Vec::new())),
        }
    }

    /// The size for the cost of calls: characters, bytes, elements; one for everything else.
    pub fn size(&self) -> u64 {
        match self {
            Value::String(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Optional(Some(inner)) => inner.size(),
            Value::Opaque(value) => value.size().unwrap_or(1),
            _ => 1,
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Text::Borrowed(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
