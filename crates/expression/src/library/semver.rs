//! `semver('1.2.3')`: versions, compared by the rules of semantic versioning.

mod version;

use std::cmp::Ordering;

use super::{Function, Library, Outcome, Overload, charge};
use crate::{
    error::Error,
    ty::Type,
    value::{Opaque, Value},
};
use version::Version;

const SEMVER: Type = Type::Opaque("kubernetes.Semver");

impl Opaque for Version {
    fn ty(&self) -> Type {
        SEMVER
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        (other as &dyn std::any::Any).downcast_ref::<Version>().is_some_and(|other| self.cmp(other).is_eq())
    }
}

pub(crate) fn library() -> Library {
    let parsing = |id, more: &[Type], result, body| {
        let parameters = [&[Type::String], more].concat();
        Overload::global(id, parameters, result, body).costs(charge::walk).estimated(charge::walk_estimate)
    };
    let asking =
        |name, id, body| Function::new(name, vec![Overload::member(id, vec![SEMVER], Type::Int, body)]);
    let pair = |name, id, result, body| {
        Function::new(name, vec![Overload::member(id, vec![SEMVER, SEMVER], result, body)])
    };
    Library {
        functions: vec![
            Function::new(
                "semver",
                vec![
                    parsing("string_to_semver", &[], SEMVER, semver),
                    parsing("string_bool_to_semver", &[Type::Bool], SEMVER, semver),
                ],
            ),
            Function::new(
                "isSemver",
                vec![
                    parsing("is_semver_string", &[], Type::Bool, is_semver),
                    parsing("is_semver_string_bool", &[Type::Bool], Type::Bool, is_semver),
                ],
            ),
            asking("major", "semver_major", major),
            asking("minor", "semver_minor", minor),
            asking("patch", "semver_patch", patch),
            pair("isGreaterThan", "semver_is_greater_than", Type::Bool, is_greater),
            pair("isLessThan", "semver_is_less_than", Type::Bool, is_less),
            pair("compareTo", "semver_compare_to", Type::Int, compare_to),
        ],
        ..Library::default()
    }
}

/// The second argument enables lenient parsing.
fn read(args: &[Value<'_>]) -> Result<Version, Error> {
    let version = match args {
        [Value::String(text)] | [Value::String(text), Value::Bool(false)] => Version::parse(text),
        [Value::String(text), Value::Bool(true)] => Version::parse_tolerantly(text),
        _ => return Err(Error::no_such_overload()),
    };
    version.map_err(Error::new)
}

fn receiver<'v>(args: &'v [Value<'_>]) -> Result<&'v Version, Error> {
    args.first().and_then(Value::as_opaque).ok_or_else(Error::no_such_overload)
}

fn compare(args: &[Value<'_>]) -> Result<Ordering, Error> {
    let other = args.get(1).and_then(Value::as_opaque::<Version>).ok_or_else(Error::no_such_overload)?;
    Ok(receiver(args)?.cmp(other))
}

fn semver<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::opaque(read(args)?))
}

fn is_semver<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(read(args).is_ok()))
}

// Kubernetes: a number beyond the range of int wraps around.
fn major<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(receiver(args)?.major as i64))
}

fn minor<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(receiver(args)?.minor as i64))
}

fn patch<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(receiver(args)?.patch as i64))
}

fn is_greater<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(compare(args)?.is_gt()))
}

fn is_less<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(compare(args)?.is_lt()))
}

fn compare_to<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(compare(args)? as i64))
}
