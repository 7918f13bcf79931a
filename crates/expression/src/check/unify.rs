//! Unification: which type fits where, and the bindings of type variables.

use crate::ty::Type;

/// The types bound to variables so far.
#[derive(Debug, Default)]
pub(super) struct Unifier {
    bound: Vec<Option<Type>>,
    /// The bindings to restore when a match fails.
    undo: Vec<(u32, Option<Type>)>,
}

impl Unifier {
    pub(super) fn fresh(&mut self) -> Type {
        self.bound.push(None);
        Type::Var(self.bound.len() as u32 - 1)
    }

    /// Whether one type fits the other; if it does not, nothing stays bound.
    pub(super) fn assignable(&mut self, one: &Type, other: &Type) -> bool {
        self.attempt(|unifier| unifier.fits(one, other))
    }

    pub(super) fn assignable_all(&mut self, ones: &[Type], others: &[Type]) -> bool {
        ones.len() == others.len()
            && self.attempt(|unifier| ones.iter().zip(others).all(|(one, other)| unifier.fits(one, other)))
    }

    fn attempt(&mut self, matches: impl FnOnce(&mut Unifier) -> bool) -> bool {
        self.undo.clear();
        let fits = matches(self);
        if !fits {
            while let Some((variable, before)) = self.undo.pop() {
                self.bound[variable as usize] = before;
            }
        }
        fits
    }

    fn bind(&mut self, variable: u32, ty: Type) {
        let before = self.bound[variable as usize].replace(ty);
        self.undo.push((variable, before));
    }

    fn fits(&mut self, one: &Type, other: &Type) -> bool {
        if let Type::Var(variable) = other {
            let (valid, known) = self.substitutes(one, *variable);
            if valid || known {
                return valid;
            }
        }
        if let Type::Var(variable) = one {
            return self.substitutes(other, *variable).0;
        }
        match (one, other) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::Null, ty) | (ty, Type::Null) => is_nullable(ty),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.fits(a, b),
            (Type::Map(a), Type::Map(b)) => self.fits(&a.0, &b.0) && self.fits(&a.1, &b.1),
            (Type::Type(_), Type::Type(_)) => true,
            (one, other) => one == other,
        }
    }

    /// Whether the variable may stand for the type, and whether it was bound already.
    fn substitutes(&mut self, ty: &Type, variable: u32) -> (bool, bool) {
        if *ty == Type::Var(variable) {
            return (true, true);
        }
        if let Some(bound) = self.bound[variable as usize].clone() {
            if *ty == bound {
                return (true, true);
            }
            if !self.fits(ty, &bound) {
                return (false, true);
            }
            let general = most_general(ty, &bound).clone();
            if !self.mentions(&general, variable) {
                self.bind(variable, general);
            }
            return (true, true);
        }
        if self.mentions(ty, variable) {
            return (false, false);
        }
        self.bind(variable, ty.clone());
        (true, false)
    }

    fn mentions(&self, ty: &Type, variable: u32) -> bool {
        match ty {
            Type::Var(other) if *other == variable => true,
            Type::Var(other) => {
                self.bound[*other as usize].as_ref().is_some_and(|bound| self.mentions(bound, variable))
            }
            Type::List(inner) | Type::Optional(inner) | Type::Type(inner) => self.mentions(inner, variable),
            Type::Map(pair) => self.mentions(&pair.0, variable) || self.mentions(&pair.1, variable),
            _ => false,
        }
    }

    /// The type with its variables replaced; at the end, free ones are dyn.
    pub(super) fn resolve(&self, ty: &Type, free_is_dyn: bool) -> Type {
        match ty {
            Type::Var(variable) => match &self.bound[*variable as usize] {
                Some(bound) => self.resolve(bound, free_is_dyn),
                None if free_is_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::List(inner) => Type::list(self.resolve(inner, free_is_dyn)),
            Type::Optional(inner) => Type::optional(self.resolve(inner, free_is_dyn)),
            Type::Type(inner) => Type::type_of(self.resolve(inner, free_is_dyn)),
            Type::Map(pair) => {
                Type::map(self.resolve(&pair.0, free_is_dyn), self.resolve(&pair.1, free_is_dyn))
            }
            other => other.clone(),
        }
    }
}

pub(super) fn most_general<'t>(one: &'t Type, other: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(one, other) { one } else { other }
}

fn is_equal_or_less_specific(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Var(_), _) => true,
        (_, Type::Dyn | Type::Var(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => {
            is_equal_or_less_specific(a, b)
        }
        (Type::Map(a), Type::Map(b)) => {
            is_equal_or_less_specific(&a.0, &b.0) && is_equal_or_less_specific(&a.1, &b.1)
        }
        (Type::Type(_), Type::Type(_)) => true,
        (one, other) => one == other,
    }
}

fn is_nullable(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null | Type::Opaque(_) | Type::Optional(_) | Type::Object(_) | Type::Duration | Type::Timestamp
    )
}
