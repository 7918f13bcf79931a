//! The standard macros: calls that the parser rewrites into comprehensions.

use crate::{
    ast::{Expander, Expr, Fold, Macro, MacroError, Node},
    value::Value,
};
use std::sync::Arc;

/// The accumulator's name, which cannot occur in a source.
pub(crate) const ACCUMULATOR: &str = "@result";
/// The former name of accumulators: still rejected as a variable.
const OLD_ACCUMULATOR: &str = "__result__";

pub(crate) type Expanded = Result<Option<Expr>, MacroError>;

pub(crate) const STANDARD: [Macro; 7] = [
    Macro { name: "has", member: false, arguments: Some(1), expand: has },
    one("all", all),
    one("exists", exists),
    one("exists_one", exists_one),
    one("map", map),
    Macro { name: "map", member: true, arguments: Some(3), expand: map },
    one("filter", filter),
];

const fn one(name: &'static str, expand: crate::ast::Expand) -> Macro {
    Macro { name, member: true, arguments: Some(2), expand }
}

/// The variables of a comprehension.
#[derive(Clone, Debug)]
pub(crate) struct Variables {
    first: Arc<str>,
    second: Option<Arc<str>>,
}

impl Variables {
    fn single(arg: &Expr, refusal: &str) -> Result<Variables, MacroError> {
        let first = simple_name(arg, refusal)?;
        refuse_accumulator(arg, &first)?;
        Ok(Variables { first, second: None })
    }

    pub(crate) fn pair(args: &[Expr]) -> Result<Variables, MacroError> {
        let refusal = "argument must be a simple name";
        let first = simple_name(&args[0], refusal)?;
        let second = simple_name(&args[1], refusal)?;
        if first == second {
            return Err(MacroError::at(&args[1], format!("duplicate variable name: {first}")));
        }
        refuse_accumulator(&args[0], &first)?;
        refuse_accumulator(&args[1], &second)?;
        Ok(Variables { first, second: Some(second) })
    }

    pub(crate) fn first(&self) -> &str {
        &self.first
    }
}

fn simple_name(arg: &Expr, refusal: &str) -> Result<Arc<str>, MacroError> {
    match &arg.node {
        Node::Ident(name) => Ok(name.clone()),
        _ => Err(MacroError::at(arg, refusal)),
    }
}

fn refuse_accumulator(arg: &Expr, name: &str) -> Result<(), MacroError> {
    if name == ACCUMULATOR || name == OLD_ACCUMULATOR {
        return Err(MacroError::at(arg, "iteration variable overwrites accumulator variable"));
    }
    Ok(())
}

fn has(make: &mut Expander, _: Option<&Expr>, args: &[Expr]) -> Expanded {
    match &args[0].node {
        Node::Select { operand, field, .. } => {
            Ok(Some(make.node(Node::Select { operand: operand.clone(), field: field.clone(), test: true })))
        }
        _ => Err(MacroError::at(&args[0], "invalid argument to has() macro")),
    }
}

fn all(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let variables = Variables::single(&args[0], "argument must be a simple name")?;
    Ok(Some(make_all(make, target, variables, &args[1])))
}

fn exists(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let variables = Variables::single(&args[0], "argument must be a simple name")?;
    Ok(Some(make_exists(make, target, variables, &args[1])))
}

fn exists_one(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let variables = Variables::single(&args[0], "argument must be a simple name")?;
    Ok(Some(make_exists_one(make, target, variables, &args[1])))
}

pub(crate) fn map(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let variables = Variables::single(&args[0], "argument is not an identifier")?;
    let (keep, element) = if args.len() == 3 { (Some(&args[1]), &args[2]) } else { (None, &args[1]) };
    Ok(Some(make_list(make, target, variables, keep, element)))
}

fn filter(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let variables = Variables::single(&args[0], "argument is not an identifier")?;
    Ok(Some(make_list(make, target, variables, Some(&args[1]), &args[0])))
}

pub(crate) fn make_all(make: &mut Expander, target: Option<&Expr>, by: Variables, test: &Expr) -> Expr {
    let start = make.literal(Value::Bool(true));
    let so_far = make.ident(ACCUMULATOR);
    let condition = make.call("@not_strictly_false", vec![so_far]);
    let so_far = make.ident(ACCUMULATOR);
    let step = make.call("_&&_", vec![so_far, test.clone()]);
    let result = make.ident(ACCUMULATOR);
    fold(make, target, by, [start, condition, step, result])
}

pub(crate) fn make_exists(make: &mut Expander, target: Option<&Expr>, by: Variables, test: &Expr) -> Expr {
    let start = make.literal(Value::Bool(false));
    let so_far = make.ident(ACCUMULATOR);
    let not_yet = make.call("!_", vec![so_far]);
    let condition = make.call("@not_strictly_false", vec![not_yet]);
    let so_far = make.ident(ACCUMULATOR);
    let step = make.call("_||_", vec![so_far, test.clone()]);
    let result = make.ident(ACCUMULATOR);
    fold(make, target, by, [start, condition, step, result])
}

pub(crate) fn make_exists_one(
    make: &mut Expander,
    target: Option<&Expr>,
    by: Variables,
    test: &Expr,
) -> Expr {
    let start = make.literal(Value::Int(0));
    let condition = make.literal(Value::Bool(true));
    let (so_far, one) = (make.ident(ACCUMULATOR), make.literal(Value::Int(1)));
    let more = make.call("_+_", vec![so_far, one]);
    let step = choose(make, Some(test), more);
    let (count, one) = (make.ident(ACCUMULATOR), make.literal(Value::Int(1)));
    let result = make.call("_==_", vec![count, one]);
    fold(make, target, by, [start, condition, step, result])
}

pub(crate) fn make_list(
    make: &mut Expander,
    target: Option<&Expr>,
    by: Variables,
    keep: Option<&Expr>,
    element: &Expr,
) -> Expr {
    let start = make.node(Node::List { items: Vec::new(), optional: Vec::new() });
    let condition = make.literal(Value::Bool(true));
    let so_far = make.ident(ACCUMULATOR);
    let one_more = make.node(Node::List { items: vec![element.clone()], optional: Vec::new() });
    let longer = make.call("_+_", vec![so_far, one_more]);
    let step = choose(make, keep, longer);
    let result = make.ident(ACCUMULATOR);
    fold(make, target, by, [start, condition, step, result])
}

/// `condition ? step : accumulator`
pub(crate) fn choose(make: &mut Expander, condition: Option<&Expr>, step: Expr) -> Expr {
    let Some(condition) = condition else { return step };
    let so_far = make.ident(ACCUMULATOR);
    make.call("_?_:_", vec![condition.clone(), step, so_far])
}

/// A comprehension out of its start, condition, step and result.
pub(crate) fn fold(make: &mut Expander, target: Option<&Expr>, by: Variables, parts: [Expr; 4]) -> Expr {
    let [start, condition, step, result] = parts;
    let range = target.cloned().unwrap_or_else(|| make.literal(Value::Null));
    let accumulator = ACCUMULATOR.into();
    let (variable, second) = (by.first, by.second);
    make.node(Node::Fold(Box::new(Fold {
        range,
        variable,
        second,
        accumulator,
        start,
        condition,
        step,
        result,
    })))
}
