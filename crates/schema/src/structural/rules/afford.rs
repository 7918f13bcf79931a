//! Checks the rules of a schema when a definition is written: whether they compile, and their estimated cost.

use api::field::{BadValue, Error, ErrorList, Path};
use serde::Serialize;

use super::program::{self, Compiled, Patterns};
use super::seen::{self, Seen};
use super::{Part, RulePlace};
use crate::structural::shape::{Additional, ListType, Rule, Shape, ShapeId, Structural, ValueType};

/// Kubernetes: the most that one rule may cost by estimate, wherever it applies in one object.
const MAX_ESTIMATE: u64 = 10_000_000;

/// Kubernetes: the most that all rules of a schema may cost by estimate.
const MAX_TOTAL_ESTIMATE: u64 = 100_000_000;

/// How many of the most expensive rules are listed when the total is too high.
const MAX_EXPENSIVE_REPORTED: usize = 4;

impl Structural {
    /// Checks the rules of a valid schema: their expressions and estimated costs. `at` is its path in the
    /// definition; rules of a schema whose path `is_sound` rejects are skipped. Without `limits`, as for an
    /// unchanged schema, a single rule may cost anything.
    #[must_use]
    pub fn check_rules(&self, at: &str, limits: bool, is_sound: &dyn Fn(&str) -> bool) -> ErrorList {
        let mut check = CostCheck {
            schema: self,
            limits,
            is_sound,
            errors: ErrorList::new(),
            total: 0,
            patterns: Patterns::default(),
            expensive: Vec::new(),
        };
        seen::with(self, |seen| {
            let root = NestedSchema {
                place: RulePlace::root(self),
                path: at.to_owned(),
                cardinality: Some(1),
                uncorrelatable: None,
            };
            check.node(seen, &root);
            check.total(at);
            check.errors
        })
    }
}

struct CostCheck<'c> {
    schema: &'c Structural,
    limits: bool,
    is_sound: &'c dyn Fn(&str) -> bool,
    errors: ErrorList,
    total: u64,
    patterns: Patterns,
    /// The costs that make up the total, with their paths.
    expensive: Vec<(u64, String)>,
}

/// A schema nested in the schema.
struct NestedSchema {
    place: RulePlace,
    path: String,
    /// How many values of it one object may have, if the lists and maps around it are limited.
    cardinality: Option<u64>,
    /// The list around it whose old and new items cannot be correlated.
    uncorrelatable: Option<String>,
}

impl CostCheck<'_> {
    fn node(&mut self, seen: &[Seen<'_>], node: &NestedSchema) {
        let shape = self.schema.shape(node.place.of);
        for (part, id) in children(self.schema, shape) {
            let path = match part {
                Part::Items => format!("{}.items", node.path),
                Part::Values => format!("{}.additionalProperties", node.path),
                Part::Property(name) => format!("{}.properties[{name}]", node.path),
            };
            let tells_apart = !matches!(part, Part::Items) || shape.list == ListType::Map;
            let uncorrelatable =
                node.uncorrelatable.clone().or_else(|| (!tells_apart).then(|| node.path.clone()));
            let cardinality =
                node.cardinality.zip(elements(shape)).map(|(outer, inner)| outer.saturating_mul(inner));
            self.node(
                seen,
                &NestedSchema { place: RulePlace::at(self.schema, id), path, cardinality, uncorrelatable },
            );
        }
        if shape.rules().is_empty() || !(self.is_sound)(&node.path) {
            return;
        }
        let rules = format!("{}.x-kubernetes-validations", node.path);
        if !(node.place.whole || super::is_seen(self.schema, node.place.of)) {
            let message = "internal error: failed to construct type information for x-kubernetes-validations rules: \
                        unable to convert structural schema to CEL declarations";
            return self.errors.push(at(&rules, Error::internal(&Path::ROOT, message)));
        }
        let mut compiled = program::compile(self.schema, seen, node.place);
        if self.limits {
            compiled.iter_mut().for_each(|rule| self.patterns.count(rule));
        }
        for (nth, (compiled, rule)) in compiled.iter().zip(shape.rules()).enumerate() {
            self.rule(node, &format!("{rules}[{nth}]"), compiled, rule);
        }
    }

    fn rule(&mut self, node: &NestedSchema, path: &str, compiled: &Compiled, rule: &Rule) {
        let (rule_path, message_path) = (format!("{path}.rule"), format!("{path}.messageExpression"));
        let cost = compiled.cost.saturating_mul(node.cardinality.unwrap_or(compiled.cardinality));
        self.cost("estimated rule cost", &rule_path, cost);
        if let Err(message) = &compiled.program {
            self.errors.push(at(&rule_path, Error::invalid(&Path::ROOT, shown(rule), message.clone())));
        }
        match &compiled.message {
            Err(message) => {
                self.errors.push(at(&message_path, Error::invalid(&Path::ROOT, shown(rule), message.clone())))
            }
            Ok(Some(_)) => {
                self.cost("estimated messageExpression cost", &message_path, compiled.message_cost)
            }
            Ok(None) => {}
        }
        if compiled.uses_old {
            if let Some(list) = &node.uncorrelatable {
                let message = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {list}"
                );
                self.errors.push(at(&rule_path, Error::invalid(&Path::ROOT, &*rule.rule, message)));
            }
        } else if let Some(optional) = rule.optional_old_self {
            let message = "may not be set if oldSelf is not used in rule";
            self.errors
                .push(at(&format!("{path}.optionalOldSelf"), Error::invalid(&Path::ROOT, optional, message)));
        }
    }

    fn cost(&mut self, what: &str, path: &str, cost: u64) {
        if self.limits && cost > MAX_ESTIMATE {
            self.errors
                .push(at(path, Error::forbidden(&Path::ROOT, too_expensive(what, cost, MAX_ESTIMATE))));
        }
        self.total = self.total.saturating_add(cost);
        if cost >= MAX_TOTAL_ESTIMATE / 100 {
            self.expensive.push((cost, path.to_owned()));
            self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
            self.expensive.truncate(MAX_EXPENSIVE_REPORTED);
        }
    }

    fn total(&mut self, path: &str) {
        if self.total <= MAX_TOTAL_ESTIMATE {
            return;
        }
        for (_, path) in &self.expensive {
            let message =
                "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
            self.errors.push(at(path, Error::forbidden(&Path::ROOT, message)));
        }
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        let message = too_expensive(what, self.total, MAX_TOTAL_ESTIMATE);
        self.errors.push(at(path, Error::forbidden(&Path::ROOT, message)));
    }
}

fn children<'s>(schema: &'s Structural, shape: &'s Shape) -> impl Iterator<Item = (Part<'s>, ShapeId)> {
    let values = match shape.additional {
        Additional::Shape(id) => Some((Part::Values, id)),
        _ => None,
    };
    let properties = shape.properties.iter().map(|(name, id)| (Part::Property(schema.name(*name)), *id));
    let items = shape.items.map(|id| (Part::Items, id));
    values.into_iter().chain(properties).chain(items)
}

/// By how much a schema multiplies the values inside it; `None` without a limit.
fn elements(shape: &Shape) -> Option<u64> {
    let limit = |limit: Option<i64>| limit.map(|limit| u64::try_from(limit).unwrap_or(0));
    let more = shape.more.as_ref();
    match (shape.kind, shape.additional) {
        (ValueType::Object, Additional::Unsaid) => Some(1),
        (ValueType::Object, _) => limit(more.and_then(|more| more.max_properties)),
        (ValueType::Array, _) => limit(more.and_then(|more| more.max_items)),
        _ => Some(1),
    }
}

fn too_expensive(what: &str, cost: u64, limit: u64) -> String {
    let times = cost as f64 / limit as f64;
    let factor = match times {
        100.0.. if times > 100.0 => "more than 100x".to_owned(),
        ..1.5 => format!("{times:.6}x"),
        _ => format!("{times:.1}x"),
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}

fn at(path: &str, error: Error) -> Error {
    Error { field: path.to_owned(), ..error }
}

/// A rule as Go prints its struct.
fn shown(rule: &Rule) -> BadValue {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct ValidationRule<'a> {
        rule: &'a str,
        message: &'a str,
        message_expression: &'a str,
        reason: Option<&'a str>,
        field_path: &'a str,
        optional_old_self: Option<bool>,
    }
    BadValue::json(&ValidationRule {
        rule: &rule.rule,
        message: &rule.message,
        message_expression: &rule.message_expression,
        reason: rule.reason.as_deref(),
        field_path: &rule.field_path,
        optional_old_self: rule.optional_old_self,
    })
}
