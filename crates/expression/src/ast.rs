//! The tree of an expression, with the place of every node in the source.

use crate::value::Value;
use std::sync::Arc;

/// One node. Macros are expanded already.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Unique within one expression; dense, so that side tables are vectors.
    pub id: u32,
    /// Offset in characters.
    pub offset: u32,
    pub node: Node,
}

#[derive(Clone, Debug)]
pub enum Node {
    Literal(Value<'static>),
    Ident(Arc<str>),
    Select {
        operand: Box<Expr>,
        field: Arc<str>,
        /// Made by `has()`: tests whether the field is present.
        test: bool,
    },
    Call {
        function: Arc<str>,
        target: Option<Box<Expr>>,
        args: Vec<Expr>,
    },
    List {
        items: Vec<Expr>,
        /// Which items are `?item`.
        optional: Vec<u32>,
    },
    Map(Vec<Entry>),
    Struct {
        name: Arc<str>,
        fields: Vec<Entry>,
    },
    Fold(Box<Fold>),
}

/// `key: value` of a map, or `field: value` of a struct (then the key is a string literal).
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: u32,
    pub offset: u32,
    pub key: Expr,
    pub value: Expr,
    pub optional: bool,
}

/// A comprehension: the expansion of `all`, `exists`, `map` and similar macros.
#[derive(Clone, Debug)]
pub struct Fold {
    pub range: Expr,
    pub variable: Arc<str>,
    /// The second variable of two-variable comprehensions.
    pub second: Option<Arc<str>>,
    pub accumulator: Arc<str>,
    pub start: Expr,
    pub condition: Expr,
    pub step: Expr,
    pub result: Expr,
}

/// A call that the parser rewrites.
#[derive(Clone, Copy, Debug)]
pub struct Macro {
    pub name: &'static str,
    /// Called on a target: `target.name(…)`.
    pub member: bool,
    /// `None` takes any number.
    pub arguments: Option<usize>,
    pub expand: Expand,
}

/// Rewrites a call. `Ok(None)` leaves the call unchanged.
pub type Expand = fn(&mut Expander, Option<&Expr>, &[Expr]) -> Result<Option<Expr>, MacroError>;

/// A misused macro, with the place to point at.
#[derive(Clone, Debug)]
pub struct MacroError {
    pub offset: u32,
    pub message: String,
}

/// Makes nodes with fresh ids at the place of the call that is rewritten.
#[derive(Debug)]
pub struct Expander {
    pub(crate) next: u32,
    pub(crate) offset: u32,
}

impl Expander {
    pub fn node(&mut self, node: Node) -> Expr {
        let id = self.next;
        self.next += 1;
        Expr { id, offset: self.offset, node }
    }

    /// The same tree with new ids, for a place where it is evaluated again.
    pub fn copy(&mut self, expr: &Expr) -> Expr {
        let mut copy = expr.clone();
        self.renumber(&mut copy);
        copy
    }

    fn renumber(&mut self, expr: &mut Expr) {
        expr.id = self.next;
        self.next += 1;
        match &mut expr.node {
            Node::Literal(_) | Node::Ident(_) => {}
            Node::Select { operand, .. } => self.renumber(operand),
            Node::Call { target, args, .. } => {
                target.as_deref_mut().into_iter().chain(args).for_each(|part| self.renumber(part));
            }
            Node::List { items, .. } => items.iter_mut().for_each(|item| self.renumber(item)),
            Node::Map(entries) | Node::Struct { fields: entries, .. } => {
                for entry in entries {
                    self.renumber(&mut entry.key);
                    self.renumber(&mut entry.value);
                }
            }
            Node::Fold(fold) => {
                let Fold { range, start, condition, step, result, .. } = &mut **fold;
                [range, start, condition, step, result].into_iter().for_each(|part| self.renumber(part));
            }
        }
    }

    pub fn ident(&mut self, name: &str) -> Expr {
        self.node(Node::Ident(name.into()))
    }

    pub fn literal(&mut self, value: Value<'static>) -> Expr {
        self.node(Node::Literal(value))
    }

    pub fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        self.node(Node::Call { function: function.into(), target: None, args })
    }

    pub fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        self.node(Node::Call { function: function.into(), target: Some(Box::new(target)), args })
    }
}

impl Fold {
    /// Whether this only names a value: a comprehension over an empty list.
    pub(crate) fn is_binding(&self) -> bool {
        matches!(&self.range.node, Node::List { items, .. } if items.is_empty())
            && matches!(self.condition.node, Node::Literal(Value::Bool(false)))
    }
}

impl MacroError {
    pub fn at(expr: &Expr, message: impl Into<String>) -> MacroError {
        MacroError { offset: expr.offset, message: message.into() }
    }
}
