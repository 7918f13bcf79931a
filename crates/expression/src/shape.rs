//! A schema as expressions need it: the interface between expressions and the schema crate.

use std::fmt;

/// One node of a schema. The `schema` crate implements it; types, sizes and views are derived from it.
pub trait Shape: fmt::Debug + Send + Sync {
    fn form(&self) -> Form;

    /// The schema of the elements of a list.
    fn items(&self) -> Option<&dyn Shape> {
        None
    }

    /// The schema of the values of a map, where `additionalProperties` has one.
    fn values(&self) -> Option<&dyn Shape> {
        None
    }

    /// The schema of a named property.
    fn property(&self, _name: &str) -> Option<&dyn Shape> {
        None
    }

    /// Calls back for each named property, in any order.
    fn each_property(&self, _visit: &mut dyn FnMut(&str, &dyn Shape)) {}

    fn requires(&self, _property: &str) -> bool {
        false
    }

    fn has_default(&self) -> bool {
        false
    }

    /// `maxLength`, `maxItems` or `maxProperties`, whichever this form has.
    fn limit(&self) -> Option<i64> {
        None
    }

    /// The longest string of an `enum`, in bytes.
    fn longest_enum(&self) -> Option<usize> {
        None
    }

    /// `x-kubernetes-embedded-resource`
    fn is_embedded_resource(&self) -> bool {
        false
    }

    /// `x-kubernetes-list-type`
    fn list_kind(&self) -> ListKind<'_> {
        ListKind::Atomic
    }
}

/// The kinds of schema nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Boolean,
    Integer,
    Number,
    String,
    /// `format: byte`
    Bytes,
    /// `format: duration`
    Duration,
    /// `format: date`
    Date,
    /// `format: date-time`
    DateTime,
    IntOrString,
    List,
    /// With `properties`.
    Object,
    /// With `additionalProperties`.
    Map,
    /// `type: object` with neither: an object without fields.
    Empty,
    /// Data without a schema: expressions can only compare it for equality.
    Unknown,
}

/// How a list is compared and merged.
#[derive(Clone, Copy, Debug)]
pub enum ListKind<'s> {
    Atomic,
    Set,
    /// By these properties.
    Map(&'s [String]),
}

/// A plain string.
#[derive(Debug)]
pub(crate) struct PlainString;

/// The metadata that expressions may read at the root of a resource.
#[derive(Debug)]
pub(crate) struct Metadata;

pub(crate) static PLAIN_STRING: PlainString = PlainString;
pub(crate) static METADATA: Metadata = Metadata;

/// The schema of `apiVersion`, `kind` and `metadata` of a resource, whatever its own schema says.
pub(crate) fn resource_property(name: &str) -> Option<&'static dyn Shape> {
    match name {
        "apiVersion" | "kind" => Some(&PLAIN_STRING),
        "metadata" => Some(&METADATA),
        _ => None,
    }
}

impl Shape for PlainString {
    fn form(&self) -> Form {
        Form::String
    }
}

impl Shape for Metadata {
    fn form(&self) -> Form {
        Form::Object
    }

    fn property(&self, name: &str) -> Option<&dyn Shape> {
        matches!(name, "name" | "generateName").then_some(&PLAIN_STRING as &dyn Shape)
    }

    fn each_property(&self, visit: &mut dyn FnMut(&str, &dyn Shape)) {
        visit("name", &PLAIN_STRING);
        visit("generateName", &PLAIN_STRING);
    }
}
