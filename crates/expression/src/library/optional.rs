//! Values that may be absent: `a.?b`, `optional.of(x)`, `optMap`.

use crate::{
    ast::{Expander, Expr, Fold, Macro, MacroError, Node},
    error::Error,
    library::{Function, Library, Outcome, Overload},
    ty::Type,
    value::Value,
};

const K: Type = Type::Param("K");
const V: Type = Type::Param("V");
/// The variable of a comprehension that never loops.
const UNUSED: &str = "#unused";

pub(crate) fn library() -> Library {
    let optional = || Type::optional(V);
    let list = || Type::list(V);
    let map = || Type::map(K, V);
    let optionals = || Type::list(Type::optional(V));
    let functions = vec![
        Function::new("optional.of", vec![Overload::global("optional_of", vec![V], optional(), of)]),
        Function::new(
            "optional.ofNonZeroValue",
            vec![Overload::global("optional_ofNonZeroValue", vec![V], optional(), of_non_zero)],
        ),
        Function::new(
            "optional.none",
            vec![Overload::global("optional_none", vec![], optional(), |_| Ok(Value::Optional(None)))],
        ),
        Function::new("value", vec![Overload::member("optional_value", vec![optional()], V, value)]),
        Function::new(
            "hasValue",
            vec![Overload::member("optional_hasValue", vec![optional()], Type::Bool, has_value)],
        ),
        Function::new(
            "or",
            vec![Overload::member(
                "optional_or_optional",
                vec![optional(), optional()],
                optional(),
                elsewhere,
            )],
        ),
        Function::new(
            "orValue",
            vec![Overload::member("optional_orValue_value", vec![optional(), V], V, elsewhere)],
        ),
        Function::new(
            "_?._",
            vec![Overload::global(
                "select_optional_field",
                vec![Type::Dyn, Type::String],
                optional(),
                elsewhere,
            )],
        ),
        Function::new(
            "_[?_]",
            vec![
                Overload::global(
                    "list_optindex_optional_int",
                    vec![list(), Type::Int],
                    optional(),
                    elsewhere,
                ),
                Overload::global(
                    "optional_list_optindex_optional_int",
                    vec![Type::optional(list()), Type::Int],
                    optional(),
                    elsewhere,
                ),
                Overload::global("map_optindex_optional_value", vec![map(), K], optional(), elsewhere),
                Overload::global(
                    "optional_map_optindex_optional_value",
                    vec![Type::optional(map()), K],
                    optional(),
                    elsewhere,
                ),
            ],
        ),
        Function::new(
            "_[_]",
            vec![
                Overload::global(
                    "optional_list_index_int",
                    vec![Type::optional(list()), Type::Int],
                    optional(),
                    elsewhere,
                ),
                Overload::global(
                    "optional_map_index_value",
                    vec![Type::optional(map()), K],
                    optional(),
                    elsewhere,
                ),
            ],
        ),
        Function::new("last", vec![Overload::member("list_last", vec![list()], optional(), last)]),
        Function::new("first", vec![Overload::member("list_first", vec![list()], optional(), first)]),
        Function::new(
            "optional.unwrap",
            vec![Overload::global("optional_unwrap", vec![optionals()], list(), unwrap)],
        ),
        Function::new(
            "unwrapOpt",
            vec![Overload::member("optional_unwrapOpt", vec![optionals()], list(), unwrap)],
        ),
    ];
    let macros = vec![
        Macro { name: "optMap", member: true, arguments: Some(2), expand: opt_map },
        Macro { name: "optFlatMap", member: true, arguments: Some(2), expand: opt_flat_map },
    ];
    Library { functions, macros, types: vec![Type::optional(Type::Dyn)], ..Library::default() }
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
