//! Compiles the rules of one place to programs, or to the errors in their texts.

use expression::Type;
use expression::declare::Declared;
use expression::environment::Env;
use expression::pattern;
use expression::program::Program;

use super::seen::Seen;
use super::{RulePlace, field_path};
use crate::structural::shape::{Rule, Structural};

/// A rule that was compiled.
#[derive(Debug)]
pub(super) struct Compiled {
    /// `None` for a rule without an expression.
    pub(super) program: Result<Option<Program>, String>,
    pub(super) message: Result<Option<Program>, String>,
    pub(super) uses_old: bool,
    pub(super) optional_old: bool,
    /// The path of its errors, relative to its own place; empty for that place.
    pub(super) field_path: String,
    pub(super) cost: u64,
    pub(super) message_cost: u64,
    /// How many values a request may contain, if nothing else limits them.
    pub(super) cardinality: u64,
}

/// The memory that the compiled patterns in the rules of one schema need. They are compiled when they first
/// run, and kept, so there is a limit on their total.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    bytes: usize,
}

impl Patterns {
    /// Counts the patterns of a rule. A rule above the limit gets an error.
    pub(super) fn count(&mut self, rule: &mut Compiled) {
        let programs = [&rule.program, &rule.message].into_iter().flatten().flatten();
        self.bytes = programs.fold(self.bytes, |sum, it| sum.saturating_add(it.pattern_bytes()));
        if self.bytes > pattern::MAX_TOGETHER_BYTES && matches!(rule.program, Ok(Some(_))) {
            rule.program = Err("compilation failed: regular expressions are too large together".to_owned());
        }
    }
}

/// Kubernetes: the largest request.
const MAX_REQUEST_BYTES: i64 = 3 * 1024 * 1024;

/// Compiles the rules of a place. None where expressions cannot see the place.
pub(super) fn compile(schema: &Structural, seen: &[Seen<'_>], place: RulePlace) -> Vec<Compiled> {
    let rules = schema.shape(place.rules).rules();
    if rules.is_empty() {
        return Vec::new();
    }
    let Some(declared) = Declared::new(&seen[place.of.0 as usize], "selfType", place.whole) else {
        return Vec::new();
    };
    let env = Env::kubernetes().with_variable("self", declared.ty().clone());
    let plain = env.clone().with_variable("oldSelf", declared.ty().clone());
    let optional = env.with_variable("oldSelf", Type::optional(declared.ty().clone()));
    let compile = |rule: &Rule| {
        let optional_old = rule.optional_old_self == Some(true);
        let env = if optional_old { &optional } else { &plain };
        let mut compiled = compile_rule(rule, env, &declared);
        compiled.optional_old = optional_old;
        compiled.field_path =
            field_path::normalize(schema, schema.shape(place.of), &rule.field_path).unwrap_or_default();
        compiled
    };
    rules.iter().map(compile).collect()
}

fn compile_rule(rule: &Rule, env: &Env, declared: &Declared) -> Compiled {
    let request_share = MAX_REQUEST_BYTES / (declared.min_serialized_size() + 1);
    let mut compiled = Compiled {
        program: Ok(None),
        message: Ok(None),
        uses_old: false,
        optional_old: false,
        field_path: String::new(),
        cost: 0,
        message_cost: 0,
        cardinality: u64::try_from(request_share).unwrap_or(0),
    };
    if rule.rule.trim().is_empty() {
        return compiled;
    }
    let checked = match env.compile(&rule.rule) {
        Ok(checked) => checked,
        Err(issues) => {
            compiled.program = Err(format!("compilation failed: {issues}"));
            return compiled;
        }
    };
    if *checked.output_type() != Type::Bool {
        compiled.program = Err("cel expression must evaluate to a bool".to_owned());
        return compiled;
    }
    match checked.program() {
        Ok(program) => {
            compiled.uses_old = program.variables().any(|name| name == "oldSelf");
            compiled.program = Ok(Some(program));
        }
        Err(error) => {
            compiled.program = Err(format!("program instantiation failed: {error}"));
            return compiled;
        }
    }
    compiled.cost = checked.estimate(declared).max;
    if !rule.message_expression.is_empty() {
        match compile_message(rule, env, declared) {
            Ok((program, cost)) => {
                compiled.message = Ok(Some(program));
                compiled.message_cost = cost;
            }
            Err(message) => compiled.message = Err(message),
        }
    }
    compiled
}

fn compile_message(rule: &Rule, env: &Env, declared: &Declared) -> Result<(Program, u64), String> {
    let checked = env
        .compile(&rule.message_expression)
        .map_err(|issues| format!("messageExpression compilation failed: {issues}"))?;
    if *checked.output_type() != Type::String {
        return Err("messageExpression must evaluate to a string".to_owned());
    }
    let program =
        checked.program().map_err(|error| format!("messageExpression instantiation failed: {error}"))?;
    Ok((program, checked.estimate(declared).max))
}
