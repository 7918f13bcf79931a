//! Type-checks a tree: every name is declared, every call fits an overload.

use crate::{
    ast::{Expr, Node},
    environment::Env,
    issues::{Found, Issues},
    library::Overload,
    parser::Parsed,
    program::Checked,
    ty::Type,
    value::Value,
};
use std::sync::Arc;
use unify::Unifier;

mod aggregate;
mod call;
mod literals;
mod unify;

#[derive(Clone, Debug)]
pub(crate) enum Reference {
    /// A named type or constant.
    Constant(Value<'static>),
    /// The overloads that fit; if there are several, the evaluator chooses.
    Overloads(Vec<Arc<Overload>>),
}

struct Checker<'e, 's> {
    env: &'e Env,
    types: Vec<Type>,
    references: Vec<Option<Reference>>,
    scopes: Vec<(Arc<str>, Type)>,
    unifier: Unifier,
    found: Found<'s>,
}

pub(crate) fn check(env: &Env, source: &str, parsed: Parsed) -> Result<Checked, Issues> {
    let count = parsed.ids as usize;
    let mut root = parsed.root;
    let mut checker = Checker {
        env,
        types: vec![Type::Error; count],
        references: vec![None; count],
        scopes: Vec::new(),
        unifier: Unifier::default(),
        found: Found::new(source),
    };
    checker.check(&mut root);
    let Checker { types, references, unifier, mut found, .. } = checker;
    let types: Vec<Type> = types.iter().map(|ty| unifier.resolve(ty, true)).collect();
    if found.is_empty() {
        literals::check(&root, &types, &mut found);
    }
    found.finish()?;
    Ok(Checked::new(root, types, references))
}

impl Checker<'_, '_> {
    fn check(&mut self, expr: &mut Expr) {
        let (id, offset) = (expr.id, expr.offset);
        match &mut expr.node {
            Node::Literal(value) => {
                let ty = value.ty();
                self.set(id, ty);
            }
            Node::Ident(_) => self.check_ident(expr),
            Node::Select { .. } => self.check_select(expr),
            Node::Call { .. } => self.check_call(expr),
            Node::List { items, optional } => {
                let ty = self.check_list(items, optional);
                self.set(id, ty);
            }
            Node::Map(entries) => {
                let ty = self.check_map(entries);
                self.set(id, ty);
            }
            Node::Struct { name, fields } => {
                let ty = self.check_struct(offset, name, fields);
                self.set(id, ty);
            }
            Node::Fold(fold) => {
                let ty = self.check_fold(fold);
                self.set(id, ty);
            }
        }
    }

    fn check_ident(&mut self, expr: &mut Expr) {
        let Node::Ident(name) = &expr.node else { return };
        let name = name.clone();
        if !self.resolve_name(expr, &name) {
            self.undeclared(expr.offset, &name);
        }
    }

    /// Makes this node a reference to the declaration of the name.
    fn resolve_name(&mut self, expr: &mut Expr, name: &str) -> bool {
        let name = name.strip_prefix('.').unwrap_or(name);
        let local = self.scopes.iter().rev().find(|(known, _)| &**known == name).map(|(_, ty)| ty.clone());
        if let Some(ty) = local.or_else(|| self.env.variable(name).cloned()) {
            self.set(expr.id, ty);
        } else if let Some(named) = self.env.named(name) {
            self.set(expr.id, named.ty);
            self.references[expr.id as usize] = Some(Reference::Constant(named.value));
        } else {
            return false;
        }
        expr.node = Node::Ident(name.into());
        true
    }

    fn check_select(&mut self, expr: &mut Expr) {
        // `a.b` may be one name, such as `google.protobuf.Timestamp`.
        if let Some(name) = qualified_name(expr)
            && self.resolve_name(expr, &name)
        {
            return;
        }
        if self.is_test_of_variable(expr) {
            expr.node = Node::Literal(Value::Bool(true));
            self.set(expr.id, Type::Bool);
            return;
        }
        let (id, offset) = (expr.id, expr.offset);
        let Node::Select { operand, field, test } = &mut expr.node else { return };
        let mut ty = self.check_field(offset, operand, field, false);
        if *test {
            ty = Type::Bool;
        }
        let ty = self.unifier.resolve(&ty, false);
        self.set(id, ty);
    }

    /// `has(variables.x)` where `variables.x` is declared as one variable.
    fn is_test_of_variable(&self, expr: &Expr) -> bool {
        let Node::Select { operand, field, test: true } = &expr.node else { return false };
        let name = qualified_name(operand).map(|prefix| format!("{prefix}.{field}"));
        name.is_some_and(|name| self.env.variable(&name).is_some())
    }

    /// The type of a field of an operand.
    fn check_field(&mut self, offset: u32, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand_type = self.unifier.resolve(self.of(operand), false);
        let (target, was_optional) = unwrap_optional(&operand_type);
        let result = match target {
            Type::Map(pair) => pair.1.clone(),
            Type::Object(object) => object.field(field).cloned().unwrap_or_else(|| {
                self.found.at(offset, format!("undefined field '{field}'"));
                Type::Error
            }),
            Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            // Kubernetes: its own types are objects to the checker, but their fields are not declared.
            Type::Opaque(name) if name.starts_with("kubernetes.") => {
                self.found.at(offset, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            other => {
                self.found.at(offset, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || optional { Type::optional(result) } else { result }
    }

    fn set(&mut self, id: u32, ty: Type) {
        self.types[id as usize] = ty;
    }

    fn of(&self, expr: &Expr) -> &Type {
        &self.types[expr.id as usize]
    }

    fn undeclared(&mut self, offset: u32, name: &str) {
        self.found.at(offset, format!("undeclared reference to '{name}' (in container '')"));
    }

    fn mismatch(&mut self, offset: u32, expected: &Type, actual: &Type) {
        self.found.at(offset, format!("expected type '{expected}' but found '{actual}'"));
    }
}

/// `a.b.c` where these are plain names.
fn qualified_name(expr: &Expr) -> Option<String> {
    match &expr.node {
        Node::Ident(name) => Some(name.to_string()),
        Node::Select { operand, field, test: false } => Some(format!("{}.{field}", qualified_name(operand)?)),
        _ => None,
    }
}

fn unwrap_optional(ty: &Type) -> (&Type, bool) {
    match ty {
        Type::Optional(inner) => (inner, true),
        other => (other, false),
    }
}
