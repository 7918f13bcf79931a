//! Checked tree → code: names become slots, literals become values, patterns are compiled.

use crate::{
    ast::{Entry, Expr, Fold, Node},
    check::Reference,
    error::Error,
    evaluate,
    library::Overload,
    macros, pattern,
    program::Checked,
    value::{Key, Map, Value},
};
use regex::Regex;
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

/// The code of one program.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) root: Op,
    /// Names of variables, by number.
    pub(crate) variables: Vec<Arc<str>>,
    /// The extra cost of each variable beyond its first name: one for each dot.
    pub(crate) dots: Vec<u64>,
    /// The total size of its compiled patterns.
    pub(crate) pattern_bytes: usize,
}

/// One step of a program.
#[derive(Debug)]
pub(crate) enum Op {
    Constant(Value<'static>),
    Variable(u32),
    /// A variable of a comprehension, by its depth.
    Local(u32),
    /// The accumulator, moved out by its last reader so that it may grow in place.
    Take(u32),
    /// Fields and indexes after a value.
    Path {
        root: Box<Op>,
        steps: Vec<Step>,
        is_test: bool,
    },
    And(Vec<Op>),
    Or(Vec<Op>),
    If(Box<[Op; 3]>),
    Equal(Box<[Op; 2]>, bool),
    NotStrictlyFalse(Box<Op>),
    /// `x in [literals]`
    OneOf(Box<Op>, Value<'static>),
    Matches(Box<Op>, Box<Literal>),
    OptionalOr {
        target: Box<Op>,
        other: Box<Op>,
        unwraps: bool,
    },
    Call(Box<Call>),
    List {
        items: Vec<Op>,
        optional: Vec<u32>,
    },
    Map(Vec<(Op, Op, bool)>),
    Struct {
        name: Arc<str>,
        fields: Vec<(Arc<str>, Op, bool)>,
    },
    /// A named value, the expression that uses it, and the slot of the name.
    Bind(Box<(Op, Op, u32)>),
    Fold(Box<Loop>),
}

/// One field or index.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) key: StepKey,
    /// `.?field` and `[?index]`
    pub(crate) optional: bool,
}

#[derive(Debug)]
pub(crate) enum StepKey {
    Constant(Value<'static>),
    Computed(Op),
}

/// A pattern known at compile time. It is compiled when it first runs: most programs rarely run, and a
/// compiled pattern is large.
#[derive(Debug)]
pub(crate) struct Literal {
    text: Box<str>,
    /// In characters; `None` where the call is `matches(text, pattern)`, which is charged one.
    size: Option<u64>,
    compiled: OnceLock<Result<Regex, Error>>,
}

impl Literal {
    fn new(text: &str, is_member: bool) -> Result<Literal, Error> {
        pattern::measure(text)?;
        let size = is_member.then(|| text.chars().count() as u64);
        Ok(Literal { text: text.into(), size, compiled: OnceLock::new() })
    }

    /// The cost of matching a text of this size.
    pub(crate) fn cost(&self, text: u64) -> u64 {
        self.size.map_or(1, |size| evaluate::pattern_cost(text, size))
    }

    pub(crate) fn regex(&self) -> Result<&Regex, Error> {
        self.compiled.get_or_init(|| pattern::compile(&self.text)).as_ref().map_err(Clone::clone)
    }
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Arc<str>,
    pub(crate) overloads: Vec<Arc<Overload>>,
    pub(crate) args: Vec<Op>,
}

#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) range: Op,
    pub(crate) start: Op,
    pub(crate) condition: Op,
    pub(crate) step: Op,
    pub(crate) result: Op,
    pub(crate) two_variables: bool,
    /// The slot of its accumulator; its variables follow.
    pub(crate) slot: u32,
}

struct Planner<'c> {
    checked: &'c Checked,
    variables: Vec<Arc<str>>,
    scopes: Vec<Arc<str>>,
    pattern_bytes: usize,
}

pub(crate) fn plan(checked: &Checked) -> Result<Code, Error> {
    let mut planner = Planner { checked, variables: Vec::new(), scopes: Vec::new(), pattern_bytes: 0 };
    let root = planner.plan(&checked.root)?;
    let dots = planner.variables.iter().map(|name| name.matches('.').count() as u64).collect();
    Ok(Code { root, variables: planner.variables, dots, pattern_bytes: planner.pattern_bytes })
}

impl Planner<'_> {
    // Separate functions, so that the recursion on a deep tree needs little stack.
    fn plan(&mut self, expr: &Expr) -> Result<Op, Error> {
        if let Some(Reference::Constant(value)) = &self.checked.references[expr.id as usize] {
            return Ok(Op::Constant(value.clone()));
        }
        match &expr.node {
            Node::Literal(value) => Ok(Op::Constant(value.clone())),
            Node::Ident(name) => Ok(self.name(name)),
            Node::Select { operand, field, test } => {
                let operand = self.plan(operand)?;
                Ok(select(operand, field, *test))
            }
            Node::Call { function, target, args } => {
                let args = self.all(target.as_deref(), args)?;
                self.combine(expr, function, args)
            }
            Node::List { items, optional } => {
                let items = self.all(None, items)?;
                Ok(folded_list(items, optional.clone()))
            }
            Node::Map(entries) => self.map(entries),
            Node::Struct { name, fields } => self.object(name, fields),
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn all(&mut self, target: Option<&Expr>, args: &[Expr]) -> Result<Vec<Op>, Error> {
        let mut ops = Vec::with_capacity(args.len() + 1);
        if let Some(target) = target {
            ops.push(self.plan(target)?);
        }
        for arg in args {
            ops.push(self.plan(arg)?);
        }
        Ok(ops)
    }

    fn object(&mut self, name: &Arc<str>, fields: &[Entry]) -> Result<Op, Error> {
        let mut made = Vec::with_capacity(fields.len());
        for field in fields {
            let Node::Literal(Value::String(name)) = &field.key.node else { continue };
            made.push((Arc::from(&**name), self.plan(&field.value)?, field.optional));
        }
        Ok(Op::Struct { name: name.clone(), fields: made })
    }

    fn name(&mut self, name: &Arc<str>) -> Op {
        if let Some(slot) = self.scopes.iter().rposition(|known| known == name) {
            return Op::Local(slot as u32);
        }
        let known = self.variables.iter().position(|known| known == name);
        let number = known.unwrap_or_else(|| {
            self.variables.push(name.clone());
            self.variables.len() - 1
        });
        Op::Variable(number as u32)
    }

    fn map(&mut self, entries: &[Entry]) -> Result<Op, Error> {
        let mut made = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = self.plan(&entry.key)?;
            made.push((key, self.plan(&entry.value)?, entry.optional));
        }
        Ok(folded_map(made))
    }

    fn fold(&mut self, fold: &Fold) -> Result<Op, Error> {
        let start = self.plan(&fold.start)?;
        if fold.is_binding() {
            let slot = self.scopes.len();
            self.scopes.push(fold.accumulator.clone());
            let result = self.plan(&fold.result)?;
            self.scopes.truncate(slot);
            return Ok(Op::Bind(Box::new((start, result, slot as u32))));
        }
        let range = self.plan(&fold.range)?;
        let slot = self.scopes.len();
        self.scopes.push(fold.accumulator.clone());
        self.scopes.push(fold.variable.clone());
        self.scopes.extend(fold.second.clone());
        let condition = self.plan(&fold.condition)?;
        let mut step = self.plan(&fold.step)?;
        let result = {
            self.scopes.truncate(slot + 1);
            self.plan(&fold.result)?
        };
        self.scopes.truncate(slot);
        if &*fold.accumulator == macros::ACCUMULATOR {
            take_accumulator(&mut step, slot as u32);
        }
        let two_variables = fold.second.is_some();
        let slot = slot as u32;
        Ok(Op::Fold(Box::new(Loop { range, start, condition, step, result, two_variables, slot })))
    }

    /// The code of a call with compiled arguments.
    fn combine(&mut self, expr: &Expr, function: &Arc<str>, mut args: Vec<Op>) -> Result<Op, Error> {
        Ok(match (&**function, args.len()) {
            ("_&&_", _) => Op::And(args),
            ("_||_", _) => Op::Or(args),
            ("_?_:_", 3) => Op::If(exactly(args)),
            ("_==_", 2) => Op::Equal(exactly(args), true),
            ("_!=_", 2) => Op::Equal(exactly(args), false),
            ("@not_strictly_false", 1) => Op::NotStrictlyFalse(Box::new(args.remove(0))),
            ("_[_]" | "_[?_]" | "_?._", 2) => {
                let key = args.remove(1);
                let key = match key {
                    Op::Constant(value) => {
                        evaluate::refuse_literal_key(&value)?;
                        StepKey::Constant(value)
                    }
                    computed => StepKey::Computed(computed),
                };
                walk(args.remove(0), Step { key, optional: &**function != "_[_]" }, false)
            }
            ("or" | "orValue", 2) if is_optional_overload(self.overloads(expr)) => {
                let other = Box::new(args.remove(1));
                Op::OptionalOr { target: Box::new(args.remove(0)), other, unwraps: &**function == "orValue" }
            }
            ("matches", 2) => match &args[1] {
                Op::Constant(Value::String(text)) => {
                    let is_member = self.overloads(expr).iter().all(|overload| overload.member);
                    let literal = Literal::new(text, is_member)?;
                    self.pattern_bytes += pattern::measure(text)?;
                    Op::Matches(Box::new(args.remove(0)), Box::new(literal))
                }
                _ => self.plain_call(expr, function, args)?,
            },
            ("@in", 2) if self.overloads(expr).len() == 1 && constant_set(&args[1]) => match args.remove(1) {
                Op::Constant(Value::List(list)) if list.is_empty() => Op::Constant(Value::Bool(false)),
                Op::Constant(set) => Op::OneOf(Box::new(args.remove(0)), set),
                other => {
                    args.push(other);
                    self.plain_call(expr, function, args)?
                }
            },
            _ => self.plain_call(expr, function, args)?,
        })
    }

    fn plain_call(&mut self, expr: &Expr, function: &Arc<str>, args: Vec<Op>) -> Result<Op, Error> {
        if let ("find" | "findAll", Some(Op::Constant(Value::String(text)))) = (&**function, args.get(1)) {
            self.pattern_bytes += pattern::measure(text)?;
        }
        let overloads = self.overloads(expr).to_vec();
        let call = Call { function: function.clone(), overloads, args };
        // Kubernetes: conversions of literals are evaluated, and fail, at compile time.
        if let [Op::Constant(value)] = &call.args[..]
            && is_conversion(&call.function)
        {
            return evaluate::dispatch(&call, std::slice::from_ref(value)).map(Op::Constant);
        }
        Ok(Op::Call(Box::new(call)))
    }

    fn overloads(&self, expr: &Expr) -> &[Arc<Overload>] {
        match &self.checked.references[expr.id as usize] {
            Some(Reference::Overloads(overloads)) => overloads,
            _ => &[],
        }
    }
}

fn exactly<const N: usize>(args: Vec<Op>) -> Box<[Op; N]> {
    let args: Box<[Op]> = args.into();
    args.try_into().expect("the caller matched the number of arguments")
}

fn is_optional_overload(overloads: &[Arc<Overload>]) -> bool {
    overloads.iter().any(|overload| overload.id.starts_with("optional_or"))
}

fn is_conversion(function: &str) -> bool {
    matches!(
        function,
        "bool" | "bytes" | "double" | "duration" | "dyn" | "int" | "string" | "timestamp" | "type" | "uint"
    )
}

/// A literal list of plain values, for which membership costs nothing.
fn constant_set(op: &Op) -> bool {
    let Op::Constant(Value::List(list)) = op else { return false };
    list.iter().all(|item| {
        matches!(
            item,
            Value::Bool(_)
                | Value::Int(_)
                | Value::Uint(_)
                | Value::Double(_)
                | Value::String(_)
                | Value::Null
        )
    })
}

fn select(operand: Op, field: &Arc<str>, test: bool) -> Op {
    let step = Step { key: StepKey::Constant(Value::string(field.clone())), optional: false };
    walk(operand, step, test)
}

/// Appends a step to a path, so that paths stay flat.
fn walk(operand: Op, step: Step, test: bool) -> Op {
    match operand {
        Op::Path { root, mut steps, is_test: false } => {
            steps.push(step);
            Op::Path { root, steps, is_test: test }
        }
        other => Op::Path { root: Box::new(other), steps: vec![step], is_test: test },
    }
}

fn folded_list(items: Vec<Op>, optional: Vec<u32>) -> Op {
    let all_constant = items.iter().all(|item| matches!(item, Op::Constant(_)));
    if !all_constant || !optional.is_empty() {
        return Op::List { items, optional };
    }
    let values: Vec<Value<'static>> = items.into_iter().filter_map(constant).collect();
    Op::Constant(Value::list(values))
}

fn folded_map(entries: Vec<(Op, Op, bool)>) -> Op {
    let foldable = |entry: &(Op, Op, bool)| {
        matches!(entry.0, Op::Constant(_)) && matches!(entry.1, Op::Constant(_)) && !entry.2
    };
    if !entries.iter().all(foldable) {
        return Op::Map(entries);
    }
    let pairs = entries.into_iter().filter_map(|(key, value, _)| Some((constant(key)?, constant(value)?)));
    let entries: BTreeMap<_, _> = pairs.map(|(key, value)| (Key::of(&key), value)).collect();
    Op::Constant(Value::Map(Map::new(entries)))
}

fn constant(op: Op) -> Option<Value<'static>> {
    match op {
        Op::Constant(value) => Some(value),
        _ => None,
    }
}

/// Lets the step of a comprehension move out its accumulator: the step's result replaces it anyway.
fn take_accumulator(step: &mut Op, slot: u32) {
    match step {
        Op::Call(call) if matches!(&*call.function, "_+_" | "cel.@mapInsert") => {
            if matches!(call.args.first(), Some(Op::Local(local)) if *local == slot) {
                call.args[0] = Op::Take(slot);
            }
        }
        Op::If(parts) => take_accumulator(&mut parts[1], slot),
        _ => {}
    }
}
