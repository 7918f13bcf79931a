//! Decodes single values: each scalar type in, its canonical form out.

use api::quantity::Quantity;
use serde_json::{Number, Value};

use super::scanner::{Syntax, Token};
use super::walk::Walker;
use crate::base64;
use crate::number::double;
use crate::types::Node;
use api::time::{Instant, Precision};

impl Walker<'_, '_> {
    /// Reads a scalar for a node; reports a mismatch where the JSON has an object or list.
    pub(super) fn scalar(&mut self, node: &Node, token: Token, slot: &mut Value) -> Syntax<()> {
        match (node, token) {
            (Node::String, Token::String) => *slot = Value::String(self.scanner.string()?.into_owned()),
            (Node::Bool, Token::True) => {
                self.scanner.literal("true")?;
                *slot = Value::Bool(true);
            }
            (Node::Bool, Token::False) => {
                self.scanner.literal("false")?;
                *slot = Value::Bool(false);
            }
            (Node::Int32, Token::Number) => {
                self.integer(node, i64::from(i32::MIN), i64::from(i32::MAX), slot)?
            }
            (Node::Int64, Token::Number) => self.integer(node, i64::MIN, i64::MAX, slot)?,
            (Node::Double, Token::Number) => self.double(slot)?,
            (Node::Bytes, Token::String) => self.base64(slot)?,
            (Node::Bytes, Token::Array) => self.byte_list(slot)?,
            (Node::Time, _) => self.time(Precision::Seconds, token, slot)?,
            (Node::MicroTime, _) => self.time(Precision::Micros, token, slot)?,
            (Node::Quantity, _) => self.quantity(slot)?,
            (Node::IntOrString, _) => self.int_or_string(token, slot)?,
            _ => self.mismatch(node, token)?,
        }
        Ok(())
    }

    /// A scalar without a type: an integer stays one if it fits.
    pub(super) fn any_scalar(&mut self, token: Token) -> Syntax<Value> {
        Ok(match token {
            Token::String => Value::String(self.scanner.string()?.into_owned()),
            Token::True => {
                self.scanner.literal("true")?;
                Value::Bool(true)
            }
            Token::False => {
                self.scanner.literal("false")?;
                Value::Bool(false)
            }
            Token::Number => {
                let text = self.scanner.number()?;
                text.parse::<i64>().map(Value::from).unwrap_or_else(|_| self.float(text))
            }
            _ => {
                self.scanner.literal("null")?;
                Value::Null
            }
        })
    }

    fn integer(&mut self, node: &Node, least: i64, most: i64, slot: &mut Value) -> Syntax<()> {
        let text = self.scanner.number()?;
        match text.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => *slot = Value::from(number),
            _ => self.wrong_number(text, &self.trail.type_name(self.types, node)),
        }
        Ok(())
    }

    fn double(&mut self, slot: &mut Value) -> Syntax<()> {
        let text = self.scanner.number()?;
        *slot = self.float(text).as_f64().map_or(Value::Null, double);
        Ok(())
    }

    fn float(&mut self, text: &str) -> Value {
        match text.parse().ok().and_then(Number::from_f64) {
            Some(number) => Value::Number(number),
            None => {
                self.wrong_number(text, "float64");
                Value::Null
            }
        }
    }

    fn base64(&mut self, slot: &mut Value) -> Syntax<()> {
        let text = self.scanner.string()?;
        if base64::is_canonical(text.as_bytes()) {
            *slot = Value::String(text.into_owned());
            return Ok(());
        }
        match base64::decode(text.as_bytes()) {
            Ok(bytes) => *slot = Value::String(base64::encode(&bytes)),
            Err(corrupt) => self.faults.mismatch(|| corrupt.to_string()),
        }
        Ok(())
    }

    /// Kubernetes: Go also reads bytes from a list of small numbers.
    fn byte_list(&mut self, slot: &mut Value) -> Syntax<()> {
        let mut bytes = Vec::new();
        let mut more = self.scanner.open(Token::Array)?;
        while more {
            match self.scanner.token()? {
                Token::Number => {
                    let text = self.scanner.number()?;
                    match text.parse() {
                        Ok(byte) => bytes.push(byte),
                        Err(_) => self.wrong_number(text, "uint8"),
                    }
                }
                Token::Null => {
                    self.scanner.literal("null")?;
                    bytes.push(0);
                }
                token => {
                    let (trail, types) = (&self.trail, self.types);
                    self.faults.mismatch(|| trail.type_error(types, token.described(), "uint8"));
                    self.skip()?;
                }
            }
            more = self.scanner.next_item()?;
        }
        *slot = Value::String(base64::encode(&bytes));
        Ok(())
    }

    fn time(&mut self, precision: Precision, token: Token, slot: &mut Value) -> Syntax<()> {
        if token != Token::String {
            return self.refuse_for(token, "string");
        }
        let text = self.scanner.string()?;
        match Instant::parse(&text, precision) {
            Ok(zero) if zero.is_zero() => *slot = Value::Null,
            Ok(instant) => *slot = Value::String(instant.format(precision)),
            Err(bad) => self.faults.refuse(bad.0),
        }
        Ok(())
    }

    /// Kubernetes: any literal is read as text, without its quotes and with its escapes.
    fn quantity(&mut self, slot: &mut Value) -> Syntax<()> {
        let start = self.scanner.position();
        self.skip()?;
        let raw = String::from_utf8_lossy(self.scanner.since(start));
        let text = raw.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(&raw);
        match text.trim().parse::<Quantity>() {
            Ok(quantity) => *slot = Value::String(quantity.to_string()),
            Err(error) => self.faults.refuse(error.to_string()),
        }
        Ok(())
    }

    fn int_or_string(&mut self, token: Token, slot: &mut Value) -> Syntax<()> {
        match token {
            Token::String => *slot = Value::String(self.scanner.string()?.into_owned()),
            Token::Number => {
                let text = self.scanner.number()?;
                match text.parse::<i32>() {
                    Ok(number) => *slot = Value::from(number),
                    Err(_) => {
                        let message = self.trail.type_error(self.types, &format!("number {text}"), "int32");
                        self.faults.refuse(message);
                    }
                }
            }
            _ => self.refuse_for(token, "int32")?,
        }
        Ok(())
    }

    fn wrong_number(&mut self, text: &str, type_name: &str) {
        let (trail, types) = (&self.trail, self.types);
        self.faults.mismatch(|| trail.type_error(types, &format!("number {text}"), type_name));
    }

    /// A custom unmarshaler rejected the value.
    fn refuse_for(&mut self, token: Token, type_name: &str) -> Syntax<()> {
        let message = self.trail.type_error(self.types, token.described(), type_name);
        self.faults.refuse(message);
        self.skip()
    }
}
