//! Values that may be absent: `a.?b`, `optional.of(x)`, `optMap`.

use crate::{
    ast::{Expander, Expr, Fold, Macro, MacroError, Node},
    error::Error,
    library::{Body, Function, Library, Outcome, Overload},
    ty::Type,
    value::Value,
};

const K: Type = Type::Param("K");
const V: Type = Type::Param("V");
/// The variable of a comprehension that never loops.
const UNUSED: &str = "#unused";

pub(crate) fn library() -> Library {
    let macros = vec![
        Macro { name: "optMap", member: true, arguments: Some(2), expand: opt_map },
        Macro { name: "optFlatMap", member: true, arguments: Some(2), expand: opt_flat_map },
    ];
    let functions = [constructors(), methods(), accesses(), of_lists()].into_iter().flatten().collect();
    Library { functions, macros, types: vec![Type::optional(Type::Dyn)], ..Library::default() }
}

fn optional() -> Type {
    Type::optional(V)
}

fn list() -> Type {
    Type::list(V)
}

fn global(name: &'static str, id: &'static str, parameters: Vec<Type>, result: Type, body: Body) -> Function {
    Function::new(name, vec![Overload::global(id, parameters, result, body)])
}

fn member(name: &'static str, id: &'static str, parameters: Vec<Type>, result: Type, body: Body) -> Function {
    Function::new(name, vec![Overload::member(id, parameters, result, body)])
}

fn constructors() -> Vec<Function> {
    vec![
        global("optional.of", "optional_of", vec![V], optional(), of),
        global("optional.ofNonZeroValue", "optional_ofNonZeroValue", vec![V], optional(), of_non_zero),
        global("optional.none", "optional_none", vec![], optional(), |_| Ok(Value::Optional(None))),
    ]
}

fn methods() -> Vec<Function> {
    vec![
        member("value", "optional_value", vec![optional()], V, value),
        member("hasValue", "optional_hasValue", vec![optional()], Type::Bool, has_value),
        member("or", "optional_or_optional", vec![optional(), optional()], optional(), elsewhere),
        member("orValue", "optional_orValue_value", vec![optional(), V], V, elsewhere),
    ]
}

/// Fields and items that may be absent.
fn accesses() -> Vec<Function> {
    let map = || Type::map(K, V);
    let index = |id, of: Type, key: Type| Overload::global(id, vec![of, key], optional(), elsewhere);
    vec![
        global("_?._", "select_optional_field", vec![Type::Dyn, Type::String], optional(), elsewhere),
        Function::new(
            "_[?_]",
            vec![
                index("list_optindex_optional_int", list(), Type::Int),
                index("optional_list_optindex_optional_int", Type::optional(list()), Type::Int),
                index("map_optindex_optional_value", map(), K),
                index("optional_map_optindex_optional_value", Type::optional(map()), K),
            ],
        ),
        Function::new(
            "_[_]",
            vec![
                index("optional_list_index_int", Type::optional(list()), Type::Int),
                index("optional_map_index_value", Type::optional(map()), K),
            ],
        ),
    ]
}

fn of_lists() -> Vec<Function> {
    let optionals = || Type::list(optional());
    vec![
        member("last", "list_last", vec![list()], optional(), last),
        member("first", "list_first", vec![list()], optional(), first),
        global("optional.unwrap", "optional_unwrap", vec![optionals()], list(), unwrap),
        member("unwrapOpt", "optional_unwrapOpt", vec![optionals()], list(), unwrap),
    ]
}

/// Fields, indexes and fallbacks are known to the evaluator, since they may skip work.
fn elsewhere<'a>(_: &[Value<'a>]) -> Outcome<'a> {
    Err(Error::no_such_overload())
}

fn of<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::some(args[0].clone()))
}

fn of_non_zero<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let zero = match &args[0] {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) | Value::Duration(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Object(object) => object.fields.is_empty(),
        _ => false,
    };
    Ok(if zero { Value::Optional(None) } else { Value::some(args[0].clone()) })
}

fn value<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Optional(Some(value)) => Ok((**value).clone()),
        Value::Optional(None) => Err(Error::new("optional.none() dereference")),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_value<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match &args[0] {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

fn element<'a>(value: Option<Value<'a>>) -> Outcome<'a> {
    Ok(value.map_or(Value::Optional(None), Value::some))
}

fn first<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let Value::List(list) = &args[0] else { return Err(Error::no_such_overload()) };
    element(list.at(0))
}

fn last<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let Value::List(list) = &args[0] else { return Err(Error::no_such_overload()) };
    element(list.len().checked_sub(1).and_then(|index| list.at(index)))
}

fn unwrap<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let Value::List(list) = &args[0] else { return Err(Error::no_such_overload()) };
    let mut values = Vec::new();
    for item in list.iter() {
        match item {
            Value::Optional(value) => values.extend(value.as_deref().cloned()),
            other => {
                return Err(Error::new(format!("value {} is not optional", crate::text::describe(&other))));
            }
        }
    }
    Ok(Value::list(values))
}

/// `target.hasValue() ? optional.of(fold) : optional.none()`
fn opt_map(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Result<Option<Expr>, MacroError> {
    let bound = bind(make, target, args, "optMap() variable name must be a simple identifier")?;
    let some = make.call("optional.of", vec![bound]);
    Ok(Some(when_present(make, target, some)))
}

fn opt_flat_map(
    make: &mut Expander,
    target: Option<&Expr>,
    args: &[Expr],
) -> Result<Option<Expr>, MacroError> {
    let bound = bind(make, target, args, "optFlatMap() variable name must be a simple identifier")?;
    Ok(Some(when_present(make, target, bound)))
}

fn when_present(make: &mut Expander, target: Option<&Expr>, then: Expr) -> Expr {
    let target = target.cloned().unwrap_or_else(|| make.literal(Value::Null));
    let present = make.member_call("hasValue", target, Vec::new());
    let none = make.call("optional.none", Vec::new());
    make.call("_?_:_", vec![present, then, none])
}

/// The expression with the target's value under a name: a comprehension over nothing.
fn bind(
    make: &mut Expander,
    target: Option<&Expr>,
    args: &[Expr],
    refusal: &str,
) -> Result<Expr, MacroError> {
    let Node::Ident(name) = &args[0].node else { return Err(MacroError::at(&args[0], refusal)) };
    let range = make.node(Node::List { items: Vec::new(), optional: Vec::new() });
    let target = target.map(|target| make.copy(target)).unwrap_or_else(|| range.clone());
    let start = make.member_call("value", target, Vec::new());
    let condition = make.literal(Value::Bool(false));
    let step = make.ident(name);
    let (variable, accumulator, result) = (UNUSED.into(), name.clone(), args[1].clone());
    Ok(make.node(Node::Fold(Box::new(Fold {
        range,
        variable,
        second: None,
        accumulator,
        start,
        condition,
        step,
        result,
    }))))
}
