//! Known sizes: from literals, from the schema by path, from calls.

use crate::{
    ast::{Expr, Fold, Node},
    cost::Range,
    declare::Sizes,
    library::Argument,
    macros,
    program::Checked,
    ty::Type,
    value::Value,
};
use std::sync::Arc;

type Path = Vec<Arc<str>>;

/// The sizes of the keys (or indexes) and values of a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntrySize {
    pub(super) of_list: bool,
    pub(super) key: Range,
    pub(super) value: Range,
}

/// The known sizes of the nodes of one expression, by id.
pub(super) struct Known<'c> {
    checked: &'c Checked,
    sizes: &'c dyn Sizes,
    paths: Vec<Path>,
    computed: Vec<Option<Range>>,
    entries: Vec<Option<EntrySize>>,
    locals: Vec<LocalSize>,
}

struct LocalSize {
    name: Arc<str>,
    path: Path,
    size: Option<Range>,
    entries: Option<EntrySize>,
}

impl EntrySize {
    pub(super) fn union(one: Option<EntrySize>, other: Option<EntrySize>) -> Option<EntrySize> {
        let (one, other) = (one?, other?);
        Some(EntrySize {
            of_list: one.of_list,
            key: one.key.union(other.key),
            value: one.value.union(other.value),
        })
    }
}

impl<'c> Known<'c> {
    pub(super) fn new(checked: &'c Checked, sizes: &'c dyn Sizes) -> Known<'c> {
        let count = checked.types.len();
        Known {
            checked,
            sizes,
            paths: vec![Vec::new(); count],
            computed: vec![None; count],
            entries: vec![None; count],
            locals: Vec::new(),
        }
    }

    pub(super) fn ty(&self, expr: &Expr) -> &'c Type {
        &self.checked.types[expr.id as usize]
    }

    fn local(&self, name: &str) -> Option<&LocalSize> {
        self.locals.iter().rev().find(|local| &*local.name == name)
    }

    fn local_of(&self, expr: &Expr) -> Option<&LocalSize> {
        match &expr.node {
            Node::Ident(name) => self.local(name),
            _ => None,
        }
    }

    pub(super) fn name(&mut self, expr: &Expr, name: &Arc<str>) {
        let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
        self.paths[expr.id as usize] = path;
    }

    fn path(&self, expr: &Expr) -> Path {
        self.local_of(expr).map_or_else(|| self.paths[expr.id as usize].clone(), |local| local.path.clone())
    }

    pub(super) fn extend_path(&mut self, expr: &Expr, operand: &Expr, step: Arc<str>) {
        let mut path = self.path(operand);
        path.push(step);
        self.paths[expr.id as usize] = path;
    }

    pub(super) fn size(&mut self, expr: &Expr) -> Option<Range> {
        let id = expr.id as usize;
        if let Some(size) = self.computed[id].or_else(|| literal_size(expr)) {
            return Some(size);
        }
        if let Some(size) = self.sizes.size(&self.path(expr)) {
            self.computed[id] = Some(size);
            return Some(size);
        }
        if is_scalar(self.ty(expr)) {
            return Some(Range::ONE);
        }
        self.local_of(expr).and_then(|local| local.size)
    }

    pub(super) fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    pub(super) fn set_size(&mut self, expr: &Expr, size: Option<Range>) {
        if size.is_some() {
            self.computed[expr.id as usize] = size;
        }
    }

    pub(super) fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        self.entries[expr.id as usize].or_else(|| self.local_of(expr)?.entries)
    }

    pub(super) fn set_entry_size(&mut self, expr: &Expr, size: Option<EntrySize>) {
        if size.is_some() {
            self.entries[expr.id as usize] = size;
        }
    }

    pub(super) fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        let (size, entries) = (self.size(from), self.entry_size(from));
        self.set_size(to, size);
        self.set_entry_size(to, entries);
    }

    pub(super) fn push_local(&mut self, name: &Arc<str>, value: &Expr) {
        let (path, entries, size) = (self.path(value), self.entry_size(value), self.size(value));
        self.locals.push(LocalSize { name: name.clone(), path, size, entries });
    }

    /// Adds the variables of a comprehension; returns how many.
    pub(super) fn push_variables(&mut self, fold: &Fold) -> usize {
        let entries = self.entry_size(&fold.range);
        let of_list = match entries {
            Some(entries) => entries.of_list,
            None => matches!(self.ty(&fold.range), Type::List(_)),
        };
        let key = entries.map(|entries| entries.key);
        let value = entries.map(|entries| entries.value);
        let steps = match (&fold.second, of_list) {
            (None, true) => vec![("@items", value)],
            (None, false) => vec![("@keys", key)],
            (Some(_), true) => vec![("@indices", key), ("@items", value)],
            (Some(_), false) => vec![("@keys", key), ("@values", value)],
        };
        let names = std::iter::once(&fold.variable).chain(&fold.second);
        for ((step, size), name) in steps.iter().zip(names) {
            let mut path = self.path(&fold.range);
            path.push((*step).into());
            self.locals.push(LocalSize { name: name.clone(), path, size: *size, entries: None });
        }
        steps.len()
    }

    pub(super) fn pop_locals(&mut self, count: usize) {
        self.locals.truncate(self.locals.len() - count);
    }

    pub(super) fn argument<'e>(&mut self, expr: &'e Expr) -> Argument<'e>
    where
        'c: 'e,
    {
        let ty = self.ty(expr);
        let mut path = self.path(expr);
        if path.first().is_some_and(|first| &**first == macros::ACCUMULATOR) {
            path.clear();
        }
        let element_size = if ty.first_parameter().is_some() && !path.is_empty() {
            path.push("@items".into());
            self.sizes.size(&path).unwrap_or(Range::UNKNOWN)
        } else {
            Range::UNKNOWN
        };
        let literal = match &expr.node {
            Node::Literal(value) => Some(value),
            _ => None,
        };
        Argument { ty, size: self.size_or_unknown(expr), element_size, literal }
    }
}

fn literal_size(expr: &Expr) -> Option<Range> {
    Some(Range::exactly(match &expr.node {
        Node::Literal(value @ (Value::String(_) | Value::Bytes(_))) => value.size(),
        Node::Literal(_) => 1,
        Node::List { items, .. } => items.len() as u64,
        Node::Map(entries) => entries.len() as u64,
        _ => return None,
    }))
}

fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}
