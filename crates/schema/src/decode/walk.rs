//! Decodes objects, lists and maps along their type. Scalars are in `scalar`.
//!
//! A value is read into a slot that may already hold one, as Go decodes into a struct: that is how a
//! duplicate member merges with the first. A slot that is `Null` at the end is absent.

use serde_json::{Map, Value};

use super::faults::Faults;
use super::scanner::{Scanner, Syntax, Token};
use super::trail::{Trail, TrailStep};
use super::{DecodeError, Decoded, FieldValidation};
use crate::depth::MAX_DEPTH;
use crate::types::{List, Node, Other, Type, TypeId, Types, Unknown};

pub(super) struct Walker<'t, 'b> {
    pub(super) types: &'t Types,
    pub(super) scanner: Scanner<'b>,
    pub(super) trail: Trail<'t>,
    pub(super) faults: Faults,
    validation: FieldValidation,
    depth: usize,
}

/// Whether duplicate members are reported in JSON without a type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplicates {
    Reported,
    /// Kubernetes: no decoder looks inside fields of raw JSON.
    Ignored,
}

impl<'t, 'b> Walker<'t, 'b> {
    pub(super) fn new(types: &'t Types, json: &'b [u8], validation: FieldValidation) -> Self {
        let (scanner, faults) = (Scanner::new(json), Faults::new(validation));
        Self { types, scanner, trail: Trail::default(), faults, validation, depth: 0 }
    }

    pub(super) fn typed(mut self, id: TypeId) -> Result<Decoded, DecodeError> {
        let mut value = Value::Null;
        self.value(&Node::Object(id), false, &mut value)?;
        if value.is_null() {
            value = Value::Object(Map::new());
        }
        self.finish(value)
    }

    pub(super) fn untyped(mut self) -> Result<Decoded, DecodeError> {
        let token = self.scanner.token()?;
        if matches!(token, Token::Object | Token::Null) {
            let value = self.any(Duplicates::Reported)?;
            return self.finish(value);
        }
        let (trail, types) = (&self.trail, self.types);
        self.faults.mismatch(|| trail.type_error(types, token.described(), "map[string]interface {}"));
        self.skip()?;
        self.finish(Value::Null)
    }

    pub(super) fn json(mut self) -> Result<Decoded, DecodeError> {
        let value = self.any(Duplicates::Reported)?;
        self.finish(value)
    }

    pub(super) fn raw(mut self) -> Result<Value, DecodeError> {
        let value = self.any(Duplicates::Ignored)?;
        self.finish(value).map(|read| read.value)
    }

    fn finish(mut self, value: Value) -> Result<Decoded, DecodeError> {
        self.scanner.end()?;
        let warnings = self.faults.verdict(self.validation)?;
        Ok(Decoded { value, warnings })
    }

    /// Reads the next value into a slot. `pointer` says that the slot may be nil in Go.
    pub(super) fn value(&mut self, node: &Node, pointer: bool, slot: &mut Value) -> Syntax<()> {
        let token = self.scanner.token()?;
        if token == Token::Null {
            self.scanner.literal("null")?;
            if pointer || clears_on_null(node) {
                *slot = Value::Null;
            }
            return Ok(());
        }
        match (node, token) {
            (Node::Object(id) | Node::AtomicObject(id), Token::Object) => self.object(*id, slot),
            (Node::List(list), Token::Array) => self.list(&list.items, slot),
            (Node::Map(map), Token::Object) => self.map(&map.values, slot),
            (Node::Either(id, other), _) => self.either(*id, *other, token, slot),
            (Node::Raw | Node::FieldsV1 | Node::Json, _) => {
                *slot = self.any(Duplicates::Ignored)?;
                Ok(())
            }
            _ => self.scalar(node, token, slot),
        }
    }

    /// Skips a value of the wrong type, and notes the error.
    pub(super) fn mismatch(&mut self, node: &Node, token: Token) -> Syntax<()> {
        let (trail, types) = (&self.trail, self.types);
        self.faults.mismatch(|| trail.type_error(types, token.described(), &trail.type_name(types, node)));
        self.skip()
    }

    pub(super) fn skip(&mut self) -> Syntax<()> {
        self.scanner.skip(self.depth)
    }

    fn object(&mut self, id: TypeId, slot: &mut Value) -> Syntax<()> {
        let types = self.types;
        let of = types.get(id);
        let members = as_object(slot);
        // A duplicate of the object: each of its members may be there already.
        let merged = !members.is_empty();
        let mut seen = 0_u128;
        let mut more = self.enter(Token::Object)?;
        while more {
            let key = self.scanner.key()?;
            match of.position(&key) {
                Some(at) => {
                    let field = &of.fields()[at];
                    // Past 128 fields, which no built-in type has, a non-null member counts as seen.
                    let bit = u32::try_from(at).ok().and_then(|at| 1_u128.checked_shl(at)).unwrap_or(0);
                    let again = if bit == 0 { members.contains_key(&*key) } else { seen & bit != 0 };
                    seen |= bit;
                    let mut slot = Value::Null;
                    if again {
                        self.duplicate(&field.name);
                    }
                    if again || merged {
                        slot = members.remove(&*key).unwrap_or_default();
                    }
                    self.trail.push(TrailStep::Field(id, field));
                    self.value(&field.node, field.pointer, &mut slot)?;
                    self.trail.pop();
                    // Kubernetes: an empty `managedFields` of the object itself, or one empty entry, asks the
                    // server to forget the owners; it is kept. In templates it has no meaning.
                    let is_owners = key == "managedFields" && self.trail.is_at_metadata();
                    if is_owners && slot.as_array().is_some_and(Vec::is_empty) {
                        slot = serde_json::json!([{}]);
                    }
                    if field.keeps(&slot) {
                        members.insert(key.into_owned(), slot);
                    }
                }
                None => self.unknown(of, key.into_owned(), members)?,
            }
            more = self.scanner.next_member()?;
        }
        self.depth -= 1;
        Ok(())
    }

    fn unknown(&mut self, of: &Type, key: String, into: &mut Map<String, Value>) -> Syntax<()> {
        match of.unknown {
            Unknown::Drop => {
                let (trail, scanner) = (&self.trail, &self.scanner);
                self.faults
                    .strict(|| format!("unknown field {}", api::go::quote(&trail.path_of(&key, scanner))));
                self.skip()
            }
            Unknown::Keep => {
                let value = self.any(Duplicates::Ignored)?;
                into.insert(key, value);
                Ok(())
            }
        }
    }

    fn list(&mut self, node: &Node, slot: &mut Value) -> Syntax<()> {
        let mut items = match slot.take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        let mut nth = 0;
        let mut more = self.enter(Token::Array)?;
        while more {
            if nth == items.len() {
                items.push(Value::Null);
            }
            self.trail.push(TrailStep::Item(nth));
            self.value(node, false, &mut items[nth])?;
            self.trail.pop();
            if items[nth].is_null() {
                items[nth] = node.zero();
            }
            nth += 1;
            more = self.scanner.next_item()?;
        }
        items.truncate(nth);
        self.depth -= 1;
        *slot = Value::Array(items);
        Ok(())
    }

    fn map(&mut self, node: &Node, slot: &mut Value) -> Syntax<()> {
        let mut members = Map::new();
        let mut more = self.enter(Token::Object)?;
        while more {
            let at = self.scanner.position();
            let key = self.scanner.key()?;
            if members.contains_key(&*key) {
                self.duplicate(&key);
            }
            let mut value = Value::Null;
            self.trail.push(TrailStep::Key(at));
            self.value(node, false, &mut value)?;
            self.trail.pop();
            if value.is_null() {
                value = node.zero();
            }
            members.insert(key.into_owned(), value);
            more = self.scanner.next_member()?;
        }
        self.depth -= 1;
        match slot {
            Value::Object(before) => before.append(&mut members),
            _ => *slot = Value::Object(members),
        }
        Ok(())
    }

    /// A union of a CRD's schema, which Go gives to a second decoder.
    fn either(&mut self, id: TypeId, other: Other, token: Token, slot: &mut Value) -> Syntax<()> {
        let node = match (other, token) {
            (_, Token::Object) => Node::Object(id),
            (Other::List, Token::Array) => Node::List(Box::new(List::atomic(Node::Object(id)))),
            (Other::Strings, Token::Array) => Node::List(Box::new(List::atomic(Node::String))),
            (Other::Bool, Token::True | Token::False) => Node::Bool,
            (Other::Bool, _) => {
                self.faults.refuse("boolean or JSON schema expected".to_owned());
                return self.skip();
            }
            // Kubernetes: anything else is dropped without an error.
            _ => return self.skip(),
        };
        let union = self.trail.enter_union();
        let faults = self.faults.set_aside();
        *slot = Value::Null;
        self.value(&node, false, slot)?;
        if slot.as_array().is_some_and(Vec::is_empty) {
            *slot = Value::Null;
        }
        self.faults.resume(faults);
        self.trail.leave_union(union);
        Ok(())
    }

    /// A value without a type.
    fn any(&mut self, duplicates: Duplicates) -> Syntax<Value> {
        Ok(match self.scanner.token()? {
            Token::Object => {
                let mut members = Map::new();
                let mut more = self.enter(Token::Object)?;
                while more {
                    let at = self.scanner.position();
                    let key = self.scanner.key()?;
                    if duplicates == Duplicates::Reported && members.contains_key(&*key) {
                        self.duplicate(&key);
                    }
                    self.trail.push(TrailStep::Key(at));
                    let value = self.any(duplicates)?;
                    self.trail.pop();
                    members.insert(key.into_owned(), value);
                    more = self.scanner.next_member()?;
                }
                self.depth -= 1;
                Value::Object(members)
            }
            Token::Array => {
                let mut items = Vec::new();
                let mut more = self.enter(Token::Array)?;
                while more {
                    self.trail.push(TrailStep::Item(items.len()));
                    items.push(self.any(duplicates)?);
                    self.trail.pop();
                    more = self.scanner.next_item()?;
                }
                self.depth -= 1;
                Value::Array(items)
            }
            token => self.any_scalar(token)?,
        })
    }

    fn duplicate(&mut self, name: &str) {
        let (trail, scanner) = (&self.trail, &self.scanner);
        self.faults.strict(|| format!("duplicate field {}", api::go::quote(&trail.path_of(name, scanner))));
    }

    fn enter(&mut self, token: Token) -> Syntax<bool> {
        self.scanner.nest(self.depth, MAX_DEPTH)?;
        self.depth += 1;
        self.scanner.open(token)
    }
}

/// Whether Go sets such a field to nil on `null`; other fields keep their value.
fn clears_on_null(node: &Node) -> bool {
    let container = matches!(node, Node::List(_) | Node::Map(_) | Node::Bytes);
    container || matches!(node, Node::Time | Node::MicroTime | Node::Quantity | Node::IntOrString)
}

fn as_object(slot: &mut Value) -> &mut Map<String, Value> {
    if !slot.is_object() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut().expect("an object was put there above")
}
