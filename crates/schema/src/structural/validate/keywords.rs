//! Validates a value against its schema: every keyword, in the order and with the quirks of kube-apiserver's
//! library.

use expression::pattern::compile;
use serde_json::{Map, Value};

use super::before::Before;
use super::finding::{Finding, Outcome, ValuePath};
use super::{format, number};
use crate::structural::shape::{Additional, More, Shape, ShapeId, Structural, ValueType};

pub(super) struct Validator<'s> {
    pub(super) schema: &'s Structural,
}

impl<'s> Validator<'s> {
    /// Validates a value. Errors of an unchanged value are ratcheted.
    pub(super) fn value(
        &self,
        id: ShapeId,
        at: &ValuePath<'_>,
        value: &Value,
        before: Option<Before<'s, '_>>,
    ) -> Outcome {
        let mut outcome = self.keywords(id, at, value, before);
        if !outcome.is_valid() && before.is_some_and(|before| before.is_unchanged(value)) {
            outcome.drop_ratcheted();
        }
        outcome
    }

    fn keywords(
        &self,
        id: ShapeId,
        at: &ValuePath<'_>,
        value: &Value,
        before: Option<Before<'s, '_>>,
    ) -> Outcome {
        let shape = self.schema.shape(id);
        let more = shape.more.as_deref();
        let mut outcome = Outcome::default();
        if value.is_null() {
            outcome.merge(check_null(shape, at));
            outcome.merge(check_enum(more, at, value));
            return outcome;
        }
        let format = more.and_then(|more| more.format.as_deref());
        if shape.kind != ValueType::Any || format.is_some() {
            outcome.merge(check_type(shape.kind, format, at, value));
            outcome.matches += 1;
        }
        outcome.merge(self.junctors(more, at, value));
        outcome.matches += 1;
        match value {
            Value::String(text) => {
                outcome.merge(more.map(|more| self.check_text(more, at, text)).unwrap_or_default());
                outcome.matches += 1;
                if let Some(name) = format.filter(|name| format::is_text_format(name)) {
                    if !format::matches(name, text) {
                        outcome.add(Finding::wrong_type(at, name, text));
                    }
                    outcome.matches += 1;
                }
            }
            Value::Number(number) => {
                outcome.merge(number::check(shape.kind, more, at, number));
                outcome.matches += 1;
            }
            Value::Array(items) => {
                outcome.merge(self.items(shape, at, items, before));
                outcome.matches += 1;
            }
            _ => {}
        }
        outcome.merge(check_enum(more, at, value));
        outcome.matches += 1;
        if let Value::Object(members) = value {
            outcome.merge(self.members(shape, at, members, before));
            outcome.matches += 1;
        }
        outcome.matches += 1;
        outcome
    }

    fn check_text(&self, more: &More, at: &ValuePath<'_>, text: &str) -> Outcome {
        let mut outcome = Outcome::default();
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(max) = more.max_length.filter(|max| length() > *max) {
            outcome.add(Finding::too_long(at, max));
        } else if let Some(min) = more.min_length.filter(|min| length() < *min) {
            outcome.add(Finding::invalid(at, text, format_args!("should be at least {min} chars long")));
        } else if let Some(id) = more.pattern {
            let pattern = self.schema.pattern(id);
            match pattern.compiled.get_or_init(|| compile(&pattern.text)) {
                Ok(compiled) if compiled.is_match(text) => {}
                Ok(_) => {
                    outcome.add(Finding::invalid(at, text, format_args!("should match '{}'", pattern.text)))
                }
                Err(problem) => {
                    let message =
                        format_args!("should match '{}, but pattern is invalid: {problem}'", pattern.text);
                    outcome.add(Finding::invalid(at, text, message));
                }
            }
        }
        outcome
    }

    fn items(
        &self,
        shape: &'s Shape,
        at: &ValuePath<'_>,
        items: &[Value],
        before: Option<Before<'s, '_>>,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(id) = shape.items {
            let old = before.map(|before| before.items());
            for (nth, item) in items.iter().enumerate() {
                let before = old.as_ref().and_then(|old| old.find(item));
                outcome.absorb(self.value(id, &at.item(nth), item, before));
            }
        }
        if let Some(more) = shape.more.as_deref() {
            let size = items.len();
            let length = i64::try_from(size).unwrap_or(i64::MAX);
            if let Some(min) = more.min_items.filter(|min| length < *min) {
                outcome.add(Finding::invalid(at, size, format_args!("should have at least {min} items")));
            }
            if let Some(max) = more.max_items.filter(|max| length > *max) {
                outcome.add(Finding::too_many(at, size, max, "items"));
            }
            if more.unique_items && has_duplicates(items) {
                outcome.add(Finding::invalid(at, "", format_args!("shouldn't contain duplicates")));
            }
        }
        outcome.matches += 1;
        outcome
    }

    fn members(
        &self,
        shape: &'s Shape,
        at: &ValuePath<'_>,
        members: &Map<String, Value>,
        before: Option<Before<'s, '_>>,
    ) -> Outcome {
        let mut outcome = check_size(shape, at, members.len());
        let is_property = |name: &str| self.schema.property(shape, name).is_some();
        match shape.additional {
            Additional::Forbidden => {
                for name in members.keys().filter(|name| !is_property(name)) {
                    outcome.add(Finding::forbidden_property(at, name));
                }
            }
            Additional::Shape(id) => {
                for (name, value) in members.iter().filter(|(name, _)| !is_property(name)) {
                    let before = before.and_then(|before| before.member(name));
                    outcome.absorb(self.value(id, &at.additional(name), value, before));
                }
            }
            Additional::Allowed | Additional::Unsaid => {}
        }
        for (name, id) in &shape.properties {
            let name = self.schema.name(*name);
            let Some(value) = members.get(name) else { continue };
            // Kubernetes: a change of apiVersion is not visible here, so these never count as unchanged.
            let ratchets = !(at.is_root() && matches!(name, "kind" | "apiVersion"));
            let before = before.filter(|_| ratchets).and_then(|before| before.member(name));
            outcome.absorb(self.value(*id, &at.property(name), value, before));
        }
        for name in shape.required.iter().map(|id| self.schema.name(*id)) {
            if !members.contains_key(name) {
                outcome.add(Finding::required(at, name));
            }
        }
        outcome
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`. There is no ratcheting inside them.
    fn junctors(&self, more: Option<&More>, at: &ValuePath<'_>, value: &Value) -> Outcome {
        let mut outcome = Outcome::default();
        let Some(more) = more else {
            outcome.matches += 1;
            return outcome;
        };
        let shown = || api::go::quote(&at.to_string());
        let check = |id: &ShapeId| self.value(*id, at, value, None);
        if !more.any_of.is_empty() {
            let (best, valid) = best_of(more.any_of.iter().map(check), Alternatives::First);
            if valid == 0 {
                let message = format!("{} must validate at least one schema (anyOf)", shown());
                outcome.add(Finding::unplaced(message));
            }
            outcome.merge(best);
        }
        if !more.one_of.is_empty() {
            let (best, valid) = best_of(more.one_of.iter().map(check), Alternatives::All);
            let found = match valid {
                0 => "Found none valid".to_owned(),
                count => format!("Found {count} valid alternatives"),
            };
            if valid != 1 {
                let message = format!("{} must validate one and only one schema (oneOf). {found}", shown());
                outcome.add(Finding::unplaced(message));
            }
            if valid < 2 {
                outcome.merge(best);
            }
        }
        if !more.all_of.is_empty() {
            let mut valid = 0;
            for part in more.all_of.iter().map(check) {
                valid += usize::from(part.is_valid());
                outcome.merge(part);
            }
            if valid != more.all_of.len() {
                let none = if valid == 0 { ". None validated" } else { "" };
                outcome.add(Finding::unplaced(format!(
                    "{} must validate all the schemas (allOf){none}",
                    shown()
                )));
            }
        }
        if more.not.as_ref().is_some_and(|id| check(id).is_valid()) {
            outcome.add(Finding::unplaced(format!("{} must not validate the schema (not)", shown())));
        }
        outcome.matches += 1;
        outcome
    }
}

/// When to stop checking alternatives.
#[derive(PartialEq, Eq)]
enum Alternatives {
    First,
    All,
}

/// The first valid alternative, otherwise the one with the most matches; and how many are valid.
fn best_of(outcomes: impl Iterator<Item = Outcome>, wanted: Alternatives) -> (Outcome, usize) {
    let mut best: Option<Outcome> = None;
    let mut valid = 0;
    for outcome in outcomes {
        if outcome.is_valid() {
            valid += 1;
            if valid == 1 {
                best = Some(outcome);
            }
            if wanted == Alternatives::First {
                break;
            }
        } else if valid == 0 && best.as_ref().is_none_or(|best| outcome.matches > best.matches) {
            best = Some(outcome);
        }
    }
    (best.unwrap_or_default(), valid)
}

fn check_null(shape: &Shape, at: &ValuePath<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    if shape.kind != ValueType::Any && !shape.nullable {
        outcome.add(Finding::wrong_type(at, &shape.kind.names().join(","), "null"));
    } else {
        outcome.matches += 1;
    }
    outcome
}

fn check_type(kind: ValueType, format: Option<&str>, at: &ValuePath<'_>, value: &Value) -> Outcome {
    let mut outcome = Outcome::default();
    let wanted = kind.names();
    let has = |name: &str| wanted.contains(&name);
    let (found, found_format) = match value {
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Number(number) if number.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::Array(_) => ("array", ""),
        _ => ("object", ""),
    };
    let whole = value.as_f64().is_some_and(number::is_whole);
    let converts = (found == "number" && whole && has("integer")) || (found == "integer" && has("number"));
    let fits = has(found) || converts;
    let textual = matches!(value, Value::String(_) | Value::Array(_));
    match format {
        Some(format) if !textual && !fits && found_format != format => {
            outcome.add(Finding::wrong_type(at, format, found_format));
        }
        // Kubernetes: with a format, a list counts as text.
        Some(_) if textual && !has("number") && !has("integer") => outcome.matches += 1,
        _ if !fits => outcome.add(Finding::wrong_type(at, &wanted.join(","), found)),
        _ => outcome.matches += 1,
    }
    outcome
}

fn check_enum(more: Option<&More>, at: &ValuePath<'_>, value: &Value) -> Outcome {
    let mut outcome = Outcome::default();
    let allowed = more.map_or(&[][..], |more| &more.one_of_these);
    if allowed.is_empty() || allowed.iter().any(|allowed| converts_to(value, allowed)) {
        return outcome;
    }
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => api::go::json(other).unwrap_or_default(),
    };
    outcome.add(Finding::not_supported(at, value.into(), allowed.iter().map(shown).collect()));
    outcome
}

/// Kubernetes: a number is first converted to the type of the allowed one, so 1.5 passes for 1. Null is never
/// allowed.
fn converts_to(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(allowed)) => match allowed.as_i64() {
            Some(allowed) => value.as_i64().or(value.as_f64().map(|value| value as i64)) == Some(allowed),
            None => value.as_f64() == allowed.as_f64(),
        },
        _ => value == allowed,
    }
}

fn check_size(shape: &Shape, at: &ValuePath<'_>, size: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(more) = shape.more.as_deref() else { return outcome };
    let length = i64::try_from(size).unwrap_or(i64::MAX);
    if let Some(min) = more.min_properties.filter(|min| length < *min) {
        outcome.add(Finding::invalid(at, size, format_args!("should have at least {min} properties")));
    }
    if let Some(max) = more.max_properties.filter(|max| length > *max) {
        outcome.add(Finding::too_many(at, size, max, "properties"));
    }
    outcome
}

fn has_duplicates(items: &[Value]) -> bool {
    let mut seen = std::collections::HashSet::with_capacity(items.len());
    !items.iter().all(|item| seen.insert(item))
}
