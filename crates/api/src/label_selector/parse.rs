//! The text of a selector in, requirements out, with the errors of the real parser.

use std::collections::BTreeSet;
use std::str::FromStr;

use super::{Operator, Requirement, Selector, key_problem};
use crate::field::Path;

/// Why a text, or an object form, is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSelector(pub(super) String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Close,
    Comma,
    Not,
    Operator(Operator),
    /// `in` and `notin` are words too, where no operator can stand.
    Word(&'a str),
    Open,
}

/// The tokens that are still to come; there is always one more `End`.
struct Tokens<'a>(&'a str);

impl FromStr for Selector {
    type Err = BadSelector;

    fn from_str(text: &str) -> Result<Self, BadSelector> {
        let mut tokens = Tokens(text);
        let mut requirements = Vec::new();
        match tokens.peek() {
            Token::End => return Ok(Selector::everything()),
            Token::Word(_) | Token::Not => {}
            other => return Err(other.unexpected(", expected: !, identifier, or 'end of string'")),
        }
        loop {
            let requirement = tokens.requirement();
            requirements
                .push(requirement.map_err(|bad| BadSelector(format!("unable to parse requirement: {bad}")))?);
            match tokens.next() {
                Token::End => return Ok(Selector::new(requirements)),
                Token::Comma => {}
                other => return Err(other.unexpected(", expected: ',' or 'end of string'")),
            }
            match tokens.peek() {
                Token::Word(_) | Token::Not => {}
                other => return Err(other.unexpected(", expected: identifier after ','")),
            }
        }
    }
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Token::End => "",
            Token::Close => ")",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Open => "(",
            Token::Operator(Operator::GreaterThan) => ">",
            Token::Operator(Operator::LessThan) => "<",
            Token::Operator(operator) => operator.as_str(),
            Token::Word(word) => word,
        }
    }

    fn unexpected(&self, rest: &str) -> BadSelector {
        BadSelector(format!("found '{}'{rest}", self.text()))
    }
}

impl<'a> Tokens<'a> {
    /// The next token where a key or a value is expected: every keyword is a word.
    fn next(&mut self) -> Token<'a> {
        let text = self.0.trim_start_matches([' ', '\t', '\r', '\n']);
        let (token, length) = match text.as_bytes() {
            // Kubernetes: a zero byte ends the text.
            [] | [0, ..] => (Token::End, 0),
            [b')', ..] => (Token::Close, 1),
            [b'(', ..] => (Token::Open, 1),
            [b',', ..] => (Token::Comma, 1),
            [b'=', b'=', ..] => (Token::Operator(Operator::DoubleEquals), 2),
            [b'=', ..] => (Token::Operator(Operator::Equals), 1),
            [b'!', b'=', ..] => (Token::Operator(Operator::NotEquals), 2),
            [b'!', ..] => (Token::Not, 1),
            [b'>', ..] => (Token::Operator(Operator::GreaterThan), 1),
            [b'<', ..] => (Token::Operator(Operator::LessThan), 1),
            _ => {
                let is_end = |c| {
                    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<' | ' ' | '\t' | '\r' | '\n' | '\0')
                };
                let length = text.find(is_end).unwrap_or(text.len());
                (Token::Word(&text[..length]), length)
            }
        };
        let rest = &text[length..];
        // Behind a word the zero byte is only a gap.
        let is_word = matches!(token, Token::Word(_));
        self.0 = rest.strip_prefix('\0').filter(|_| is_word).unwrap_or(rest);
        token
    }

    fn peek(&self) -> Token<'a> {
        Tokens(self.0).next()
    }

    fn requirement(&mut self) -> Result<Requirement, BadSelector> {
        let negated = self.peek() == Token::Not;
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(other.unexpected(", expected: identifier")),
        };
        if let Some(problem) = key_problem(&Path::ROOT, key) {
            return Err(BadSelector(problem.to_string()));
        }
        let (operator, values) = match self.peek() {
            _ if negated => (Operator::DoesNotExist, BTreeSet::new()),
            Token::End | Token::Comma => (Operator::Exists, BTreeSet::new()),
            _ => match self.operator()? {
                operator @ (Operator::In | Operator::NotIn) => (operator, self.values()?),
                operator => (operator, self.exact_value()?),
            },
        };
        let values = values.into_iter().map(str::to_owned).collect();
        Requirement::new(&Path::ROOT, key, operator, values).map_err(|errors| BadSelector(errors.to_string()))
    }

    fn operator(&mut self) -> Result<Operator, BadSelector> {
        match self.next() {
            Token::Word("in") => Ok(Operator::In),
            Token::Word("notin") => Ok(Operator::NotIn),
            Token::Operator(operator) => Ok(operator),
            other => Err(other.unexpected(", expected: in, notin, =, ==, !=, gt, lt")),
        }
    }

    /// `(a,b)`, where values may be empty: `()`, `(,a)`.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, BadSelector> {
        match self.next() {
            Token::Open => {}
            other => return Err(other.unexpected(" expected: '('")),
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            Token::Word(_) | Token::Comma => {}
            Token::Close => {
                self.next();
                return Ok(BTreeSet::from([""]));
            }
            other => return Err(other.unexpected(", expected: ',', ')' or identifier")),
        }
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Comma | Token::Close => {}
                        other => return Err(other.unexpected(", expected: ',' or ')'")),
                    }
                }
                Token::Comma => {
                    if values.is_empty() || matches!(self.peek(), Token::Close | Token::Comma) {
                        values.insert("");
                    }
                }
                other => return Err(other.unexpected(", expected: ',', or identifier")),
            }
            if self.peek() == Token::Close {
                self.next();
                return Ok(values);
            }
        }
    }

    /// A value, or the lack of one, which is the empty value.
    fn exact_value(&mut self) -> Result<BTreeSet<&'a str>, BadSelector> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(BTreeSet::from([""]));
        }
        match self.next() {
            Token::Word(value) => Ok(BTreeSet::from([value])),
            other => Err(other.unexpected(", expected: identifier")),
        }
    }
}
