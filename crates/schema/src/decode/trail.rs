//! The path of the decoder in the object, in the two forms that error messages use.
//!
//! Strict errors name the whole path, `spec.containers[0].env`; type errors name the Go fields on it, without
//! indexes and map keys, and the Go struct and type. Both are built only when an error needs them.

use super::scanner::Scanner;
use crate::types::{Field, Node, Other, TypeId, Types};

/// One step from the root of the document.
#[derive(Clone, Copy, Debug)]
pub(super) enum TrailStep<'t> {
    /// Into a field of a type.
    Field(TypeId, &'t Field),
    /// Into a map, by the position of the key in the text.
    Key(usize),
    /// Into a list.
    Item(usize),
}

#[derive(Debug, Default)]
pub(super) struct Trail<'t> {
    steps: Vec<TrailStep<'t>>,
    /// The struct that type errors name inside a union of a CRD's schema. Kubernetes: Go decodes the union
    /// with a second decoder, and overwrites the struct in its error with that of the first.
    union_in: Option<TypeId>,
}

impl<'t> Trail<'t> {
    pub(super) fn push(&mut self, step: TrailStep<'t>) {
        self.steps.push(step);
    }

    pub(super) fn pop(&mut self) {
        self.steps.pop();
    }

    /// Whether this is the `metadata` of the decoded object itself.
    pub(super) fn is_at_metadata(&self) -> bool {
        matches!(self.steps[..], [TrailStep::Field(_, field)] if *field.name == *"metadata")
    }

    /// Enters a union; returns the value that [`Trail::leave_union`] takes.
    pub(super) fn enter_union(&mut self) -> Option<TypeId> {
        let before = self.union_in;
        self.union_in = before.or_else(|| self.struct_at());
        before
    }

    pub(super) fn leave_union(&mut self, before: Option<TypeId>) {
        self.union_in = before;
    }

    /// The path of a member at this place, as strict errors show it.
    pub(super) fn path_of(&self, name: &str, scanner: &Scanner<'_>) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                TrailStep::Field(_, field) => push_name(&mut path, &field.name),
                TrailStep::Key(at) => push_name(&mut path, &scanner.key_at(*at)),
                TrailStep::Item(nth) => path.push_str(&format!("[{nth}]")),
            }
        }
        push_name(&mut path, name);
        path
    }

    /// Go's error for a value of the wrong type.
    pub(super) fn type_error(&self, types: &Types, value: &str, type_name: &str) -> String {
        let Some(owner) = self.union_in.or_else(|| self.struct_at()) else {
            return format!("json: cannot unmarshal {value} into Go value of type {type_name}");
        };
        let owner = types.get(owner).short_name();
        let mut path = String::new();
        for step in &self.steps {
            if let TrailStep::Field(_, field) = step {
                if let Some(within) = field.go.as_ref().and_then(|go| go.within.as_deref()) {
                    push_name(&mut path, within);
                }
                push_name(&mut path, &field.name);
            }
        }
        format!("json: cannot unmarshal {value} into Go struct field {owner}.{path} of type {type_name}")
    }

    /// Go's name for the type of the node at this place.
    pub(super) fn type_name(&self, types: &Types, node: &Node) -> String {
        self.declared_name().map_or_else(|| go_name(types, node), str::to_owned)
    }

    /// What remains of the last field's own type name after the steps since.
    fn declared_name(&self) -> Option<&'t str> {
        let last = self.steps.iter().rposition(|step| matches!(step, TrailStep::Field(..)))?;
        let TrailStep::Field(_, field) = self.steps[last] else { return None };
        let mut name = field.go.as_ref()?.type_name.as_deref()?;
        for step in &self.steps[last + 1..] {
            name = match step {
                TrailStep::Item(_) => name.strip_prefix("[]")?,
                _ => name.strip_prefix("map[")?.split_once(']')?.1,
            };
        }
        Some(name)
    }

    fn struct_at(&self) -> Option<TypeId> {
        self.steps.iter().rev().find_map(|step| match step {
            TrailStep::Field(owner, _) => Some(*owner),
            _ => None,
        })
    }
}

fn push_name(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

fn go_name(types: &Types, node: &Node) -> String {
    let name = match node {
        Node::String => "string",
        Node::Bool => "bool",
        Node::Int32 => "int32",
        Node::Int64 => "int64",
        Node::Double => "float64",
        Node::Bytes => "[]uint8",
        Node::Time => "v1.Time",
        Node::MicroTime => "v1.MicroTime",
        Node::Quantity => "resource.Quantity",
        Node::IntOrString => "intstr.IntOrString",
        Node::Raw => "runtime.RawExtension",
        Node::FieldsV1 => "v1.FieldsV1",
        Node::Json => "v1.JSON",
        Node::Either(_, Other::List) => "v1.JSONSchemaPropsOrArray",
        Node::Either(_, Other::Bool) => "v1.JSONSchemaPropsOrBool",
        Node::Either(_, Other::Strings) => "v1.JSONSchemaPropsOrStringArray",
        Node::List(list) => return format!("[]{}", go_name(types, &list.items)),
        Node::Map(map) => return format!("map[string]{}", go_name(types, &map.values)),
        Node::Object(id) | Node::AtomicObject(id) => {
            // The package and the name: the last two parts.
            let name = &types.get(*id).name;
            name.rmatch_indices('.').nth(1).map_or(&**name, |(at, _)| &name[at + 1..])
        }
    };
    name.to_owned()
}
