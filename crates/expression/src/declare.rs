//! Derives types and sizes from a schema.

use crate::{
    cost::Range,
    escape::escape,
    shape::{self, Form, Shape},
    ty::{Field, Object, Type},
};
use std::sync::Arc;

/// Kubernetes: the largest request.
const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;
/// A quoted RFC 3339 time, and room for the longest.
const MAX_TIME_JSON: i64 = 32;
const DATE_JSON: i64 = 12;
const MIN_DATE_TIME_JSON: i64 = 21;
const MIN_DURATION_JSON: i64 = 3;
const MIN_STRING_JSON: i64 = 2;
const MIN_BOOL_JSON: i64 = 4;
const MIN_NUMBER_JSON: i64 = 1;
const MIN_CONTAINER_JSON: i64 = 2;

/// The type of a schema node, and how large its values may get.
#[derive(Clone, Debug)]
pub struct Declared {
    ty: Type,
    /// Characters, bytes or elements.
    max_elements: u64,
    /// The length of the shortest JSON of a value.
    min_serialized: i64,
    parts: Parts,
}

#[derive(Clone, Debug)]
enum Parts {
    None,
    Elements(Arc<Declared>),
    Values(Arc<Declared>),
    Fields(Arc<[(Arc<str>, Declared)]>),
}

/// Sizes of variables, by path: names, then fields, `@items`, `@keys`, `@values`.
pub trait Sizes {
    fn size(&self, path: &[Arc<str>]) -> Option<Range>;
}

/// No sizes are known.
#[derive(Clone, Copy, Debug)]
pub struct NoSizes;

impl Sizes for NoSizes {
    fn size(&self, _: &[Arc<str>]) -> Option<Range> {
        None
    }
}

impl Declared {
    /// The type of this schema under a name; `None` where expressions must not see it.
    pub fn new(shape: &dyn Shape, name: &str, is_resource_root: bool) -> Option<Declared> {
        match shape.form() {
            Form::IntOrString => Some(Declared::string(Type::Dyn, shape, MIN_NUMBER_JSON)),
            Form::String => Some(Declared::string(Type::String, shape, MIN_STRING_JSON)),
            Form::Bytes => {
                let max = shape.limit().map_or(MAX_REQUEST_BYTES - 2, |limit| limit.max(0));
                Some(Declared::simple(Type::Bytes, max, MIN_STRING_JSON))
            }
            Form::Duration => Some(Declared::simple(Type::Duration, MAX_TIME_JSON, MIN_DURATION_JSON)),
            Form::Date => Some(Declared::simple(Type::Timestamp, DATE_JSON, DATE_JSON)),
            Form::DateTime => Some(Declared::simple(Type::Timestamp, MAX_TIME_JSON, MIN_DATE_TIME_JSON)),
            Form::Boolean => Some(Declared::simple(Type::Bool, 0, MIN_BOOL_JSON)),
            Form::Integer => Some(Declared::simple(Type::Int, 0, MIN_NUMBER_JSON)),
            Form::Number => Some(Declared::simple(Type::Double, 0, MIN_NUMBER_JSON)),
            Form::List => Declared::list(shape, name),
            Form::Map => Declared::map(shape, name),
            Form::Object | Form::Empty => Some(Declared::object(shape, name, is_resource_root)),
            Form::Unknown if is_resource_root => Some(Declared::object(shape, name, true)),
            Form::Unknown => None,
        }
    }

    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// The length in bytes of the shortest JSON of a value.
    pub fn min_serialized_size(&self) -> i64 {
        self.min_serialized
    }

    fn simple(ty: Type, max_elements: i64, min_serialized: i64) -> Declared {
        Declared { ty, max_elements: max_elements.max(0) as u64, min_serialized, parts: Parts::None }
    }

    fn string(ty: Type, shape: &dyn Shape, min_serialized: i64) -> Declared {
        let longest_enum = shape.longest_enum().filter(|_| ty == Type::String);
        // A length counts characters, a request bytes: up to four each.
        let max = match (shape.limit(), longest_enum) {
            (Some(limit), _) => limit.max(0).saturating_mul(4),
            (None, Some(longest)) => longest as i64,
            (None, None) => MAX_REQUEST_BYTES - 2,
        };
        Declared::simple(ty, max, min_serialized)
    }

    fn list(shape: &dyn Shape, name: &str) -> Option<Declared> {
        let items = shape.items()?;
        let element = Declared::new(items, &format!("{name}.@idx"), items.is_embedded_resource())?;
        let max = match shape.limit() {
            Some(limit) => limit.max(0),
            None => (MAX_REQUEST_BYTES - 2) / (element.min_serialized + 1),
        };
        Some(Declared {
            ty: Type::list(element.ty.clone()),
            max_elements: max as u64,
            min_serialized: MIN_CONTAINER_JSON,
            parts: Parts::Elements(Arc::new(element)),
        })
    }

    fn map(shape: &dyn Shape, name: &str) -> Option<Declared> {
        let values = shape.values()?;
        let value = Declared::new(values, &format!("{name}.@elem"), values.is_embedded_resource())?;
        let max = match shape.limit() {
            Some(limit) => limit.max(0),
            None => (MAX_REQUEST_BYTES - 2) / (value.min_serialized + 6),
        };
        Some(Declared {
            ty: Type::map(Type::String, value.ty.clone()),
            max_elements: max as u64,
            min_serialized: MIN_CONTAINER_JSON,
            parts: Parts::Values(Arc::new(value)),
        })
    }

    fn object(shape: &dyn Shape, name: &str, is_resource_root: bool) -> Declared {
        let mut fields: Vec<(Arc<str>, Declared)> = Vec::new();
        let mut min_serialized = MIN_CONTAINER_JSON;
        let mut add = |property: &str, part: &dyn Shape| {
            let spelled = escape(property);
            let part_name = format!("{name}.{}", spelled.as_deref().unwrap_or(property));
            let Some(declared) = Declared::new(part, &part_name, part.is_embedded_resource()) else { return };
            if shape.requires(property) && !part.has_default() {
                min_serialized += property.len() as i64 + declared.min_serialized + 4;
            }
            if let Some(spelled) = spelled {
                fields.push((spelled.into(), declared));
            }
        };
        shape.each_property(&mut |property, part| {
            if !is_resource_root || shape::resource_property(property).is_none() {
                add(property, part);
            }
        });
        if is_resource_root {
            for property in ["apiVersion", "kind", "metadata"] {
                shape::resource_property(property).into_iter().for_each(|part| add(property, part));
            }
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        let listed = fields.iter().map(|(name, part)| Field { name: name.clone(), ty: part.ty.clone() });
        Declared {
            ty: Type::Object(Object::new(name, listed.collect())),
            max_elements: 0,
            min_serialized,
            parts: Parts::Fields(fields.into()),
        }
    }

    fn part(&self, step: &str) -> Option<&Declared> {
        match (&self.parts, step) {
            (Parts::Elements(part), "@items" | "@values") | (Parts::Values(part), "@items" | "@values") => {
                Some(part)
            }
            (Parts::Fields(fields), name) => {
                let at = fields.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
                Some(&fields[at].1)
            }
            _ => None,
        }
    }
}

/// The first step is the variable: `self`.
impl Sizes for Declared {
    fn size(&self, path: &[Arc<str>]) -> Option<Range> {
        let mut at = self;
        for step in path.get(1..)? {
            if matches!((&at.parts, &**step), (Parts::Values(_), "@keys")) {
                return Some(Range::ZERO);
            }
            at = at.part(step)?;
        }
        Some(Range { min: 0, max: at.max_elements })
    }
}
