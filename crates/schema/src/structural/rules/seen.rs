//! The schema as CEL expressions see it: each shape has access to the others.

use std::fmt;
use std::sync::OnceLock;

use expression::shape::{Form, ListKind, Shape as Sight};

use crate::structural::shape::{Additional, ListType, Shape, ShapeId, Structural, ValueType};

/// One shape of a schema.
pub(super) struct Seen<'s> {
    schema: &'s Structural,
    shape: &'s Shape,
    all: &'s OnceLock<Box<[Seen<'s>]>>,
}

/// Passes the shapes of a schema to `run`, in the order of their ids.
pub(super) fn with<R>(schema: &Structural, run: impl for<'x> FnOnce(&'x [Seen<'x>]) -> R) -> R {
    let all = OnceLock::new();
    let shapes =
        all.get_or_init(|| schema.shapes.iter().map(|shape| Seen { schema, shape, all: &all }).collect());
    run(shapes)
}

impl<'s> Seen<'s> {
    fn at(&self, id: ShapeId) -> &dyn Sight {
        let all = self.all.get().expect("no shape is handed out before all are there");
        &all[id.0 as usize]
    }
}

impl fmt::Debug for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("shape", self.shape).finish_non_exhaustive()
    }
}

impl Sight for Seen<'_> {
    fn form(&self) -> Form {
        let format = self.shape.more.as_ref().and_then(|more| more.format.as_deref());
        match (self.shape.kind, format) {
            (ValueType::Any, _) => Form::Unknown,
            (ValueType::IntOrString, _) => Form::IntOrString,
            (ValueType::Boolean, _) => Form::Boolean,
            (ValueType::Integer, _) => Form::Integer,
            (ValueType::Number, _) => Form::Number,
            (ValueType::Array, _) => Form::List,
            (ValueType::String, Some("byte")) => Form::Bytes,
            (ValueType::String, Some("duration")) => Form::Duration,
            (ValueType::String, Some("date")) => Form::Date,
            (ValueType::String, Some("date-time")) => Form::DateTime,
            (ValueType::String, _) => Form::String,
            (ValueType::Object, _) => match self.shape.additional {
                Additional::Shape(_) => Form::Map,
                _ if self.shape.properties.is_empty() => Form::Empty,
                _ => Form::Object,
            },
        }
    }

    fn items(&self) -> Option<&dyn Sight> {
        self.shape.items.map(|id| self.at(id))
    }

    fn values(&self) -> Option<&dyn Sight> {
        match self.shape.additional {
            Additional::Shape(id) => Some(self.at(id)),
            _ => None,
        }
    }

    fn property(&self, name: &str) -> Option<&dyn Sight> {
        self.schema.property(self.shape, name).map(|id| self.at(id))
    }

    fn each_property(&self, visit: &mut dyn FnMut(&str, &dyn Sight)) {
        for (name, id) in &self.shape.properties {
            visit(self.schema.name(*name), self.at(*id));
        }
    }

    fn requires(&self, property: &str) -> bool {
        self.shape.required.iter().any(|id| self.schema.name(*id) == property)
    }

    fn has_default(&self) -> bool {
        self.shape.default_value().is_some()
    }

    fn limit(&self) -> Option<i64> {
        let more = self.shape.more.as_ref()?;
        match self.shape.kind {
            ValueType::Array => more.max_items,
            ValueType::Object => more.max_properties,
            _ => more.max_length,
        }
    }

    fn longest_enum(&self) -> Option<usize> {
        let allowed = &self.shape.more.as_ref()?.one_of_these;
        allowed.iter().filter_map(|value| value.as_str()).map(str::len).max()
    }

    fn is_embedded_resource(&self) -> bool {
        self.shape.embedded
    }

    fn list_kind(&self) -> ListKind<'_> {
        match self.shape.list {
            ListType::Atomic | ListType::Unsaid => ListKind::Atomic,
            ListType::Set => ListKind::Set,
            ListType::Map => ListKind::Map(self.shape.list_keys()),
        }
    }
}
