//! Tokens → tree, with macros expanded on the way.

use crate::{
    ast::{Entry, Expander, Expr, Macro, Node},
    issues::{Found, Issues},
    lexer::{self, Kind, Token},
    literal,
    value::Value,
};
use depth::{Depth, Rule};
use refusal::Opening;
use std::sync::Arc;

mod depth;
mod primary;
mod refusal;

/// Kubernetes: cel-go rejects longer expressions.
const MAX_CODE_POINTS: usize = 100_000;

/// Reserved words: not allowed as variables, but as fields.
pub(crate) const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A tree and how many ids its nodes use.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) root: Expr,
    pub(crate) ids: u32,
}

/// A syntax error was reported; parsing stops.
#[derive(Debug)]
struct Stop;

type Read<T> = Result<T, Stop>;

struct Parser<'p, 's> {
    text: &'p [char],
    tokens: Vec<Token>,
    at: usize,
    macros: &'p [Macro],
    made: Expander,
    depth: Depth,
    /// Brackets around the current token.
    open: u32,
    /// The token after the last opening bracket, and the tokens allowed there.
    opened: (usize, Opening),
    found: &'p mut Found<'s>,
}

pub(crate) fn parse(source: &str, macros: &[Macro]) -> Result<Parsed, Issues> {
    let text: Vec<char> = source.chars().collect();
    let mut found = Found::new(source);
    if text.len() > MAX_CODE_POINTS {
        found.nowhere(format!(
            "expression code point size exceeds limit: size: {}, limit {MAX_CODE_POINTS}",
            text.len()
        ));
        return Err(found.finish().expect_err("one mistake was found"));
    }
    let tokens = lexer::tokens(&text, &mut found);
    let made = Expander { next: 0, offset: 0 };
    let opened = (usize::MAX, Opening::Nothing);
    let depth = Depth::default();
    let mut parser =
        Parser { text: &text, tokens, at: 0, macros, made, depth, open: 0, opened, found: &mut found };
    let root = parser.start();
    let ids = parser.made.next;
    match root {
        Ok(root) => found.finish().map(|()| Parsed { root, ids }),
        Err(Stop) => Err(found.finish().expect_err("a parser stops only after it reported why")),
    }
}

impl Parser<'_, '_> {
    fn start(&mut self) -> Read<Expr> {
        let root = self.expr()?;
        self.expect_end()?;
        Ok(root)
    }

    fn expr(&mut self) -> Read<Expr> {
        self.enter(Rule::Expr)?;
        let condition = self.binary(0)?;
        let result = if let Some(mark) = self.take("?") {
            let yes = self.binary(0)?;
            self.expect(":")?;
            let no = self.expr()?;
            self.call_or_macro(mark, "_?_:_", None, vec![condition, yes, no])
        } else {
            condition
        };
        self.depth.leave(Rule::Expr, 1);
        Ok(result)
    }

    /// Operators from this level up, with their operands. One function for all levels, so that each
    /// parenthesis costs few stack frames.
    fn binary(&mut self, lowest: u8) -> Read<Expr> {
        let mut entered = [u32::from(lowest <= RELATION), 1];
        if lowest <= RELATION {
            self.enter(Rule::Relation)?;
        }
        self.enter(Rule::Calc)?;
        let mut left = self.unary()?;
        while let Some((function, level)) = operator(self.peek().kind).filter(|(_, level)| *level >= lowest) {
            let mark = self.next();
            if level < RELATION {
                left = self.chain(mark, function, level, left)?;
                continue;
            }
            let rule = if level == RELATION { Rule::Relation } else { Rule::Calc };
            self.enter(rule)?;
            entered[usize::from(level > RELATION)] += 1;
            let right = self.binary(level + 1)?;
            left = self.call_or_macro(mark, function, None, vec![left, right]);
        }
        self.depth.leave(Rule::Relation, entered[0]);
        self.depth.leave(Rule::Calc, entered[1]);
        Ok(left)
    }

    /// `a && b && …` and `a || b || …`: one call with all the terms, so that long chains stay shallow.
    fn chain(&mut self, mark: Token, function: &'static str, level: u8, first: Expr) -> Read<Expr> {
        let mut terms = vec![first, self.binary(level + 1)?];
        while self.peek().kind == mark.kind {
            self.next();
            terms.push(self.binary(level + 1)?);
        }
        Ok(self.made_at(mark.start, Node::Call { function: function.into(), target: None, args: terms }))
    }

    fn unary(&mut self) -> Read<Expr> {
        for (symbol, function) in [("!", "!_"), ("-", "-_")] {
            let first = self.peek();
            if first.kind != Kind::Symbol(symbol) || (symbol == "-" && self.is_signed_number()) {
                continue;
            }
            let mut count = 0;
            while self.take(symbol).is_some() {
                count += 1;
            }
            if !refusal::starts_expression(self.peek().kind) || self.peek().kind == Kind::Symbol("!") {
                return self.refuse_operand(symbol);
            }
            let operand = self.member()?;
            if count % 2 == 0 {
                return Ok(operand);
            }
            return Ok(self.call_or_macro(first, function, None, vec![operand]));
        }
        self.member()
    }

    fn is_signed_number(&self) -> bool {
        let next = self.tokens.get(self.at + 1).map(|token| token.kind);
        matches!(next, Some(Kind::Int | Kind::Float))
    }

    /// A primary with `.field`, `.?field`, `.call(…)`, `[index]` and `[?index]` after it.
    fn member(&mut self) -> Read<Expr> {
        self.enter(Rule::Member)?;
        let mut operand = self.primary()?;
        let mut entered = 1;
        loop {
            if let Some(dot) = self.take(".") {
                operand = self.after_dot(dot, operand)?;
            } else if let Some(bracket) = self.take("[") {
                self.open(Opening::Index);
                let optional = self.take("?").is_some();
                let index = self.expr()?;
                self.close("]")?;
                let function = if optional { "_[?_]" } else { "_[_]" };
                operand = self.call_or_macro(bracket, function, None, vec![operand, index]);
            } else {
                break;
            }
            self.enter(Rule::Member)?;
            entered += 1;
        }
        self.depth.leave(Rule::Member, entered);
        Ok(operand)
    }

    fn after_dot(&mut self, dot: Token, operand: Expr) -> Read<Expr> {
        let optional = self.take("?").is_some();
        let (name, place) = self.field_name(optional)?;
        if optional {
            let field = self.made_at(place.start, Node::Literal(Value::string(name)));
            let args = vec![operand, field];
            return Ok(self.made_at(dot.start, Node::Call { function: "_?._".into(), target: None, args }));
        }
        if place.kind == Kind::Identifier && self.peek().kind == Kind::Symbol("(") {
            let open = self.next();
            let args = self.arguments()?;
            return Ok(self.call_or_macro(open, &name, Some(operand), args));
        }
        let node = Node::Select { operand: Box::new(operand), field: name.into(), test: false };
        Ok(self.made_at(dot.start, node))
    }

    fn field_name(&mut self, optional: bool) -> Read<(String, Token)> {
        let token = self.peek();
        match token.kind {
            Kind::Identifier => {
                self.at += 1;
                Ok((self.text_of(token), token))
            }
            Kind::Escaped => {
                self.at += 1;
                // Kubernetes: the base environment does not turn this syntax on.
                self.found.at(token.start, "unsupported syntax: '`'");
                Ok((String::new(), token))
            }
            _ => Err(self.refuse_field_name(optional)),
        }
    }

    /// `a, b)` after the opening parenthesis.
    fn arguments(&mut self) -> Read<Vec<Expr>> {
        let mut args = Vec::new();
        self.open(Opening::Arguments);
        while self.peek().kind != Kind::Symbol(")") || !args.is_empty() {
            args.push(self.expr()?);
            if self.take(",").is_none() {
                break;
            }
        }
        self.close(")")?;
        Ok(args)
    }

    fn call_or_macro(&mut self, place: Token, function: &str, target: Option<Expr>, args: Vec<Expr>) -> Expr {
        let fits = |known: &&Macro| {
            known.name == function
                && known.member == target.is_some()
                && known.arguments.is_none_or(|count| count == args.len())
        };
        if let Some(known) = self.macros.iter().find(fits) {
            self.made.offset = place.start;
            match (known.expand)(&mut self.made, target.as_ref(), &args) {
                Ok(Some(expr)) => return expr,
                Ok(None) => {}
                Err(error) => {
                    self.found.at(error.offset, error.message);
                    return self.placeholder(place.start);
                }
            }
        }
        let target = target.map(Box::new);
        self.made_at(place.start, Node::Call { function: function.into(), target, args })
    }

    fn open(&mut self, opening: Opening) {
        self.open += 1;
        self.opened = (self.at, opening);
    }

    fn close(&mut self, symbol: &'static str) -> Read<()> {
        self.expect(symbol)?;
        self.open -= 1;
        Ok(())
    }

    fn made_at(&mut self, offset: u32, node: Node) -> Expr {
        self.made.offset = offset;
        self.made.node(node)
    }

    /// A placeholder where an error was reported: it never leaves the parser.
    fn placeholder(&mut self, offset: u32) -> Expr {
        self.made_at(offset, Node::Literal(Value::Null))
    }

    fn peek(&self) -> Token {
        self.tokens[self.at]
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at];
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn take(&mut self, symbol: &'static str) -> Option<Token> {
        (self.peek().kind == Kind::Symbol(symbol)).then(|| self.next())
    }

    fn text_of(&self, token: Token) -> String {
        self.text[token.start as usize..token.end as usize].iter().collect()
    }

    fn enter(&mut self, rule: Rule) -> Read<()> {
        self.depth.enter(rule).map_err(|message| {
            self.found.nowhere(message);
            Stop
        })
    }
}

/// The level of `==` and its kin, between logic and arithmetic.
const RELATION: u8 = 2;

/// The function of a binary operator, and how strongly it binds.
fn operator(kind: Kind) -> Option<(&'static str, u8)> {
    let symbol = match kind {
        Kind::In => return Some(("@in", RELATION)),
        Kind::Symbol(symbol) => symbol,
        _ => return None,
    };
    Some(match symbol {
        "||" => ("_||_", 0),
        "&&" => ("_&&_", 1),
        "<" => ("_<_", RELATION),
        "<=" => ("_<=_", RELATION),
        ">" => ("_>_", RELATION),
        ">=" => ("_>=_", RELATION),
        "==" => ("_==_", RELATION),
        "!=" => ("_!=_", RELATION),
        "+" => ("_+_", 3),
        "-" => ("_-_", 3),
        "*" => ("_*_", 4),
        "/" => ("_/_", 4),
        "%" => ("_%_", 4),
        _ => return None,
    })
}
