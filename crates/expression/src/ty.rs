//! The types that expressions have, as the checker sees them and as messages print them.

use std::{fmt, sync::Arc};

pub use object::{Field, Object};

mod object;

/// A CEL type. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Any type: decided at run time.
    Dyn,
    /// The type of a failed check; fits everywhere, so that one error is reported once.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    Optional(Arc<Type>),
    /// The type of a type; with `Error` inside for types in general.
    Type(Arc<Type>),
    /// A type parameter of an overload, such as `T`.
    Param(&'static str),
    /// A type variable of one check, bound during the check.
    Var(u32),
    /// A type that only its library understands, such as `net.IP`.
    Opaque(&'static str),
    /// A declared object with named fields.
    Object(Arc<Object>),
}

impl Type {
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    pub fn optional(inner: Type) -> Type {
        Type::Optional(Arc::new(inner))
    }

    pub fn type_of(inner: Type) -> Type {
        Type::Type(Arc::new(inner))
    }

    /// The first type parameter: the element of a list, the key of a map.
    pub fn first_parameter(&self) -> Option<&Type> {
        match self {
            Type::List(inner) | Type::Optional(inner) | Type::Type(inner) => Some(inner),
            Type::Map(pair) => Some(&pair.0),
            _ => None,
        }
    }

    /// The name without parameters, as `type(x)` prints it at run time.
    pub fn name(&self) -> &str {
        match self {
            Type::Param(name) => name,
            Type::Object(object) => object.name(),
            other => other.fixed_name().unwrap_or("dyn"),
        }
    }

    /// The name of a type that is not declared by an environment.
    pub(crate) fn fixed_name(&self) -> Option<&'static str> {
        Some(match self {
            Type::Dyn => "dyn",
            Type::Error => "!error!",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Optional(_) => "optional_type",
            Type::Type(_) => "type",
            Type::Var(_) => "var",
            Type::Opaque(name) => name,
            Type::Param(_) | Type::Object(_) => return None,
        })
    }
}

/// As the messages of the checker print it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Null => f.write_str("null"),
            Type::Duration => f.write_str("duration"),
            Type::Timestamp => f.write_str("timestamp"),
            Type::List(element) => write!(f, "list({element})"),
            Type::Map(pair) => write!(f, "map({}, {})", pair.0, pair.1),
            Type::Optional(inner) => write!(f, "optional_type({inner})"),
            Type::Type(inner) if **inner == Type::Error => f.write_str("type"),
            Type::Type(inner) => write!(f, "type({inner})"),
            Type::Var(number) => write!(f, "_var{number}"),
            other => f.write_str(other.name()),
        }
    }
}
