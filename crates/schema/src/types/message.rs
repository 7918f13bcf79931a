//! The protobuf message of a type: field numbers and nested messages.

use super::Field;

/// The place of a field in the protobuf message of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proto {
    pub number: u32,
    /// The numbers of the enclosing messages, for fields that Go inlines in JSON only.
    pub via: Box<[u32]>,
}

/// One entry of a type's protobuf message, see [`Type::message`](super::Type::message).
#[derive(Clone, Debug)]
pub enum Slot {
    /// A field by its number and its position in [`Type::fields`](super::Type::fields).
    Field(u32, u16),
    /// A message that JSON inlines, by its number: its fields are in the same JSON object.
    Inline(u32, Vec<Slot>),
}

impl Slot {
    #[must_use]
    pub fn number(&self) -> u32 {
        match self {
            Slot::Field(number, _) | Slot::Inline(number, _) => *number,
        }
    }

    /// The entries of a message in the order of their numbers.
    pub(super) fn message(fields: &[Field]) -> Box<[Slot]> {
        let mut slots = Vec::new();
        for (position, field) in (0u16..).zip(fields) {
            if let Some(proto) = &field.proto {
                Slot::insert(&mut slots, &proto.via, Slot::Field(proto.number, position));
            }
        }
        slots.into()
    }

    fn insert(slots: &mut Vec<Slot>, via: &[u32], slot: Slot) {
        let number = via.first().copied().unwrap_or(slot.number());
        let at = slots.partition_point(|other| other.number() < number);
        let Some((outer, inner)) = via.split_first() else { return slots.insert(at, slot) };
        if !matches!(slots.get(at), Some(Slot::Inline(found, _)) if found == outer) {
            slots.insert(at, Slot::Inline(*outer, Vec::new()));
        }
        if let Slot::Inline(_, nested) = &mut slots[at] {
            Slot::insert(nested, inner, slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Node, Type};
    use super::*;

    fn numbered(name: &'static str, number: u32, via: &[u32]) -> Field {
        Field { proto: Some(Proto { number, via: via.into() }), ..Field::new(name, Node::String) }
    }

    #[test]
    fn inlined_messages_are_grouped_by_number() {
        let fields = vec![
            numbered("resourceNames", 1, &[]),
            numbered("operations", 1, &[2]),
            numbered("scope", 4, &[2, 2]),
            numbered("apiGroups", 1, &[2, 2]),
            numbered("last", 3, &[]),
            Field::new("json only", Node::Bool),
        ];
        let shown = format!("{:?}", Type::new("t", fields).message());
        assert_eq!(
            shown,
            "[Field(1, 0), Inline(2, [Field(1, 1), Inline(2, [Field(1, 3), Field(4, 2)])]), Field(3, 4)]"
        );
    }
}
