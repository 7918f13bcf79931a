//! The names that an expression may use: variables, functions, types; shared by all expressions of one use.

use crate::{
    ast::Macro,
    check,
    issues::Issues,
    library::{self, Library, Overload},
    macros, parser,
    program::Checked,
    ty::{Object, Type},
    value::Value,
};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

/// Names and their types, on top of the functions that Kubernetes offers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Env {
    base: Arc<Base>,
    variables: HashMap<Arc<str>, Type>,
    /// Objects that expressions may construct or name, by name.
    objects: HashMap<Arc<str>, Arc<Object>>,
    /// This name, and every name under it, is an object with any fields.
    open: Option<&'static str>,
}

/// The libraries, merged: built once for the process.
#[derive(Debug)]
pub(crate) struct Base {
    functions: HashMap<&'static str, Arc<[Arc<Overload>]>>,
    macros: Vec<Macro>,
    idents: HashMap<&'static str, Named>,
}

/// The type and value of a name of a library.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) ty: Type,
    pub(crate) value: Value<'static>,
}

/// Kubernetes: the libraries of its base environment, all of which version 1.36 turns on.
static KUBERNETES: LazyLock<Arc<Base>> = LazyLock::new(|| Arc::new(Base::new(library::kubernetes())));

impl Env {
    /// The environment of every expression in Kubernetes, without variables.
    pub fn kubernetes() -> Env {
        Env { base: KUBERNETES.clone(), variables: HashMap::new(), objects: HashMap::new(), open: None }
    }

    /// This environment with further libraries.
    pub fn with_libraries(mut self, libraries: Vec<Library>) -> Env {
        let mut base = library::kubernetes();
        base.extend(libraries);
        self.base = Arc::new(Base::new(base));
        self
    }

    /// Declares a variable. A name with dots, such as `variables.replicas`, is a separate variable, so that
    /// each is computed only when an expression uses it.
    pub fn with_variable(mut self, name: impl Into<Arc<str>>, ty: Type) -> Env {
        self.variables.insert(name.into(), ty);
        self
    }

    /// Lets expressions construct this object: `Name{field: value}`.
    pub fn with_object(mut self, object: Arc<Object>) -> Env {
        self.objects.insert(object.name().into(), object);
        self
    }

    /// Lets expressions construct objects with any fields under this name and the names below it:
    /// `Name.field{…}`.
    pub fn with_open_objects(mut self, root: &'static str) -> Env {
        self.open = Some(root);
        self
    }

    /// Text → checked tree.
    pub fn compile(&self, source: &str) -> Result<Checked, Issues> {
        let parsed = parser::parse(source, &self.base.macros)?;
        check::check(self, source, parsed)
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Type> {
        self.variables.get(name)
    }

    pub(crate) fn named(&self, name: &str) -> Option<Named> {
        let below = |rest: &str| rest.is_empty() || rest.starts_with('.');
        let is_open = self.open.and_then(|root| name.strip_prefix(root)).is_some_and(below);
        let open = || is_open.then(|| Object::open(name));
        if let Some(object) = self.objects.get(name).cloned().or_else(open) {
            let ty = Type::Object(object);
            return Some(Named { ty: Type::type_of(ty.clone()), value: Value::Type(ty) });
        }
        self.base.idents.get(name).cloned()
    }

    pub(crate) fn function(&self, name: &str) -> Option<&Arc<[Arc<Overload>]>> {
        self.base.functions.get(name)
    }
}

impl Base {
    fn new(libraries: Vec<Library>) -> Base {
        let mut functions: HashMap<&'static str, Vec<Arc<Overload>>> = HashMap::new();
        let mut all_macros = macros::STANDARD.to_vec();
        let mut idents = HashMap::new();
        for library in libraries {
            for function in library.functions {
                functions
                    .entry(function.name)
                    .or_default()
                    .extend(function.overloads.into_iter().map(Arc::new));
            }
            all_macros.extend(library.macros);
            for ty in library.types {
                let name = ty.fixed_name().unwrap_or("dyn");
                idents.insert(name, Named { ty: Type::type_of(ty.clone()), value: Value::Type(ty) });
            }
            for (name, ty, value) in library.constants {
                idents.insert(name, Named { ty, value });
            }
        }
        let functions = functions.into_iter().map(|(name, overloads)| (name, overloads.into())).collect();
        Base { functions, macros: all_macros, idents }
    }
}
