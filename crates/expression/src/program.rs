//! A checked expression, and the program compiled from it.

use crate::{
    ast::Expr, check::Reference, cost::Range, declare::Sizes, error::Error, estimate, evaluate, plan,
    ty::Type, value::Value,
};
use std::sync::Arc;

/// A type-checked expression.
#[derive(Debug)]
pub struct Checked {
    pub(crate) root: Expr,
    pub(crate) types: Vec<Type>,
    pub(crate) references: Vec<Option<Reference>>,
}

/// An expression ready to run, any number of times, on any thread.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) code: Arc<plan::Code>,
}

/// The variables of a run. Each is read at most once, and only if needed.
pub trait Bindings<'a> {
    fn find(&self, name: &str) -> Option<Result<Value<'a>, Error>>;
}

impl<'a> Bindings<'a> for [(&str, Value<'a>)] {
    fn find(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| Ok(value.clone()))
    }
}

impl<'a, const N: usize> Bindings<'a> for [(&str, Value<'a>); N] {
    fn find(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        self.as_slice().find(name)
    }
}

/// The result of a run, and its cost, also if it failed.
#[derive(Debug)]
pub struct Run<'a> {
    pub outcome: Result<Value<'a>, Error>,
    pub cost: u64,
}

impl Checked {
    pub(crate) fn new(root: Expr, types: Vec<Type>, references: Vec<Option<Reference>>) -> Checked {
        Checked { root, types, references }
    }

    pub fn output_type(&self) -> &Type {
        &self.types[self.root.id as usize]
    }

    /// The estimated cost, given the sizes of the variables.
    pub fn estimate(&self, sizes: &dyn Sizes) -> Range {
        estimate::estimate(self, sizes)
    }

    /// The program; fails where a conversion of a literal does: `int('x')`.
    pub fn program(&self) -> Result<Program, Error> {
        Ok(Program { code: Arc::new(plan::plan(self)?) })
    }

    /// Whether the expression uses this variable.
    pub fn mentions(&self, variable: &str) -> bool {
        plan::plan(self).is_ok_and(|code| code.variables.iter().any(|name| &**name == variable))
    }
}

impl Program {
    /// Runs within a budget; fails with a cancellation if that is spent.
    pub fn run<'a>(&self, bindings: &dyn Bindings<'a>, budget: u64) -> Run<'a> {
        evaluate::run(&self.code, bindings, budget)
    }

    /// The total size of its compiled patterns, as [`pattern::measure`](crate::pattern::measure) counts it.
    pub fn pattern_bytes(&self) -> usize {
        self.code.pattern_bytes
    }

    /// The names of the variables that it reads.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.code.variables.iter().map(|name| &**name)
    }
}
