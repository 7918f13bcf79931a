//! `format.dns1123Label().validate(name)`: validation by named formats.

mod shape;

use api::name::{Format, NameRule};

use super::{Argument, Body, CallEstimate, Function, Library, Outcome, Overload, charge, url};
use crate::{
    cost::{REGEX_LENGTH, STRING_TRAVERSAL},
    error::Error,
    ty::Type,
    value::{Opaque, Value},
};

const FORMAT: Type = Type::Opaque("kubernetes.NamedFormat");

#[derive(Clone, Copy, Debug)]
struct NamedFormat {
    /// The function `format.<function>` returns this format.
    function: &'static str,
    /// The errors in a text; empty if it is valid.
    problems: fn(&str) -> Vec<String>,
    /// The length of the pattern, real or assumed: the cost depends on it.
    pattern_length: u64,
    give: Body,
}

const FORMATS: [NamedFormat; 13] = [
    named("format.dns1123Label", |text| NameRule::DnsLabel.problems(text), 30, give::<0>),
    named("format.dns1123Subdomain", |text| NameRule::DnsSubdomain.problems(text), 60, give::<1>),
    named("format.dns1035Label", |text| NameRule::Dns1035Label.problems(text), 30, give::<2>),
    named("format.qualifiedName", |text| Format::QualifiedName.problems(text), 60, give::<3>),
    named("format.dns1123LabelPrefix", |text| NameRule::DnsLabel.prefix_problems(text), 30, give::<4>),
    named(
        "format.dns1123SubdomainPrefix",
        |text| NameRule::DnsSubdomain.prefix_problems(text),
        60,
        give::<5>,
    ),
    named("format.dns1035LabelPrefix", |text| NameRule::Dns1035Label.prefix_problems(text), 30, give::<6>),
    named("format.labelValue", |text| Format::LabelValue.problems(text), 40, give::<7>),
    named("format.uri", |text| url::request_uri_problem(text).into_iter().collect(), 1103, give::<8>),
    named(
        "format.uuid",
        |text| unless(shape::is_uuid(text), "does not match the UUID format"),
        70,
        give::<9>,
    ),
    named("format.byte", |text| unless(shape::is_base64(text), "invalid base64"), 84, give::<10>),
    named("format.date", |text| unless(api::time::is_date(text), "invalid date"), 71, give::<11>),
    named(
        "format.datetime",
        |text| unless(api::time::is_date_time(text), "invalid datetime"),
        71,
        give::<12>,
    ),
];

const fn named(
    function: &'static str,
    problems: fn(&str) -> Vec<String>,
    pattern_length: u64,
    give: Body,
) -> NamedFormat {
    NamedFormat { function, problems, pattern_length, give }
}

fn unless(fits: bool, problem: &str) -> Vec<String> {
    if fits { Vec::new() } else { vec![problem.to_owned()] }
}

impl Opaque for NamedFormat {
    fn ty(&self) -> Type {
        FORMAT
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        let other = (other as &dyn std::any::Any).downcast_ref::<NamedFormat>();
        other.is_some_and(|other| self.function == other.function)
    }
}

pub(crate) fn library() -> Library {
    let problems = Type::optional(Type::list(Type::String));
    let validating = Overload::member("format-validate", vec![FORMAT, Type::String], problems, validate);
    let finding = Overload::global("format-named", vec![Type::String], Type::optional(FORMAT), find);
    let mut functions = vec![
        Function::new("validate", vec![validating.costs(cost).estimated(estimate)]),
        Function::new("format.named", vec![finding]),
    ];
    functions.extend(FORMATS.map(|format| {
        let give = Overload::global(format.function, Vec::new(), FORMAT, format.give);
        Function::new(format.function, vec![give])
    }));
    Library { functions, ..Library::default() }
}

fn give<'a, const INDEX: usize>(_: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::opaque(FORMATS[INDEX]))
}

fn find<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(name)] = args else { return Err(Error::no_such_overload()) };
    let found = FORMATS.iter().find(|format| format.function.strip_prefix("format.") == Some(name));
    Ok(found.map_or(Value::Optional(None), |format| Value::some(Value::opaque(*format))))
}

fn validate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let format =
        args.first().and_then(Value::as_opaque::<NamedFormat>).ok_or_else(Error::no_such_overload)?;
    let text = args.get(1).and_then(Value::as_str).ok_or_else(Error::no_such_overload)?;
    let problems: Vec<_> = (format.problems)(text).into_iter().map(Value::string).collect();
    Ok(if problems.is_empty() { Value::Optional(None) } else { Value::some(Value::list(problems)) })
}

fn cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    let format = args.first().and_then(Value::as_opaque::<NamedFormat>);
    charge::matching(charge::size(args, 1), format.map_or(0, |format| format.pattern_length))
}

/// The assumed longest pattern: the estimate for every validation.
const LONGEST_PATTERN: f64 = 128.0;

fn estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let walk = args.get(1)?.size.scaled(STRING_TRAVERSAL);
    Some(CallEstimate::of(walk.scaled(LONGEST_PATTERN * REGEX_LENGTH)))
}
