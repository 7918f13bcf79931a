//! Declared objects: a name and fields, listed on first use.

use super::Type;
use crate::escape::is_reserved;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// A declared object type. Two are equal when their names are.
pub struct Object {
    name: Arc<str>,
    fields: OnceLock<Vec<Field>>,
    source: Option<Box<dyn Fn() -> Vec<Field> + Send + Sync>>,
    /// Takes any field, of any type.
    open: bool,
}

/// One field of a declared object, under its escaped name.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: Arc<str>,
    pub ty: Type,
}

impl Object {
    pub fn new(name: impl Into<Arc<str>>, mut fields: Vec<Field>) -> Arc<Object> {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Arc::new(Object { name: name.into(), fields: OnceLock::from(fields), source: None, open: false })
    }

    /// An object whose fields are listed on first use, so that types may be recursive.
    pub fn lazy(
        name: impl Into<Arc<str>>,
        source: impl Fn() -> Vec<Field> + Send + Sync + 'static,
    ) -> Arc<Object> {
        Arc::new(Object {
            name: name.into(),
            fields: OnceLock::new(),
            source: Some(Box::new(source)),
            open: false,
        })
    }

    /// An object of which only the name is known.
    pub fn open(name: impl Into<Arc<str>>) -> Arc<Object> {
        Arc::new(Object { name: name.into(), fields: OnceLock::new(), source: None, open: true })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn fields(&self) -> &[Field] {
        self.fields.get_or_init(|| {
            let mut fields = self.source.as_ref().map(|source| source()).unwrap_or_default();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            fields
        })
    }

    /// The type of a field. Kubernetes: `namespace` may be spelled so, as well as `__namespace__`.
    pub fn field(&self, name: &str) -> Option<&Type> {
        if self.open {
            return Some(&Type::Dyn);
        }
        let fields = self.fields();
        let find = |name: &str| fields.binary_search_by(|field| (*field.name).cmp(name)).ok();
        let at =
            find(name).or_else(|| if is_reserved(name) { find(&format!("__{name}__")) } else { None })?;
        Some(&fields[at].ty)
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        self.name == other.name
    }
}

impl Eq for Object {}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object").field("name", &self.name).finish_non_exhaustive()
    }
}
