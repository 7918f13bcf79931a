//! Checks calls: which overloads take these arguments, and the type of the result.

use super::*;

impl Checker<'_, '_> {
    pub(super) fn check_call(&mut self, expr: &mut Expr) {
        let (id, offset) = (expr.id, expr.offset);
        let Node::Call { function, target, args } = &mut expr.node else { return };
        if &**function == "_?._" {
            return self.check_optional_select(expr);
        }
        for arg in args.iter_mut() {
            self.check(arg);
        }
        let mut name = function.strip_prefix('.').map_or_else(|| function.clone(), Arc::from);
        if let Some(operand) = target {
            // `a.b.c()` is either the function `a.b.c`, or `c` on the target `a.b`.
            let full = qualified_name(operand).map(|prefix| format!("{prefix}.{name}"));
            let full =
                full.filter(|full| self.env.function(full.strip_prefix('.').unwrap_or(full)).is_some());
            if let Some(full) = full {
                name = full.strip_prefix('.').unwrap_or(&full).into();
                *target = None;
            } else {
                self.check(operand);
            }
        }
        let Some(overloads) = self.env.function(&name).cloned() else {
            let spelled = function.clone();
            self.undeclared(offset, &spelled);
            return;
        };
        *function = name.clone();
        let target = target.as_deref();
        let arguments: Vec<&Expr> = target.into_iter().chain(args.iter()).collect();
        if matches!(&*name, "_&&_" | "_||_") {
            return self.check_logic(id, &overloads, &arguments);
        }
        self.resolve_overloads(id, offset, &name, &overloads, target.is_some(), &arguments);
    }

    /// Each operand by itself, so that each wrong one is reported.
    fn check_logic(&mut self, id: u32, overloads: &Arc<[Arc<Overload>]>, arguments: &[&Expr]) {
        let mut wrong = false;
        for argument in arguments {
            let ty = self.of(argument).clone();
            if !self.unifier.assignable(&ty, &Type::Bool) {
                self.mismatch(argument.offset, &Type::Bool, &ty);
                wrong = true;
            }
        }
        if !wrong {
            self.set(id, Type::Bool);
            self.references[id as usize] = Some(Reference::Overloads(overloads.to_vec()));
        }
    }

    fn resolve_overloads(
        &mut self,
        id: u32,
        offset: u32,
        name: &str,
        overloads: &Arc<[Arc<Overload>]>,
        member: bool,
        arguments: &[&Expr],
    ) {
        let types: Vec<Type> = arguments.iter().map(|argument| self.of(argument).clone()).collect();
        let mut result: Option<Type> = None;
        let mut fitting = Vec::new();
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            let mut fresh = Vec::new();
            let output = self.instantiate(&overload.result, &mut fresh);
            let parameters: Vec<Type> =
                overload.parameters.iter().map(|parameter| self.instantiate(parameter, &mut fresh)).collect();
            if !self.unifier.assignable_all(&types, &parameters) {
                continue;
            }
            fitting.push(overload.clone());
            let output = self.unifier.resolve(&output, false);
            result = Some(match result {
                None => output,
                Some(Type::Dyn) => Type::Dyn,
                Some(before) if before == output => before,
                Some(_) => Type::Dyn,
            });
        }
        let Some(result) = result else {
            let types: Vec<Type> = types.iter().map(|ty| self.unifier.resolve(ty, true)).collect();
            let signature = signature(&types, member);
            self.found
                .at(offset, format!("found no matching overload for '{name}' applied to '{signature}'"));
            return;
        };
        self.set(id, result);
        self.references[id as usize] = Some(Reference::Overloads(fitting));
    }

    /// The declared type with a fresh variable for each parameter.
    fn instantiate(&mut self, ty: &Type, fresh: &mut Vec<(&'static str, Type)>) -> Type {
        match ty {
            Type::Param(name) => {
                if let Some((_, variable)) = fresh.iter().find(|(known, _)| known == name) {
                    return variable.clone();
                }
                let variable = self.unifier.fresh();
                fresh.push((name, variable.clone()));
                variable
            }
            Type::List(inner) => Type::list(self.instantiate(inner, fresh)),
            Type::Optional(inner) => Type::optional(self.instantiate(inner, fresh)),
            Type::Type(inner) => Type::type_of(self.instantiate(inner, fresh)),
            Type::Map(pair) => {
                let key = self.instantiate(&pair.0, fresh);
                Type::map(key, self.instantiate(&pair.1, fresh))
            }
            other => other.clone(),
        }
    }

    /// `a.?b`
    fn check_optional_select(&mut self, expr: &mut Expr) {
        let (id, offset) = (expr.id, expr.offset);
        let Node::Call { args, .. } = &mut expr.node else { return };
        let [operand, field] = &mut args[..] else { return };
        let Node::Literal(Value::String(name)) = &field.node else { return };
        let ty = self.check_field(offset, operand, name, true);
        let ty = self.unifier.resolve(&ty, false);
        self.set(field.id, Type::String);
        self.set(id, ty);
        self.references[id as usize] =
            self.env.function("_?._").map(|all| Reference::Overloads(all.to_vec()));
    }
}

/// `(int, string)`, or `int.(string)` for a member.
fn signature(types: &[Type], member: bool) -> String {
    let (target, rest) = if member { types.split_at(1) } else { types.split_at(0) };
    let target: String = target.iter().map(|ty| format!("{ty}.")).collect();
    let rest: Vec<String> = rest.iter().map(Type::to_string).collect();
    format!("{target}({})", rest.join(", "))
}
