//! The functions of the language itself.

use super::{Function, Library};
use crate::ty::Type;

mod arithmetic;
mod comparison;
mod containers;
mod conversion;
mod logic;
mod text;
mod time;

const A: Type = Type::Param("A");
const B: Type = Type::Param("B");

pub(crate) fn library() -> Library {
    let mut functions: Vec<Function> = Vec::new();
    functions.extend(logic::functions());
    functions.extend(arithmetic::functions());
    functions.extend(comparison::functions());
    functions.extend(containers::functions());
    functions.extend(conversion::functions());
    functions.extend(text::functions());
    functions.extend(time::functions());
    let types = vec![
        Type::Bool,
        Type::Bytes,
        Type::Double,
        Type::Duration,
        Type::Int,
        Type::list(Type::Dyn),
        Type::map(Type::Dyn, Type::Dyn),
        Type::Null,
        Type::String,
        Type::Timestamp,
        Type::type_of(Type::Error),
        Type::Uint,
    ];
    Library { functions, types, ..Library::default() }
}
