//! Expressions of policies and webhooks: compiled once, evaluated with a cost budget.

use super::authority::Authority;
use expression::{
    Bindings, Error, Program, Value,
    library::authorizer::{Resource, authorizer_value, resource_check_value},
    value::view,
};
use kinds::policy::{Compiled, Names, Wanted};
use serde_json::Value as Json;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

// Kubernetes: cost limits of one expression, of one binding, and of all match conditions.
const PER_CALL: u64 = 1_000_000;
pub(super) const BUDGET: u64 = 10_000_000;
const CONDITIONS_BUDGET: u64 = 2_500_000;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// A named expression: a match condition or a variable.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) name: String,
    pub(super) source: String,
    compiled: Result<Program, String>,
}

/// The variables that expressions see.
#[derive(Debug)]
pub(super) struct Activation<'a> {
    pub(super) object: &'a Json,
    pub(super) old: &'a Json,
    pub(super) request: &'a Json,
    pub(super) params: Option<&'a Json>,
    /// Null for cluster-scoped objects.
    pub(super) namespace: &'a Json,
    pub(super) authority: Option<&'a Arc<Authority>>,
    pub(super) variables: &'a [Expression],
}

/// One evaluation of several expressions. Each variable is evaluated once.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    activation: &'a Activation<'a>,
    variables: RefCell<BTreeMap<String, Result<Value<'a>, Error>>>,
    spent_on_variables: Cell<u64>,
    budget: Cell<u64>,
}

impl Expression {
    pub(super) fn new(name: &str, source: &str, compiled: Result<Compiled, String>) -> Expression {
        let compiled = compiled.map(|compiled| compiled.program);
        Expression { name: name.to_owned(), source: source.to_owned(), compiled }
    }

    /// Compiles matchConditions.
    pub(super) fn conditions(names: &Names, list: &Json) -> Vec<Expression> {
        let of = |condition: &Json| {
            let text = |member: &str| condition[member].as_str().unwrap_or_default();
            let compiled = names.compile(text("expression"), Wanted::Bool);
            Expression::new(text("name"), text("expression"), compiled)
        };
        list.as_array().into_iter().flatten().map(of).collect()
    }

    pub(super) fn problem(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }
}

/// Whether all conditions are true; the error text names those that failed to evaluate.
pub(super) fn holds(conditions: &[Expression], activation: &Activation<'_>) -> Result<bool, String> {
    let evaluation = Evaluation::new(activation, CONDITIONS_BUDGET);
    let mut problems = Vec::new();
    let mut outcomes = Vec::new();
    for condition in conditions {
        outcomes.push(evaluation.run(condition)?);
    }
    for outcome in outcomes {
        match outcome {
            Ok(Value::Bool(false)) => return Ok(false),
            Ok(_) => {}
            Err(problem) => problems.push(problem),
        }
    }
    match problems.as_slice() {
        [] => Ok(true),
        [only] => Err(only.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(activation: &'a Activation<'a>, budget: u64) -> Evaluation<'a> {
        Evaluation {
            activation,
            variables: RefCell::default(),
            spent_on_variables: Cell::new(0),
            budget: Cell::new(budget),
        }
    }

    /// The remaining budget.
    pub(super) fn budget(&self) -> u64 {
        self.budget.get()
    }

    /// The value, or its evaluation error. The outer error means that the budget is spent.
    pub(super) fn run(&self, expression: &Expression) -> Result<Result<Value<'a>, String>, String> {
        let program = match &expression.compiled {
            Ok(program) => program,
            Err(problem) => return Ok(Err(format!("compilation error: {problem}"))),
        };
        let run = program.run(self, PER_CALL);
        let cost = run.cost.saturating_add(self.spent_on_variables.take());
        match self.budget.get().checked_sub(cost) {
            Some(left) => self.budget.set(left),
            None => return Err(OUT_OF_BUDGET.to_owned()),
        }
        let in_context =
            |error: Error| format!("expression '{}' resulted in error: {error}", expression.source);
        Ok(run.outcome.map_err(in_context))
    }

    fn variable(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        if let Some(known) = self.variables.borrow().get(name) {
            return Some(known.clone());
        }
        let variable = self.activation.variables.iter().rev().find(|it| it.name == name)?;
        let outcome = match &variable.compiled {
            Err(problem) => {
                Err(Error::new(format!("composited variable {name:?} fails to compile: {problem}")))
            }
            Ok(program) => {
                let run = program.run(self, PER_CALL);
                self.spent_on_variables.set(self.spent_on_variables.get().saturating_add(run.cost));
                run.outcome.map_err(|error| {
                    Error::new(format!("composited variable {name:?} fails to evaluate: {error}"))
                })
            }
        };
        self.variables.borrow_mut().insert(name.to_owned(), outcome.clone());
        Some(outcome)
    }

    fn request_resource(&self, authority: &Arc<Authority>) -> Value<'static> {
        let request = self.activation.request;
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let at = &request["requestResource"];
        let resource = Resource {
            group: text(&at["group"]),
            resource: text(&at["resource"]),
            subresource: text(&request["requestSubResource"]),
            namespace: text(&request["namespace"]),
            name: text(&request["name"]),
            ..Resource::default()
        };
        resource_check_value(Arc::clone(authority) as _, resource)
    }
}

impl<'a> Bindings<'a> for Evaluation<'a> {
    fn find(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        let activation = self.activation;
        let shown = |json: &'a Json| Some(Ok(view(json, None)));
        match name {
            "object" => shown(activation.object),
            "oldObject" => shown(activation.old),
            "request" => shown(activation.request),
            "namespaceObject" => shown(activation.namespace),
            "params" => shown(activation.params.unwrap_or(&Json::Null)),
            "authorizer" => activation.authority.map(|it| Ok(authorizer_value(Arc::clone(it) as _))),
            "authorizer.requestResource" => activation.authority.map(|it| Ok(self.request_resource(it))),
            other => self.variable(other.strip_prefix("variables.")?),
        }
    }
}
