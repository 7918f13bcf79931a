//! `cel.bind(name, value, expression)`: names a value inside an expression. Device selectors have it.

use crate::{
    ast::{Expander, Expr, Fold, Macro, MacroError, Node},
    library::Library,
    value::Value,
};

const UNUSED: &str = "#unused";

pub fn library() -> Library {
    let bind = Macro { name: "bind", member: true, arguments: Some(3), expand: bind };
    Library { macros: vec![bind], ..Library::default() }
}

/// A comprehension over an empty list, whose accumulator is the name.
fn bind(make: &mut Expander, target: Option<&Expr>, args: &[Expr]) -> Result<Option<Expr>, MacroError> {
    match target.map(|target| &target.node) {
        Some(Node::Ident(namespace)) if &**namespace == "cel" => {}
        _ => return Ok(None),
    }
    let Node::Ident(name) = &args[0].node else {
        return Err(MacroError::at(&args[0], "cel.bind() variable names must be simple identifiers"));
    };
    let range = make.node(Node::List { items: Vec::new(), optional: Vec::new() });
    let condition = make.literal(Value::Bool(false));
    let step = make.ident(name);
    Ok(Some(make.node(Node::Fold(Box::new(Fold {
        range,
        variable: UNUSED.into(),
        second: None,
        accumulator: name.clone(),
        start: args[1].clone(),
        condition,
        step,
        result: args[2].clone(),
    })))))
}
