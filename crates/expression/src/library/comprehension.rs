//! Comprehensions with two variables: index and element, or key and value.

use crate::{
    ast::{Expand, Expander, Expr, Macro, Node},
    error::Error,
    library::{Function, Library, Outcome, Overload},
    macros::{self, Expanded, Variables},
    ty::Type,
    value::Value,
};

const INSERT: &str = "cel.@mapInsert";

pub(crate) fn library() -> Library {
    let member =
        |name, arguments, expand: Expand| Macro { name, member: true, arguments: Some(arguments), expand };
    let macros = vec![
        member("all", 3, all),
        member("exists", 3, exists),
        member("existsOne", 3, exists_one),
        member("exists_one", 3, exists_one),
        member("transformList", 3, transform_list),
        member("transformList", 4, transform_list),
        member("transformMap", 3, transform_map),
        member("transformMap", 4, transform_map),
        member("transformMapEntry", 3, transform_map_entry),
        member("transformMapEntry", 4, transform_map_entry),
    ];
    let map = || Type::map(Type::Param("K"), Type::Param("V"));
    let insert = Function::new(
        INSERT,
        vec![
            Overload::global(
                "@mapInsert_map_key_value",
                vec![map(), Type::Param("K"), Type::Param("V")],
                map(),
                handled_by_evaluator,
            ),
            Overload::global("@mapInsert_map_map", vec![map(), map()], map(), handled_by_evaluator),
        ],
    );
    Library { functions: vec![insert], macros, ..Library::default() }
}

/// Never called: the evaluator inserts in place.
fn handled_by_evaluator<'a>(_: &[Value<'a>]) -> Outcome<'a> {
    Err(Error::no_such_overload())
}

fn all(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let by = Variables::pair(args)?;
    Ok(Some(macros::make_all(make, target, by, &args[2])))
}

fn exists(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let by = Variables::pair(args)?;
    Ok(Some(macros::make_exists(make, target, by, &args[2])))
}

fn exists_one(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let by = Variables::pair(args)?;
    Ok(Some(macros::make_exists_one(make, target, by, &args[2])))
}

/// The filter, where there is one, and the transformation.
fn parts(args: &[Expr]) -> (Option<&Expr>, &Expr) {
    if args.len() == 4 { (Some(&args[2]), &args[3]) } else { (None, &args[2]) }
}

fn transform_list(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let by = Variables::pair(args)?;
    let (keep, element) = parts(args);
    Ok(Some(macros::make_list(make, target, by, keep, element)))
}

fn transform_map(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let by = Variables::pair(args)?;
    let key = make.ident(by.first());
    Ok(Some(make_map(make, target, by, Some(key), args)))
}

fn transform_map_entry(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Expanded {
    let by = Variables::pair(args)?;
    Ok(Some(make_map(make, target, by, None, args)))
}

fn make_map(
    make: &mut Expander,
    target: Option<&Expr>,
    by: Variables,
    key: Option<Expr>,
    args: &[Expr],
) -> Expr {
    let (keep, transformed) = parts(args);
    let start = make.node(Node::Map(Vec::new()));
    let condition = make.literal(Value::Bool(true));
    let mut inserted = vec![make.ident(macros::ACCUMULATOR)];
    inserted.extend(key);
    inserted.push(transformed.clone());
    let insert = make.call(INSERT, inserted);
    let step = macros::choose(make, keep, insert);
    let result = make.ident(macros::ACCUMULATOR);
    macros::fold(make, target, by, [start, condition, step, result])
}
