//! Estimates the minimum and maximum cost of an expression before it runs.
//!
//! Kubernetes: these numbers decide which rules a definition may have, so they follow its estimator exactly,
//! including what it omits.

use crate::{
    ast::{Entry, Expr, Fold, Node},
    check::Reference,
    cost::{self, Range},
    declare::Sizes,
    library::{Argument, CallEstimate, Overload},
    program::Checked,
    ty::Type,
};
use sizes::{EntrySize, Known};
use std::sync::Arc;

mod sizes;

pub(crate) fn estimate(checked: &Checked, sizes: &dyn Sizes) -> Range {
    let mut estimator = Estimator { checked, known: Known::new(checked, sizes) };
    estimator.cost(&checked.root)
}

struct Estimator<'c> {
    checked: &'c Checked,
    known: Known<'c>,
}

impl Estimator<'_> {
    fn cost(&mut self, expr: &Expr) -> Range {
        match &expr.node {
            Node::Literal(_) => Range::ZERO,
            Node::Ident(name) => {
                self.known.name(expr, name);
                let is_variable = self.checked.references[expr.id as usize].is_none();
                Range::exactly(1 + if is_variable { name.matches('.').count() as u64 } else { 0 })
            }
            Node::Select { operand, field, test } => self.select(expr, operand, field, *test),
            Node::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            Node::List { items, .. } => self.list(expr, items),
            Node::Map(entries) => self.map(expr, entries),
            Node::Struct { fields, .. } => {
                let sum = fields.iter().fold(Range::ZERO, |sum, field| sum.plus(self.cost(&field.value)));
                sum.plus(Range::exactly(cost::STRUCT_CREATE))
            }
            Node::Fold(fold) if fold.is_binding() => self.binding(expr, fold),
            Node::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn select(&mut self, expr: &Expr, operand: &Expr, field: &Arc<str>, test: bool) -> Range {
        let mut sum = self.cost(operand);
        if test {
            return sum;
        }
        if matches!(self.known.ty(operand), Type::Map(_) | Type::Object(_) | Type::Var(_)) {
            sum = sum.plus(Range::ONE);
        }
        self.known.extend_path(expr, operand, field.clone());
        sum
    }

    fn call(&mut self, expr: &Expr, function: &str, target: Option<&Expr>, args: &[Expr]) -> Range {
        if function == "dyn" {
            let sum = self.cost(&args[0]).plus(Range::ONE);
            self.known.copy_sizes(expr, &args[0]);
            return sum;
        }
        let arg_costs: Vec<Range> = args.iter().map(|arg| self.cost(arg)).collect();
        let Some(Reference::Overloads(overloads)) = &self.checked.references[expr.id as usize] else {
            return Range::ZERO;
        };
        let target_cost = target.map_or(Range::ZERO, |target| self.cost(target));
        let mut call = Range { min: u64::MAX, max: 0 };
        let mut size: Option<Range> = None;
        for overload in overloads {
            let estimate = self.overload(expr, overload, target, args, &arg_costs);
            call = call.union(estimate.cost);
            size = match (size, estimate.size) {
                (Some(known), Some(more)) => Some(known.union(more)),
                (known, more) => known.or(more),
            };
            match overload.id {
                "index_list" => {
                    size = self.known.entry_size(&args[0]).map(|entry| entry.value);
                    self.known.extend_path(expr, &args[0], "@items".into());
                }
                "index_map" => {
                    size = self.known.entry_size(&args[0]).map(|entry| entry.value);
                    self.known.extend_path(expr, &args[0], "@values".into());
                }
                _ => {}
            }
            size = size.or_else(|| self.known.size(expr));
        }
        self.known.set_size(expr, size);
        target_cost.plus(call)
    }

    fn overload(
        &mut self,
        expr: &Expr,
        overload: &Overload,
        target: Option<&Expr>,
        args: &[Expr],
        arg_costs: &[Range],
    ) -> CallEstimate {
        let sum = arg_costs.iter().fold(Range::ZERO, |sum, cost| sum.plus(*cost));
        match overload.id {
            // The first operand may decide alone.
            "logical_and" | "logical_or" => {
                return CallEstimate::of(Range { min: arg_costs[0].min, max: sum.max });
            }
            "conditional" => {
                let (yes, no) = (self.known.size_or_unknown(&args[1]), self.known.size_or_unknown(&args[2]));
                let entries =
                    EntrySize::union(self.known.entry_size(&args[1]), self.known.entry_size(&args[2]));
                self.known.set_entry_size(expr, entries);
                let cost = arg_costs[0].plus(arg_costs[1].union(arg_costs[2]));
                return CallEstimate::sized(cost, yes.union(no));
            }
            "add_string" | "add_bytes" | "add_list" => {
                let entries =
                    EntrySize::union(self.known.entry_size(&args[0]), self.known.entry_size(&args[1]));
                self.known.set_entry_size(expr, entries);
            }
            _ => {}
        }
        let arguments: Vec<Argument<'_>> =
            target.into_iter().chain(args).map(|arg| self.known.argument(arg)).collect();
        match overload.estimate.and_then(|estimate| estimate(&arguments)) {
            Some(estimate) => CallEstimate { cost: estimate.cost.plus(sum), size: estimate.size },
            None => CallEstimate::of(Range::ONE.plus(sum)),
        }
    }

    fn list(&mut self, expr: &Expr, items: &[Expr]) -> Range {
        let mut sum = Range::exactly(cost::LIST_CREATE);
        let mut item_size = Range { min: if items.is_empty() { 0 } else { u64::MAX }, max: 0 };
        for item in items {
            sum = sum.plus(self.cost(item));
            item_size = item_size.union(self.known.size_or_unknown(item));
        }
        let entries = EntrySize { of_list: true, key: Range::ONE, value: item_size };
        self.known.set_entry_size(expr, Some(entries));
        sum
    }

    fn map(&mut self, expr: &Expr, entries: &[Entry]) -> Range {
        let mut sum = Range::exactly(cost::MAP_CREATE);
        let empty = Range { min: if entries.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let mut sizes = EntrySize { of_list: false, key: empty, value: empty };
        for entry in entries {
            sum = sum.plus(self.cost(&entry.key)).plus(self.cost(&entry.value));
            sizes.key = sizes.key.union(self.known.size_or_unknown(&entry.key));
            sizes.value = sizes.value.union(self.known.size_or_unknown(&entry.value));
        }
        self.known.set_entry_size(expr, Some(sizes));
        sum
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Range {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.start));
        self.known.push_local(&fold.accumulator, &fold.start);
        let variables = self.known.push_variables(fold);
        let each = self.cost(&fold.condition).plus(self.cost(&fold.step));
        self.known.pop_locals(variables);
        sum = sum.plus(self.cost(&fold.result));
        self.known.pop_locals(1);
        let count = self.known.size_or_unknown(&fold.range);
        sum = sum.plus(count.times(each));
        match &fold.start.node {
            Node::Literal(_) => {
                let size = self.known.size(&fold.start);
                self.known.set_size(expr, size);
            }
            Node::List { .. } | Node::Map(_) => {
                self.known.set_size(expr, Some(count));
                let entries = self.known.entry_size(&fold.step);
                self.known.set_entry_size(expr, entries);
            }
            _ => {}
        }
        sum
    }

    /// A named value: nothing loops.
    fn binding(&mut self, expr: &Expr, fold: &Fold) -> Range {
        let sum = self.cost(&fold.range).plus(self.cost(&fold.start));
        self.known.push_local(&fold.accumulator, &fold.start);
        let result = self.cost(&fold.result);
        self.known.pop_locals(1);
        self.known.copy_sizes(expr, &fold.result);
        sum.plus(result)
    }
}
