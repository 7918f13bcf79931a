//! `cidr('10.0.0.0/8')` and its functions.

use super::{
    Argument, CallEstimate, Function, Library, Outcome, Overload,
    address::{Prefix, is_mapped, parse_prefix},
    charge,
    ip::{self, IP, Ip},
};
use crate::{
    cost::{Range, STRING_TRAVERSAL, scale},
    error::Error,
    ty::Type,
    value::{Opaque, Value},
};

const CIDR: Type = Type::Opaque("net.CIDR");
/// The bytes of an address: four or sixteen.
const ADDRESS_BYTES: Range = Range { min: 4, max: 16 };

#[derive(Debug)]
struct Cidr(Prefix);

impl Opaque for Cidr {
    fn ty(&self) -> Type {
        CIDR
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        (other as &dyn std::any::Any).downcast_ref::<Cidr>().is_some_and(|other| self.0 == other.0)
    }

    /// The bytes of the prefix.
    fn size(&self) -> Option<u64> {
        Some(u64::from(self.0.bits).div_ceil(8))
    }
}

pub(crate) fn library() -> Library {
    let parsing = |id, result, body| {
        Overload::global(id, vec![Type::String], result, body)
            .costs(charge::walk)
            .estimated(charge::walk_estimate)
    };
    let asking = |id, result, body| Overload::member(id, vec![CIDR], result, body);
    let holding = |id, other, body| Overload::member(id, vec![CIDR, other], Type::Bool, body);
    Library {
        types: vec![CIDR],
        functions: vec![
            Function::new("cidr", vec![parsing("string_to_cidr", CIDR, cidr)]),
            Function::new("isCIDR", vec![parsing("is_cidr", Type::Bool, is_cidr)]),
            Function::new(
                "containsIP",
                vec![
                    holding("cidr_contains_ip_string", Type::String, contains_ip)
                        .costs(contains_ip_text_cost)
                        .estimated(contains_ip_text_estimate),
                    holding("cidr_contains_ip_ip", IP, contains_ip)
                        .costs(contains_ip_cost)
                        .estimated(contains_ip_estimate),
                ],
            ),
            Function::new(
                "containsCIDR",
                vec![
                    holding("cidr_contains_cidr_string", Type::String, contains_cidr)
                        .costs(contains_cidr_text_cost)
                        .estimated(contains_cidr_text_estimate),
                    holding("cidr_contains_cidr", CIDR, contains_cidr)
                        .costs(contains_cidr_cost)
                        .estimated(contains_cidr_estimate),
                ],
            ),
            Function::new("ip", vec![asking("cidr_ip", IP, address)]),
            Function::new("prefixLength", vec![asking("cidr_prefix_length", Type::Int, prefix_length)]),
            Function::new("masked", vec![asking("cidr_masked", CIDR, masked)]),
            Function::new(
                "string",
                vec![Overload::global("cidr_to_string", vec![CIDR], Type::String, string)],
            ),
        ],
        ..Library::default()
    }
}

fn read(text: &str) -> Result<Prefix, Error> {
    // Kubernetes: these words come twice if the text is not a prefix at all.
    const PROBLEM: &str = "network address parse error during conversion from string";
    match parse_prefix(text) {
        Err(problem) => Err(Error::new(format!("{PROBLEM}: {PROBLEM}: {problem}"))),
        Ok(prefix) if is_mapped(prefix.address) => {
            let quoted = api::go::quote(text);
            Err(Error::new(format!("{PROBLEM}: IPv4-mapped IPv6 address {quoted} is not allowed")))
        }
        Ok(prefix) => Ok(prefix),
    }
}

fn prefix(value: Option<&Value<'_>>) -> Result<Prefix, Error> {
    let cidr = value.and_then(Value::as_opaque::<Cidr>);
    cidr.map(|cidr| cidr.0).ok_or_else(Error::no_such_overload)
}

fn cidr<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    Ok(Value::opaque(Cidr(read(text)?)))
}

fn is_cidr<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    Ok(Value::Bool(read(text).is_ok()))
}

fn contains_ip<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let network = prefix(args.first())?;
    let address = match args.get(1) {
        // Kubernetes: unlike for a network, the error in the text is not reported.
        Some(Value::String(text)) => ip::read(text).map_err(|_| Error::no_such_overload())?,
        Some(other) => other.as_opaque::<Ip>().ok_or_else(Error::no_such_overload)?.0,
        None => return Err(Error::no_such_overload()),
    };
    Ok(Value::Bool(network.contains(address)))
}

fn contains_cidr<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let network = prefix(args.first())?;
    let other = match args.get(1) {
        Some(Value::String(text)) => read(text)?,
        other => prefix(other)?,
    };
    Ok(Value::Bool(network.contains_prefix(other)))
}

fn address<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::opaque(Ip(prefix(args.first())?.address)))
}

fn prefix_length<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(i64::from(prefix(args.first())?.bits)))
}

fn masked<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::opaque(Cidr(prefix(args.first())?.masked())))
}

fn string<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::string(prefix(args.first())?.to_string()))
}

/// The bytes of the prefix are compared with as many of the address.
fn contains_ip_cost(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    scale(2 * charge::size(args, 0), STRING_TRAVERSAL)
}

/// Plus parsing a text.
fn contains_ip_text_cost(args: &[Value<'_>], result: &Value<'_>) -> u64 {
    contains_ip_cost(args, result) + scale(charge::size(args, 1), STRING_TRAVERSAL)
}

/// Also masks the network and compares the lengths.
fn contains_cidr_cost(args: &[Value<'_>], result: &Value<'_>) -> u64 {
    contains_ip_cost(args, result) + scale(charge::size(args, 0), STRING_TRAVERSAL) + 1
}

fn contains_cidr_text_cost(args: &[Value<'_>], result: &Value<'_>) -> u64 {
    contains_cidr_cost(args, result) + scale(charge::size(args, 1), STRING_TRAVERSAL)
}

fn contains_ip_estimate(_: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::of(ADDRESS_BYTES.plus(ADDRESS_BYTES).scaled(STRING_TRAVERSAL)))
}

fn contains_ip_text_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    reading(contains_ip_estimate(args)?, args)
}

fn contains_cidr_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    let compare = contains_ip_estimate(args)?.cost;
    Some(CallEstimate::of(compare.plus(ADDRESS_BYTES.scaled(STRING_TRAVERSAL)).plus(Range::ONE)))
}

fn contains_cidr_text_estimate(args: &[Argument<'_>]) -> Option<CallEstimate> {
    reading(contains_cidr_estimate(args)?, args)
}

/// Adds the cost of parsing a text.
fn reading(estimate: CallEstimate, args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(CallEstimate::of(estimate.cost.plus(args.get(1)?.size.scaled(STRING_TRAVERSAL))))
}
