//! Function libraries: a library is data, a list of functions with overloads, plus macros and type names.

use crate::{ast::Macro, cost::Range, error::Error, ty::Type, value::Value};

mod address;
mod charge;

pub mod authorizer;
pub mod bindings;
pub(crate) mod cidr;
mod comprehension;
pub(crate) mod format;
pub(crate) mod ip;
pub mod json_patch;
pub(crate) mod lists;
pub mod mutation;
mod optional;
pub(crate) mod quantity;
pub(crate) mod regex;
pub(crate) mod semver;
pub(crate) mod sets;
mod standard;
pub(crate) mod strings;
pub(crate) mod url;

pub type Outcome<'a> = Result<Value<'a>, Error>;
/// A function's body. The arguments have the types of the overload; a member's target comes first.
pub type Body = for<'a> fn(&[Value<'a>]) -> Outcome<'a>;

/// The cost of a call by its arguments and its result.
pub type Cost = fn(&[Value<'_>], &Value<'_>) -> u64;
/// The cost of a call by what is known of its arguments before the run.
pub type Estimate = fn(&[Argument<'_>]) -> Option<CallEstimate>;

/// Functions, macros and type names that are enabled together.
#[derive(Debug, Default)]
pub struct Library {
    pub functions: Vec<Function>,
    pub macros: Vec<Macro>,
    /// Types that expressions may name, such as `net.IP`.
    pub types: Vec<Type>,
    /// Named numbers and the like, with their values.
    pub constants: Vec<(&'static str, Type, Value<'static>)>,
}

/// All overloads of one name. `a.b` is a name too: `ip.isCanonical`.
#[derive(Debug)]
pub struct Function {
    pub name: &'static str,
    pub overloads: Vec<Overload>,
}

/// One signature of a function, with its body and cost.
#[derive(Debug)]
pub struct Overload {
    pub id: &'static str,
    /// Called as `first.name(rest)` rather than `name(first, rest)`.
    pub member: bool,
    pub parameters: Vec<Type>,
    pub result: Type,
    pub body: Body,
    /// The cost of a call at run time; `None` is one.
    pub cost: Option<Cost>,
    /// Kubernetes: cel-go finds its own costs by overload, and charges one while several fit.
    pub cost_needs_one_overload: bool,
    /// The estimated cost of a call; `None` is one, with a result of unknown size.
    pub estimate: Option<Estimate>,
}

/// The estimated cost of a call, and the size of its result.
#[derive(Clone, Copy, Debug)]
pub struct CallEstimate {
    pub cost: Range,
    /// Only for strings, bytes, lists and maps.
    pub size: Option<Range>,
}

/// An argument as the estimator knows it before the run; a member's target comes first.
#[derive(Clone, Debug)]
pub struct Argument<'e> {
    pub ty: &'e Type,
    /// Its size: known from the expression, else from the schema, else unknown.
    pub size: Range,
    /// The size of an element, where this is a list (unknown when the schema says nothing).
    pub element_size: Range,
    /// Set where the argument is a literal.
    pub literal: Option<&'e Value<'static>>,
}

/// Kubernetes: its base environment.
pub(crate) fn kubernetes() -> Vec<Library> {
    vec![
        standard::library(),
        optional::library(),
        comprehension::library(),
        url::library(),
        regex::library(),
        lists::library(),
        lists::extended::library(),
        authorizer::library(),
        quantity::library(),
        strings::library(),
        sets::library(),
        ip::library(),
        cidr::library(),
        format::library(),
        semver::library(),
    ]
}

impl Function {
    pub fn new(name: &'static str, overloads: Vec<Overload>) -> Function {
        Function { name, overloads }
    }
}

impl Overload {
    /// `name(…)`
    pub fn global(id: &'static str, parameters: Vec<Type>, result: Type, body: Body) -> Overload {
        Overload {
            id,
            member: false,
            parameters,
            result,
            body,
            cost: None,
            cost_needs_one_overload: false,
            estimate: None,
        }
    }

    /// `first.name(…)`
    pub fn member(id: &'static str, parameters: Vec<Type>, result: Type, body: Body) -> Overload {
        Overload { member: true, ..Overload::global(id, parameters, result, body) }
    }

    pub fn costs(mut self, cost: Cost) -> Overload {
        self.cost = Some(cost);
        self
    }

    /// A cost that applies only where the checker found exactly this overload.
    pub fn costs_by_overload(mut self, cost: Cost) -> Overload {
        self.cost_needs_one_overload = true;
        self.costs(cost)
    }

    pub fn estimated(mut self, estimate: Estimate) -> Overload {
        self.estimate = Some(estimate);
        self
    }
}

impl CallEstimate {
    pub fn of(cost: Range) -> CallEstimate {
        CallEstimate { cost, size: None }
    }

    pub fn sized(cost: Range, size: Range) -> CallEstimate {
        CallEstimate { cost, size: Some(size) }
    }
}

#[cfg(test)]
mod tests;
