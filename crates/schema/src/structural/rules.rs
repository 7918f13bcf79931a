//! `x-kubernetes-validations`: compiles the rules of a schema to CEL programs, and runs them on objects.
//!
//! | file | what happens there |
//! |---|---|
//! | `seen` | the schema as CEL expressions see it |
//! | `program` | compiles the rules of one place |
//! | `run` | runs the programs on an object, within a budget |
//! | `afford` | when a definition is written: do its rules compile, within the cost limits? |

use std::collections::HashMap;
use std::sync::Arc;

use api::field::ErrorList;
use serde_json::Value;

use super::shape::{Additional, Shape, ShapeId, Structural, ValueType};

mod afford;
mod field_path;
mod program;
mod run;
mod seen;

use program::{Compiled, Patterns};

/// Kubernetes: the most that one run of one rule may cost.
const MAX_COST_PER_CALL: u64 = 1_000_000;

/// Kubernetes: the most that all rules together may cost for one object.
const MAX_COST_PER_OBJECT: i64 = 10_000_000;

#[derive(Debug)]
pub(super) struct Rules {
    /// `None` where there are no rules, nor any below.
    by_place: HashMap<RulePlace, Option<Arc<[Compiled]>>>,
    patterns: Patterns,
}

/// The place of rules in the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RulePlace {
    /// The shape that has the rules.
    rules: ShapeId,
    /// The shape of the value that the rules check: another one inside `allOf`.
    of: ShapeId,
    /// Whether the value is a whole object, with metadata.
    whole: bool,
}

impl RulePlace {
    fn root(schema: &Structural) -> Self {
        Self { rules: schema.root, of: schema.root, whole: true }
    }

    fn at(schema: &Structural, id: ShapeId) -> Self {
        Self { rules: id, of: id, whole: schema.shape(id).embedded }
    }
}

impl Rules {
    /// `None` where the schema has no rules.
    pub(super) fn compile(schema: &Structural) -> Option<Self> {
        if !has_rules(schema, schema.root) {
            return None;
        }
        seen::with(schema, |seen| {
            let mut rules = Rules { by_place: HashMap::new(), patterns: Patterns::default() };
            rules.add(schema, seen, RulePlace::root(schema));
            Some(rules)
        })
    }

    /// Adds the rules of a place and of those below; returns whether there are any.
    fn add(&mut self, schema: &Structural, seen: &[seen::Seen<'_>], place: RulePlace) -> bool {
        if let Some(known) = self.by_place.get(&place) {
            return known.is_some();
        }
        let mut compiled = program::compile(schema, seen, place);
        compiled.iter_mut().for_each(|rule| self.patterns.count(rule));
        let mut any = !compiled.is_empty();
        for (_, part) in parts(schema, place) {
            any |= self.add(schema, seen, part);
        }
        for id in schema.shape(place.rules).more.iter().flat_map(|more| &more.all_of) {
            any |= self.add(schema, seen, RulePlace { rules: *id, ..place });
        }
        self.by_place.insert(place, any.then(|| compiled.into()));
        any
    }

    /// Runs every rule that applies.
    pub(super) fn check(&self, schema: &Structural, new: &Value, old: Option<&Value>) -> Verdict {
        run::run(self, schema, new, old)
    }
}

/// The rules that an object breaks.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) errors: ErrorList,
    /// Failed rules that are ratcheted: the unchanged value failed them before.
    pub(super) ratcheted: ErrorList,
}

/// The step from a place to one below.
#[derive(Clone, Copy, Debug)]
enum Part<'s> {
    Items,
    Values,
    Property(&'s str),
}

/// The places below one that expressions can see.
fn parts(schema: &Structural, place: RulePlace) -> impl Iterator<Item = (Part<'_>, RulePlace)> {
    let (rules, of) = (schema.shape(place.rules), schema.shape(place.of));
    let below = move |rules, of| RulePlace { rules, of, whole: schema.shape(of).embedded };
    let items = rules.items.zip(of.items).map(|(rules, of)| (Part::Items, below(rules, of)));
    let values = match (rules.additional, of.additional) {
        (Additional::Shape(rules), Additional::Shape(of)) => Some((Part::Values, below(rules, of))),
        _ => None,
    };
    let properties = rules.properties.iter().filter_map(move |(name, rules)| {
        let name = schema.name(*name);
        let of = schema.property(of, name)?;
        // Kubernetes: at the root of an object, expressions see only the metadata that all objects have.
        let hidden = place.whole && super::prune::META.contains(&name);
        (!hidden && is_seen(schema, of)).then(|| (Part::Property(name), below(*rules, of)))
    });
    items.into_iter().chain(values).chain(properties)
}

/// Whether expressions can see inside a shape.
fn is_seen(schema: &Structural, id: ShapeId) -> bool {
    let shape = schema.shape(id);
    match shape.kind {
        ValueType::Any => shape.embedded,
        ValueType::Array => shape.items.is_some_and(|id| is_seen(schema, id)),
        ValueType::Object => match shape.additional {
            Additional::Shape(id) => is_seen(schema, id),
            _ => true,
        },
        _ => true,
    }
}

fn has_rules(schema: &Structural, id: ShapeId) -> bool {
    let mut looked_at = vec![false; schema.shapes.len()];
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut looked_at[id.0 as usize], true) {
            continue;
        }
        let shape: &Shape = schema.shape(id);
        if !shape.rules().is_empty() {
            return true;
        }
        open.extend(shape.items);
        open.extend(shape.properties.iter().map(|(_, id)| *id));
        if let Additional::Shape(id) = shape.additional {
            open.push(id);
        }
    }
    false
}

#[cfg(test)]
mod tests;
