//! `quantity('500m')`: amounts with units, compared and added.

use std::cmp::Ordering;

use api::quantity::{Quantity, QuantityFormat};

use super::{Function, Library, Outcome, Overload, charge};
use crate::{
    error::Error,
    ty::Type,
    value::{Opaque, Value},
};

const QUANTITY: Type = Type::Opaque("kubernetes.Quantity");

#[derive(Debug)]
struct Amount(Quantity);

impl Opaque for Amount {
    fn ty(&self) -> Type {
        QUANTITY
    }

    fn equals(&self, other: &dyn Opaque) -> bool {
        (other as &dyn std::any::Any).downcast_ref::<Amount>().is_some_and(|other| self.0 == other.0)
    }
}

pub(crate) fn library() -> Library {
    let parsing = |id, result, body| {
        Overload::global(id, vec![Type::String], result, body)
            .costs(charge::walk)
            .estimated(charge::walk_estimate)
    };
    let asking = |id, result, body| Overload::member(id, vec![QUANTITY], result, body);
    let pair = |id, other, result, body| Overload::member(id, vec![QUANTITY, other], result, body);
    Library {
        functions: vec![
            Function::new("quantity", vec![parsing("string_to_quantity", QUANTITY, quantity)]),
            Function::new("isQuantity", vec![parsing("is_quantity_string", Type::Bool, is_quantity)]),
            // Kubernetes: `sign` is a function, not a member.
            Function::new("sign", vec![Overload::global("quantity_sign", vec![QUANTITY], Type::Int, sign)]),
            Function::new("asInteger", vec![asking("quantity_get_int", Type::Int, as_integer)]),
            Function::new("isInteger", vec![asking("quantity_is_integer", Type::Bool, is_integer)]),
            Function::new(
                "asApproximateFloat",
                vec![asking("quantity_get_float", Type::Double, approximate)],
            ),
            Function::new(
                "isGreaterThan",
                vec![pair("quantity_is_greater_than", QUANTITY, Type::Bool, is_greater)],
            ),
            Function::new("isLessThan", vec![pair("quantity_is_less_than", QUANTITY, Type::Bool, is_less)]),
            Function::new("compareTo", vec![pair("quantity_compare_to", QUANTITY, Type::Int, compare_to)]),
            Function::new(
                "add",
                vec![
                    pair("quantity_add", QUANTITY, QUANTITY, add),
                    pair("quantity_add_int", Type::Int, QUANTITY, add),
                ],
            ),
            Function::new(
                "sub",
                vec![
                    pair("quantity_sub", QUANTITY, QUANTITY, sub),
                    pair("quantity_sub_int", Type::Int, QUANTITY, sub),
                ],
            ),
        ],
        ..Library::default()
    }
}

fn read(args: &[Value<'_>]) -> Result<Quantity, Error> {
    let [Value::String(text)] = args else { return Err(Error::no_such_overload()) };
    text.parse().map_err(|error: api::quantity::ParseError| Error::new(error.to_string()))
}

fn receiver<'v>(args: &'v [Value<'_>]) -> Result<&'v Quantity, Error> {
    let amount = args.first().and_then(Value::as_opaque::<Amount>);
    amount.map(|amount| &amount.0).ok_or_else(Error::no_such_overload)
}

/// The other quantity, which may be a plain number.
fn operand(args: &[Value<'_>]) -> Result<Quantity, Error> {
    match args.get(1) {
        Some(Value::Int(number)) => Ok(Quantity::new(*number, QuantityFormat::DecimalExponent)),
        Some(other) => {
            other.as_opaque::<Amount>().map(|amount| amount.0.clone()).ok_or_else(Error::no_such_overload)
        }
        None => Err(Error::no_such_overload()),
    }
}

fn quantity<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::opaque(Amount(read(args)?)))
}

fn is_quantity<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(read(args).is_ok()))
}

fn sign<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Int(receiver(args)?.sign() as i64))
}

fn as_integer<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let integer = receiver(args)?.as_i64();
    integer.map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer"))
}

fn is_integer<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(receiver(args)?.as_i64().is_some()))
}

fn approximate<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Double(receiver(args)?.approximate()))
}

fn compare(args: &[Value<'_>]) -> Result<Ordering, Error> {
    Ok(receiver(args)?.cmp(&operand(args)?))
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

fn add<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let mut sum = receiver(args)?.clone();
    sum += &operand(args)?;
    Ok(Value::opaque(Amount(sum)))
}

fn sub<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let mut difference = receiver(args)?.clone();
    difference -= &operand(args)?;
    Ok(Value::opaque(Amount(difference)))
}
