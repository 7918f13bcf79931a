//! Programs and an object in, what is wrong with the object out. Every run counts against one budget.

use std::ops::ControlFlow;

use api::field::{BadValue, Error, Path};
use expression::Value as Cel;
use expression::program::Program;
use expression::value::{view, view_resource};
use serde_json::Value;

use super::program::Compiled;
use super::seen::{self, Seen};
use super::{MAX_COST_PER_CALL, MAX_COST_PER_OBJECT, Part, Place, Rules, Verdict, parts};
use crate::structural::shape::{Kind, Rule, ShapeId, Structural};
use crate::structural::validate::before::Before;

/// Kubernetes: what a message may have at most, in bytes.
const MAX_MESSAGE_BYTES: usize = 5 * 1024;

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

pub(super) fn run(rules: &Rules, schema: &Structural, new: &Value, old: Option<&Value>) -> Verdict {
    seen::with(schema, |seen| {
        let mut run = Run { rules, schema, seen, verdict: Verdict::default(), budget: MAX_COST_PER_OBJECT };
        let before = Ratchet { current: old.map(|old| Before::new(schema, schema.root, old)), nearest: None };
        let _ = run.value(Place::root(schema), &Path::ROOT, new, old, before);
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

/// What was there before, for rules that a value breaks as it did before.
#[derive(Clone, Copy)]
struct Ratchet<'r, 'o> {
    current: Option<Before<'r, 'o>>,
    /// The nearest value around that can be compared.
    nearest: Option<(Before<'r, 'o>, &'o Value)>,
}

impl<'r, 'o> Ratchet<'r, 'o> {
    fn forgives(&self, value: &Value) -> bool {
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
        // Kubernetes: a change of apiVersion cannot be seen here, so it is never taken for unchanged.
        if self.current.is_some() && self.nearest.is_none() && matches!(name, "apiVersion" | "kind") {
            return Self { current: None, nearest: None };
        }
        self.below(value, |before| before.member(name))
    }
}

/// Goes on, or stops because the budget is spent.
type Go = ControlFlow<()>;

impl<'r, 'x> Run<'r, 'x> {
    fn value<'o>(
        &mut self,
        place: Place,
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
            self.value(Place { rules: *id, ..place }, path, value, old, inside)?;
        }
        match value {
            Value::Array(items) => self.items(place, path, (value, items), old, before),
            Value::Object(_) => self.members(place, path, value, old, before),
            _ => Go::Continue(()),
        }
    }

    fn items<'o>(
        &mut self,
        place: Place,
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
        place: Place,
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
        place: Place,
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
                let forgiven = error.may_be_forgiven && !rule.uses_old && before.forgives(value);
                match forgiven {
                    true => self.verdict.forgiven.push(error.error),
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

    /// Runs one rule; what is wrong, if something is.
    fn rule(
        &mut self,
        rule: &Compiled,
        source: &Rule,
        path: &Path<'_>,
        subject: &Subject<'_>,
    ) -> ControlFlow<(), Option<Broken>> {
        let name = type_name(subject.kind);
        let told = |says: String| Some(Broken::told(Error::invalid(path, name, says)));
        let program = match &rule.program {
            Err(says) => return ControlFlow::Continue(told(format!("rule compile error: {says}"))),
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
            Err(says) if says.starts_with("no such overload") => ControlFlow::Continue(told(format!(
                "'{says}': call arguments did not match a supported operator, function or macro signature for \
                 rule: {shown}"
            ))),
            Err(says) if says.starts_with(CANCELLED) => {
                let error = format!(
                    "'{says}': no further validation rules will be run due to call cost exceeds limit for rule: \
                     {shown}"
                );
                self.verdict.errors.push(Error::invalid(path, name, error));
                ControlFlow::Break(())
            }
            Err(says) => ControlFlow::Continue(told(format!("{says} evaluating rule: {shown}"))),
        }
    }

    /// Runs a program on what is left of the budget; `None` if that was not enough.
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
                Err(says) => {
                    let error = Error::invalid(&at, type_name(subject.kind), says);
                    return Broken { error, may_be_forgiven: true, is_last: true };
                }
            }
        }
        let detail = detail.unwrap_or_else(|| match source.message.trim() {
            "" => format!("failed rule: {}", shown(source)),
            message => message.to_owned(),
        });
        let value = match subject.kind {
            Kind::Object | Kind::Array => BadValue::OMITTED,
            _ => subject.value.into(),
        };
        let error = match source.reason.as_deref() {
            Some("FieldValueForbidden") => Error::forbidden(&at, detail),
            Some("FieldValueRequired") => Error::required(&at, detail),
            Some("FieldValueDuplicate") => Error::duplicate(&at, value),
            _ => Error::invalid(&at, value, detail),
        };
        Broken { error, may_be_forgiven: true, is_last: false }
    }

    /// The message that a rule makes itself; `None` if it makes none that will do. Fails if the budget is spent.
    fn message(
        &mut self,
        program: &Program,
        source: &Rule,
        subject: &Subject<'_>,
    ) -> Result<Option<String>, String> {
        let Some(outcome) = self.spend(program, subject.this.clone(), subject.old.clone()) else {
            let says = "messageExpression evaluation failed due to running out of cost budget, no further \
                        validation rules will be run";
            return Err(says.to_owned());
        };
        match outcome {
            Err(says) if says.starts_with(CANCELLED) => {
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

/// The value that rules are about.
struct Subject<'v> {
    value: &'v Value,
    kind: Kind,
    this: Cel<'v>,
    old: Option<Cel<'v>>,
}

/// A rule that does not hold.
struct Broken {
    error: Error,
    /// Because the value broke it before.
    may_be_forgiven: bool,
    /// No rule runs after it.
    is_last: bool,
}

impl Broken {
    fn told(error: Error) -> Self {
        Self { error, may_be_forgiven: false, is_last: false }
    }
}

fn type_name(kind: Kind) -> &'static str {
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
