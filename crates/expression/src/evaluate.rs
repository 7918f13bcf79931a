//! Evaluates code within a budget.

use crate::{
    cost,
    equality::equal_counting,
    error::Error,
    library::Outcome,
    plan::{Call, Code, Op},
    program::{Bindings, Run},
    value::{Instance, Key, Map, Value},
};
use std::{collections::BTreeMap, sync::Arc};

pub(crate) use dispatch::{dispatch, pattern_cost};
pub(crate) use path::refuse_literal_key;

mod dispatch;
mod fold;
mod path;

/// Iterations of a comprehension and comparisons of large values may cost nothing, so the budget alone does
/// not stop them: this is about a second's work.
const MAX_UNCHARGED_WORK: u64 = 5_000_000;

/// One run: the variables read so far, and the cost so far.
struct Machine<'r, 'a> {
    code: &'r Code,
    bindings: &'r dyn Bindings<'a>,
    /// Variables that were read already.
    seen: Vec<Option<Outcome<'a>>>,
    /// Accumulators and variables of the comprehensions around the current step.
    locals: Vec<Local<'r, 'a>>,
    spent: u64,
    budget: u64,
    /// Iterations of comprehensions and values compared so far.
    uncharged_work: u64,
}

enum Local<'r, 'a> {
    Known(Outcome<'a>),
    /// A named value that no expression has asked for yet.
    Pending(&'r Op),
}

pub(crate) fn run<'a>(code: &Code, bindings: &dyn Bindings<'a>, budget: u64) -> Run<'a> {
    let mut machine = Machine {
        code,
        bindings,
        seen: vec![None; code.variables.len()],
        locals: Vec::new(),
        spent: 0,
        budget,
        uncharged_work: 0,
    };
    let outcome = machine.eval(&code.root);
    Run { outcome, cost: machine.spent }
}

impl<'r, 'a> Machine<'r, 'a> {
    fn eval(&mut self, op: &'r Op) -> Outcome<'a> {
        match op {
            Op::Constant(value) => Ok(value.clone()),
            Op::Variable(_) | Op::Local(_) | Op::Take(_) => {
                let outcome = self.eval_raw(op);
                self.charge(1)?;
                outcome
            }
            Op::Path { root, is_test, .. } => {
                let outcome = self.eval_raw(op);
                // Kubernetes: testing for a field costs nothing by itself, nor does a conditional.
                self.charge(u64::from(!is_test && !matches!(**root, Op::If(_))))?;
                outcome
            }
            Op::And(terms) => self.eval_logic(terms, false),
            Op::Or(terms) => self.eval_logic(terms, true),
            Op::If(_) => self.eval_raw(op),
            Op::Equal(sides, wanted) => self.eval_equal(sides, *wanted),
            Op::NotStrictlyFalse(inner) => self.eval_not_strictly_false(inner),
            Op::OneOf(inner, set) => {
                let value = self.eval(inner)?;
                let Value::List(set) = set else { return Err(Error::no_such_overload()) };
                Ok(Value::Bool(set.contains(&value)))
            }
            Op::Matches(target, pattern) => {
                let target = self.eval(target)?;
                self.charge(pattern.cost(target.size()))?;
                match target {
                    Value::String(text) => Ok(Value::Bool(pattern.regex()?.is_match(&text))),
                    _ => Err(Error::no_such_overload()),
                }
            }
            Op::OptionalOr { target, other, unwraps } => self.eval_optional_or(target, other, *unwraps),
            Op::Call(call) => self.eval_call(call),
            Op::List { items, optional } => self.eval_list(items, optional),
            Op::Map(entries) => self.eval_map(entries),
            Op::Struct { name, fields } => self.eval_struct(name, fields),
            Op::Bind(bind) => {
                let (value, result, slot) = &**bind;
                let slot = *slot as usize;
                self.locals.truncate(slot);
                self.locals.push(Local::Pending(value));
                let outcome = self.eval(result);
                self.locals.truncate(slot);
                outcome
            }
            Op::Fold(fold) => self.eval_fold(fold),
        }
    }

    /// A name, a path or a conditional without the charge for naming it: as a branch or as an index.
    fn eval_raw(&mut self, op: &'r Op) -> Outcome<'a> {
        match op {
            Op::Variable(number) => {
                self.charge(self.code.dots[*number as usize])?;
                self.variable(*number)
            }
            Op::Local(slot) => self.local(*slot as usize),
            Op::Take(slot) => {
                let taken =
                    std::mem::replace(&mut self.locals[*slot as usize], Local::Known(Ok(Value::Null)));
                match taken {
                    Local::Known(outcome) => outcome,
                    Local::Pending(op) => self.eval(op),
                }
            }
            Op::Path { root, steps, is_test } => self.eval_path(root, steps, *is_test),
            Op::If(parts) => {
                let [condition, yes, no] = &**parts;
                match self.eval(condition)? {
                    Value::Bool(true) => self.eval_raw(yes).map(flattened),
                    Value::Bool(false) => self.eval_raw(no).map(flattened),
                    _ => Err(Error::no_such_overload()),
                }
            }
            other => self.eval(other),
        }
    }

    fn local(&mut self, slot: usize) -> Outcome<'a> {
        let pending = match &self.locals[slot] {
            Local::Known(outcome) => return outcome.clone(),
            Local::Pending(op) => *op,
        };
        // It was compiled in a scope with fewer variables.
        let above = self.locals.split_off(slot + 1);
        self.locals.truncate(slot);
        let outcome = self.eval(pending);
        self.locals.truncate(slot);
        self.locals.push(Local::Known(outcome.clone()));
        self.locals.extend(above);
        outcome
    }

    fn variable(&mut self, number: u32) -> Outcome<'a> {
        let number = number as usize;
        if let Some(outcome) = &self.seen[number] {
            return outcome.clone();
        }
        let name = &self.code.variables[number];
        let outcome = self
            .bindings
            .find(name)
            .unwrap_or_else(|| Err(Error::new(format!("no such attribute(s): {name}"))));
        self.seen[number] = Some(outcome.clone());
        outcome
    }

    fn charge(&mut self, cost: u64) -> Result<(), Error> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.budget { Err(Error::cost_limit_exceeded()) } else { Ok(()) }
    }

    /// Counts work that the cost may not include.
    fn uncharged_work(&mut self, work: u64) -> Result<(), Error> {
        self.uncharged_work = self.uncharged_work.saturating_add(work);
        if self.uncharged_work > MAX_UNCHARGED_WORK { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// `&&` (decided by false) and `||` (decided by true): a decision absorbs errors.
    fn eval_logic(&mut self, terms: &'r [Op], decides: bool) -> Outcome<'a> {
        let mut failed = None;
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decides => return Ok(Value::Bool(decides)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or_else(|| Some(Error::no_such_overload())),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(Value::Bool(!decides)), Err)
    }

    fn eval_equal(&mut self, sides: &'r [Op; 2], wanted: bool) -> Outcome<'a> {
        let (left, right) = self.both(&sides[0], &sides[1])?;
        let size = |side: &Outcome<'_>| side.as_ref().map_or(1, Value::size);
        let cost = match &left {
            Ok(Value::Opaque(_)) if wanted => 1,
            _ => cost::scale(size(&left).min(size(&right)), cost::STRING_TRAVERSAL),
        };
        self.charge(cost)?;
        let mut seen = 0;
        let same = equal_counting(&left?, &right?, &mut seen);
        self.uncharged_work(seen)?;
        Ok(Value::Bool(same == wanted))
    }

    /// Both sides are evaluated, even where the first fails.
    fn both(&mut self, left: &'r Op, right: &'r Op) -> Result<(Outcome<'a>, Outcome<'a>), Error> {
        let left = self.eval(left);
        if let Err(error) = &left
            && error.is_cancelled()
        {
            return Err(error.clone());
        }
        let right = self.eval(right);
        match &right {
            Err(error) if error.is_cancelled() => Err(error.clone()),
            _ => Ok((left, right)),
        }
    }

    fn eval_not_strictly_false(&mut self, inner: &'r Op) -> Outcome<'a> {
        let outcome = self.eval(inner);
        self.charge(1)?;
        match outcome {
            Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
            Err(error) if error.is_cancelled() => Err(error),
            _ => Ok(Value::Bool(true)),
        }
    }

    fn eval_optional_or(&mut self, target: &'r Op, other: &'r Op, unwraps: bool) -> Outcome<'a> {
        match self.eval(target)? {
            Value::Optional(Some(value)) if unwraps => Ok((*value).clone()),
            Value::Optional(Some(value)) => Ok(Value::Optional(Some(value))),
            Value::Optional(None) => self.eval(other),
            value if unwraps => Ok(value),
            _ => Err(Error::no_such_overload()),
        }
    }

    fn eval_call(&mut self, call: &'r Call) -> Outcome<'a> {
        let mut values = Vec::with_capacity(call.args.len());
        let mut failed = None;
        for arg in &call.args {
            match self.eval(arg) {
                Ok(value) => values.push(value),
                Err(error) if error.is_cancelled() => return Err(error),
                Err(error) => {
                    failed = failed.or(Some(error));
                    values.push(Value::Null);
                    // Calls with one or two arguments evaluate all of them before they fail.
                    if call.args.len() > 2 {
                        break;
                    }
                }
            }
        }
        if let Some(error) = failed {
            let all_seen = values.len() == call.args.len();
            self.charge(if all_seen { dispatch::failed_cost(call, &values) } else { 0 })?;
            return Err(error);
        }
        let (outcome, cost) = dispatch::call(call, values);
        self.charge(cost)?;
        outcome
    }

    fn eval_list(&mut self, items: &'r [Op], optional: &[u32]) -> Outcome<'a> {
        let mut values = Vec::with_capacity(items.len());
        let mut failed = None;
        for (index, item) in items.iter().enumerate() {
            match self.eval(item) {
                Ok(value) if !optional.contains(&(index as u32)) => values.push(value),
                Ok(Value::Optional(inner)) => values.extend(inner.as_deref().cloned()),
                Ok(other) => {
                    failed = Some(Error::new(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        crate::text::describe(&other)
                    )));
                }
                Err(error) => failed = Some(error),
            }
            if failed.is_some() {
                break;
            }
        }
        self.charge_unless_cancelled(&failed, cost::LIST_CREATE)?;
        failed.map_or_else(|| Ok(Value::list(values)), Err)
    }

    fn eval_map(&mut self, entries: &'r [(Op, Op, bool)]) -> Outcome<'a> {
        let mut made = BTreeMap::new();
        let mut failed = None;
        for (key, value, optional) in entries {
            if let Err(error) = self.eval_entry(&mut made, key, value, *optional) {
                failed = Some(error);
                break;
            }
        }
        self.charge_unless_cancelled(&failed, cost::MAP_CREATE)?;
        failed.map_or_else(|| Ok(Value::Map(Map::new(made))), Err)
    }

    fn eval_entry(
        &mut self,
        made: &mut BTreeMap<Key<'a>, Value<'a>>,
        key: &'r Op,
        value: &'r Op,
        optional: bool,
    ) -> Result<(), Error> {
        let key = self.eval(key)?;
        let value = self.eval(value)?;
        let key = Key::of(&key);
        match value {
            // Kubernetes: an absent optional also removes an earlier entry of the key.
            Value::Optional(None) if optional => {
                made.remove(&key);
            }
            Value::Optional(Some(inner)) if optional => {
                made.insert(key, (*inner).clone());
            }
            other if optional => {
                let key = crate::text::describe(&key.into_value());
                let shown = crate::text::describe(&other);
                return Err(Error::new(format!(
                    "cannot initialize optional entry '{key}' from non-optional value {shown}"
                )));
            }
            value => {
                made.insert(key, value);
            }
        }
        Ok(())
    }

    fn eval_struct(&mut self, name: &Arc<str>, fields: &'r [(Arc<str>, Op, bool)]) -> Outcome<'a> {
        let mut made = Vec::with_capacity(fields.len());
        for (field, value, optional) in fields {
            match self.eval(value)? {
                Value::Optional(None) if *optional => {}
                Value::Optional(Some(inner)) if *optional => made.push((field.clone(), (*inner).clone())),
                value => made.push((field.clone(), value)),
            }
        }
        self.charge(cost::STRUCT_CREATE)?;
        Ok(Value::Object(Arc::new(Instance { name: name.clone(), fields: made })))
    }

    fn charge_unless_cancelled(&mut self, failed: &Option<Error>, cost: u64) -> Result<(), Error> {
        match failed {
            Some(error) if error.is_cancelled() => Err(error.clone()),
            _ => self.charge(cost),
        }
    }
}

/// Kubernetes: a choice between optionals of optionals gives the innermost value.
fn flattened(value: Value<'_>) -> Value<'_> {
    let Value::Optional(Some(inner)) = &value else { return value };
    let Value::Optional(_) = &**inner else { return value };
    let mut innermost = (**inner).clone();
    while let Value::Optional(inner) = innermost {
        innermost = inner.map_or(Value::Null, |inner| (*inner).clone());
    }
    Value::some(innermost)
}
