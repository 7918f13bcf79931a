//! Lists, maps, objects and comprehensions.

use super::{unify::most_general, *};
use crate::ast::{Entry, Fold};

impl Checker<'_, '_> {
    pub(super) fn check_list(&mut self, items: &mut [Expr], optional: &[u32]) -> Type {
        let mut element = None;
        for (index, item) in items.iter_mut().enumerate() {
            self.check(item);
            let ty = self.element_type(item, optional.contains(&(index as u32)));
            element = Some(self.join(element, ty));
        }
        Type::list(element.unwrap_or_else(|| self.unifier.fresh()))
    }

    pub(super) fn check_map(&mut self, entries: &mut [Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(&mut entry.key);
            let key = self.of(&entry.key).clone();
            keys = Some(self.join(keys, key));
            self.check(&mut entry.value);
            let value = self.element_type(&entry.value, entry.optional);
            values = Some(self.join(values, value));
        }
        match (keys, values) {
            (Some(key), Some(value)) => Type::map(key, value),
            _ => {
                let key = self.unifier.fresh();
                Type::map(key, self.unifier.fresh())
            }
        }
    }

    /// The type of an element: `?item` must be an optional, and its content is the element.
    fn element_type(&mut self, item: &Expr, optional: bool) -> Type {
        let ty = self.of(item).clone();
        if !optional {
            return ty;
        }
        match &ty {
            Type::Optional(inner) => (**inner).clone(),
            Type::Dyn => ty,
            other => {
                self.mismatch(item.offset, &Type::optional(other.clone()), other);
                ty
            }
        }
    }

    /// The type that holds both. Mixed types are rejected later, except where a function allows them.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        let Some(previous) = previous else { return current };
        if self.unifier.assignable(&previous, &current) {
            return most_general(&previous, &current).clone();
        }
        Type::Dyn
    }

    pub(super) fn check_struct(&mut self, offset: u32, name: &mut Arc<str>, fields: &mut [Entry]) -> Type {
        let full = name.strip_prefix('.').unwrap_or(name);
        let local = self.scopes.iter().rev().find(|(known, _)| &**known == full).map(|(_, ty)| ty);
        let variable = local.or_else(|| self.env.variable(full)).cloned();
        let declared = variable.or_else(|| self.env.named(full).map(|named| named.ty));
        let result = match declared {
            None => {
                self.undeclared(offset, &name.clone());
                return Type::Error;
            }
            Some(Type::Type(inner)) => match &*inner {
                Type::Object(_) => (*inner).clone(),
                other => {
                    self.found.at(offset, format!("'{}' is not a message type", other.name()));
                    Type::Error
                }
            },
            Some(other) => {
                self.found.at(offset, format!("'{}' is not a type", other.name()));
                Type::Error
            }
        };
        *name = full.into();
        for field in fields {
            self.check(&mut field.value);
            self.check_struct_field(&result, field);
        }
        result
    }

    fn check_struct_field(&mut self, object: &Type, field: &Entry) {
        let Node::Literal(Value::String(name)) = &field.key.node else { return };
        let Type::Object(object) = object else { return };
        let value = self.element_type(&field.value, field.optional);
        let Some(declared) = object.field(name).cloned() else {
            self.found.at(field.offset, format!("undefined field '{}'", &**name));
            return;
        };
        if !self.unifier.assignable(&declared, &value) {
            self.found.at(
                field.offset,
                format!(
                    "expected type of field '{}' is '{declared}' but provided type is '{value}'",
                    &**name
                ),
            );
        }
    }

    pub(super) fn check_fold(&mut self, fold: &mut Fold) -> Type {
        self.check(&mut fold.range);
        self.check(&mut fold.start);
        let range = self.unifier.resolve(self.of(&fold.range), false);
        let accumulated = self.of(&fold.start).clone();
        self.scopes.push((fold.accumulator.clone(), accumulated.clone()));
        let two = fold.second.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(pair) => (pair.0.clone(), pair.1.clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                self.found.at(
                    fold.range.offset,
                    format!("expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"),
                );
                (Type::Error, Type::Error)
            }
        };
        let outer = self.scopes.len();
        self.scopes.push((fold.variable.clone(), first));
        if let Some(name) = &fold.second {
            self.scopes.push((name.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.check(&mut fold.step);
        self.assert(&fold.step, &accumulated);
        self.scopes.truncate(outer);
        self.check(&mut fold.result);
        self.scopes.truncate(outer - 1);
        self.unifier.resolve(self.of(&fold.result), false)
    }

    fn assert(&mut self, expr: &Expr, expected: &Type) {
        let actual = self.of(expr).clone();
        if !self.unifier.assignable(expected, &actual) {
            self.mismatch(expr.offset, expected, &actual);
        }
    }
}
