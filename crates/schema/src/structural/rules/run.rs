//! Runs the rules on an object and collects the errors. All runs count against one budget.

use std::ops::ControlFlow;

use api::field::{BadValue, Error, Path};
use expression::Value as Cel;
use expression::program::Program;
use expression::value::{view, view_resource};
use serde_json::Value;

use super::program::Compiled;
use super::seen::{self, Seen};
use super::{MAX_COST_PER_CALL, MAX_COST_PER_OBJECT, Part, RulePlace, Rules, Verdict, parts};
use crate::structural::shape::{Rule, ShapeId, Structural, ValueType};
use crate::structural::validate::before::Before;

/// Kubernetes: the longest message, in bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

pub(super) fn run(rules: &Rules, schema: &Structural, new: &Value, old: Option<&Value>) -> Verdict {
    seen::with(schema, |seen| {
        let mut run = Run { rules, schema, seen, verdict: Verdict::default(), budget: MAX_COST_PER_OBJECT };
        let before = Ratchet { current: old.map(|old| Before::new(schema, schema.root, old)), nearest: None };
        let _ = run.value(RulePlace::root(schema), &Path::ROOT, new, old, before);
        run.verdict
    })
}

struct Run<'r, 'x> {
    rules: &'r Rules,
    schema: &'r Structural,
    seen: &'x [Seen<'x>],
    verdict: Verdict,
    budget: i64,
}

/// The old value, for rules that the unchanged value failed before (ratcheting).
#[derive(Clone, Copy)]
struct Ratchet<'r, 'o> {
    current: Option<Before<'r, 'o>>,
    /// The nearest enclosing value that can be compared.
    nearest: Option<(Before<'r, 'o>, &'o Value)>,
}

impl<'r, 'o> Ratchet<'r, 'o> {
    fn ratchets(&self, value: &Value) -> bool {
        match (self.current, self.nearest) {
            (Some(before), _) => before.is_unchanged(value),
            (None, Some((before, around))) => before.is_unchanged(around),
            (None, None) => false,
        }
    }

    fn below(self, value: &'o Value, find: impl FnOnce(Before<'r, 'o>) -> Option<Before<'r, 'o>>) -> Self {
        match self.current {
            None => self,
            Some(before) => Self { current: find(before), nearest: Some((before, value)) },
        }
    }

    fn member(self, value: &'o Value, name: &str) -> Self {
        // Kubernetes: a change of apiVersion is not visible here, so these never count as unchanged.
        if self.current.is_some() && self.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self { current: None, nearest: None };
        }
        self.below(value, |before| before.member(name))
    }
}

/// Continues, or stops because the budget is spent.
type Go = ControlFlow<()>;

impl<'r, 'x> Run<'r, 'x> {
    fn value<'o>(
        &mut self,
        place: RulePlace,
        path: &Path<'_>,
        value: &'o Value,
        old: Option<&'o Value>,
        before: Ratchet<'r, 'o>,
    ) -> Go {
        let Some(Some(compiled)) = self.rules.by_place.get(&place).filter(|_| !value.is_null()) else {
            return Go::Continue(());
        };
        let old = old.filter(|old| !old.is_null());
        self.rules_at(place, compiled, path, (value, old), before)?;
        for id in self.schema.shape(place.rules).more.iter().flat_map(|more| &more.all_of) {
            let inside = Ratchet { current: None, ..before };
            self.value(RulePlace { rules: *id, ..place }, path, value, old, inside)?;
        }
        match value {
            Value::Array(items) => self.items(place, path, (value, items), old, before),
            Value::Object(_) => self.members(place, path, value, old, before),
            _ => Go::Continue(()),
        }
    }

    fn items<'o>(
        &mut self,
        place: RulePlace,
        path: &Path<'_>,
        (list, items): (&'o Value, &'o [Value]),
        old: Option<&'o Value>,
        before: Ratchet<'r, 'o>,
    ) -> Go {
        let Some((_, below)) = parts(self.schema, place).find(|(part, _)| matches!(part, Part::Items)) else {
            return Go::Continue(());
        };
        let of = place.of;
        let old_items = old.map(|old| Before::new(self.schema, of, old).items());
        let known_items = before.current.map(Before::items);
        for (nth, item) in items.iter().enumerate() {
            let old = old_items.as_ref().and_then(|old| old.find(item)).map(|found| found.old);
            let before = before.below(list, |_| known_items.as_ref().and_then(|known| known.find(item)));
            self.value(below, &path.index(nth), item, old, before)?;
        }
        Go::Continue(())
    }

    fn members<'o>(
        &mut self,
        place: RulePlace,
        path: &Path<'_>,
        value: &'o Value,
        old: Option<&'o Value>,
        before: Ratchet<'r, 'o>,
    ) -> Go {
        let schema = self.schema;
        let old_member = |name: &str| old.and_then(|old| old.get(name));
        for (part, below) in parts(schema, place) {
            match part {
                Part::Items => {}
                Part::Values => {
                    for (name, member) in value.as_object().into_iter().flatten() {
                        let before = before.member(value, name);
                        self.value(below, &path.key(name), member, old_member(name), before)?;
                    }
                }
                Part::Property(name) => {
                    let Some(member) = value.get(name) else { continue };
                    let before = before.member(value, name);
                    self.value(below, &path.child(name), member, old_member(name), before)?;
                }
            }
        }
        Go::Continue(())
    }

    fn rules_at<'o>(
        &mut self,
        place: RulePlace,
        compiled: &[Compiled],
        path: &Path<'_>,
        (value, old): (&'o Value, Option<&'o Value>),
        before: Ratchet<'r, 'o>,
    ) -> Go {
        if compiled.is_empty() {
            return Go::Continue(());
        }
        let kind = self.schema.shape(place.of).kind;
        if self.budget <= 0 {
            self.verdict.errors.push(Error::invalid(path, type_name(kind), OUT_OF_BUDGET));
            return Go::Break(());
        }
        let sources = self.schema.shape(place.rules).rules();
        let subject = Subject {
            value,
            kind,
            this: self.view(place.of, place.whole, value),
            old: old
                .filter(|_| compiled.iter().any(|rule| rule.uses_old))
                .map(|old| self.view(place.of, place.whole, old)),
        };
        for (rule, source) in compiled.iter().zip(sources) {
            if let Some(error) = self.rule(rule, source, path, &subject)? {
                let ratcheted = error.may_be_ratcheted && !rule.uses_old && before.ratchets(value);
                match ratcheted {
                    true => self.verdict.ratcheted.push(error.error),
                    false => self.verdict.errors.push(error.error),
                }
                if error.is_last {
                    return Go::Break(());
                }
            }
        }
        Go::Continue(())
    }

    fn view<'v>(&self, id: ShapeId, whole: bool, value: &'v Value) -> Cel<'v>
    where
        'x: 'v,
    {
        let seen = &self.seen[id.0 as usize];
        if whole { view_resource(value, seen) } else { view(value, Some(seen)) }
    }

    /// Runs one rule; returns its error if it fails.
    fn rule(
        &mut self,
        rule: &Compiled,
        source: &Rule,
        path: &Path<'_>,
        subject: &Subject<'_>,
    ) -> ControlFlow<(), Option<Broken>> {
        let name = type_name(subject.kind);
        let broken = |message: String| Some(Broken::new(Error::invalid(path, name, message)));
        let program = match &rule.program {
            Err(message) => return ControlFlow::Continue(broken(format!("rule compile error: {message}"))),
            Ok(None) => return ControlFlow::Continue(None),
            Ok(Some(program)) => program,
        };
        if rule.uses_old && subject.old.is_none() && !rule.optional_old {
            return ControlFlow::Continue(None);
        }
        let old = match (rule.optional_old, &subject.old) {
            (true, old) => Some(Cel::Optional(old.clone().map(Into::into))),
            (false, old) => old.clone(),
        };
        let outcome = match self.spend(program, subject.this.clone(), old) {
            None => {
                self.verdict.errors.push(Error::invalid(path, name, OUT_OF_BUDGET));
                return ControlFlow::Break(());
            }
            Some(outcome) => outcome,
        };
        let shown = shown(source);
        match outcome {
            Ok(Cel::Bool(true)) => ControlFlow::Continue(None),
            Ok(_) => ControlFlow::Continue(Some(self.broken(rule, source, path, subject))),
            Err(message) if message.starts_with("no such overload") => {
                ControlFlow::Continue(broken(format!(
                    "'{message}': call arguments did not match a supported operator, function or macro signature for \
                 rule: {shown}"
                )))
            }
            Err(message) if message.starts_with(CANCELLED) => {
                let error = format!(
                    "'{message}': no further validation rules will be run due to call cost exceeds limit for rule: \
                     {shown}"
                );
                self.verdict.errors.push(Error::invalid(path, name, error));
                ControlFlow::Break(())
            }
            Err(message) => ControlFlow::Continue(broken(format!("{message} evaluating rule: {shown}"))),
        }
    }

    /// Runs a program within the remaining budget; `None` if that was not enough.
    fn spend<'v>(
        &mut self,
        program: &Program,
        this: Cel<'v>,
        old: Option<Cel<'v>>,
    ) -> Option<Result<Cel<'v>, String>> {
        let run = match old {
            Some(old) => program.run(&[("self", this), ("oldSelf", old)], MAX_COST_PER_CALL),
            None => program.run(&[("self", this)], MAX_COST_PER_CALL),
        };
        let cost = i64::try_from(run.cost).ok().filter(|cost| *cost <= self.budget)?;
        self.budget -= cost;
        Some(run.outcome.map_err(|error| error.to_string()))
    }

    fn broken(&mut self, rule: &Compiled, source: &Rule, path: &Path<'_>, subject: &Subject<'_>) -> Broken {
        let at = match rule.field_path.as_str() {
            "" => *path,
            field_path => path.child(field_path),
        };
        let mut detail = None;
        if let Ok(Some(program)) = &rule.message {
            match self.message(program, source, subject) {
                Ok(message) => detail = message,
                Err(message) => {
                    let error = Error::invalid(&at, type_name(subject.kind), message);
                    return Broken { error, may_be_ratcheted: true, is_last: true };
                }
            }
        }
        let detail = detail.unwrap_or_else(|| match source.message.trim() {
            "" => format!("failed rule: {}", shown(source)),
            message => message.to_owned(),
        });
        let value = match subject.kind {
            ValueType::Object | ValueType::Array => BadValue::OMITTED,
            _ => subject.value.into(),
        };
        let error = match source.reason.as_deref() {
            Some("FieldValueForbidden") => Error::forbidden(&at, detail),
            Some("FieldValueRequired") => Error::required(&at, detail),
            Some("FieldValueDuplicate") => Error::duplicate(&at, value),
            _ => Error::invalid(&at, value, detail),
        };
        Broken { error, may_be_ratcheted: true, is_last: false }
    }

    /// Evaluates the `messageExpression` of a rule; `None` if it fails or gives no usable text. Breaks if the
    /// budget is spent.
    fn message(
        &mut self,
        program: &Program,
        source: &Rule,
        subject: &Subject<'_>,
    ) -> Result<Option<String>, String> {
        let Some(outcome) = self.spend(program, subject.this.clone(), subject.old.clone()) else {
            let message = "messageExpression evaluation failed due to running out of cost budget, no further \
                        validation rules will be run";
            return Err(message.to_owned());
        };
        match outcome {
            Err(message) if message.starts_with(CANCELLED) => {
                let expression = api::go::quote(&source.message_expression);
                Err(format!(
                    "no further validation rules will be run due to call cost exceeds limit for messageExpression: \
                     {expression}"
                ))
            }
            Err(_) => Ok(None),
            Ok(value) => {
                let text = value.as_str().unwrap_or_default().trim();
                let fits = !text.is_empty() && text.len() <= MAX_MESSAGE_BYTES && !text.contains('\n');
                Ok(fits.then(|| text.to_owned()))
            }
        }
    }
}

const CANCELLED: &str = "operation cancelled: actual cost limit exceeded";

/// The value that a rule checks.
struct Subject<'v> {
    value: &'v Value,
    kind: ValueType,
    this: Cel<'v>,
    old: Option<Cel<'v>>,
}

/// A rule that failed.
struct Broken {
    error: Error,
    /// Whether ratcheting may drop it.
    may_be_ratcheted: bool,
    /// No other rule runs after it.
    is_last: bool,
}

impl Broken {
    fn new(error: Error) -> Self {
        Self { error, may_be_ratcheted: false, is_last: false }
    }
}

fn type_name(kind: ValueType) -> &'static str {
    match kind.names() {
        [name] => name,
        _ => "",
    }
}

fn shown(rule: &Rule) -> &str {
    match rule.message.as_ref() {
        "" => rule.rule.trim(),
        message => message.trim(),
    }
}
