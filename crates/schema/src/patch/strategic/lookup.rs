//! How strategic merge patches treat each member of an object.

use api::go;

use crate::patch::PatchError;
use crate::types::{Field, Node, Other, PatchStrategy, Type, Types};

/// A value's type.
#[derive(Clone, Copy)]
pub(super) struct PatchedType<'t> {
    types: &'t Types,
    node: &'t Node,
}

/// How patches treat a member.
pub(super) struct Member<'t> {
    /// The type of the member, or of its items if it is a list.
    pub(super) ty: PatchedType<'t>,
    /// Lists are merged, not replaced.
    pub(super) merges: bool,
    /// Objects are replaced, not merged.
    pub(super) replaces: bool,
    /// The merge key of list items.
    pub(super) key: Option<&'t str>,
}

impl<'t> PatchedType<'t> {
    pub(super) fn new(types: &'t Types, node: &'t Node) -> Self {
        PatchedType { types, node }
    }

    pub(super) fn field(self, name: &str) -> Result<Member<'t>, PatchError> {
        self.find(name).map(|field| self.member(field, &field.node))
    }

    /// As `field`, for a list: with the type of its items.
    pub(super) fn list_field(self, name: &str) -> Result<Member<'t>, PatchError> {
        let field = self.find(name)?;
        let items = match &field.node {
            Node::List(list) if matches!(list.items, Node::List(_)) && !field.pointer => {
                return Err(PatchError::Unexpected("unexpected slice of slice".into()));
            }
            Node::List(list) => &list.items,
            node if field.pointer => node,
            _ => {
                let kind = self.go_kind();
                return Err(PatchError::Unexpected(format!("expected slice or array type, but got: {kind}")));
            }
        };
        Ok(self.member(field, items))
    }

    fn member(self, field: &'t Field, node: &'t Node) -> Member<'t> {
        Member {
            ty: PatchedType { types: self.types, node },
            merges: field.patch.merges(),
            replaces: field.patch == PatchStrategy::ReplaceWhole,
            key: field.merge_key.as_deref().filter(|key| !key.is_empty()),
        }
    }

    /// The field of a name, or, if there is none, of the name in another case.
    fn find(self, name: &str) -> Result<&'t Field, PatchError> {
        let Some(of) = self.structure() else {
            let kind = self.go_kind();
            return Err(PatchError::Unexpected(format!(
                "merging an object in json but data type is not struct, instead is: {kind}"
            )));
        };
        let (of, go_name) = of;
        let fold = |of: &'t Type| of.fields().iter().find(|field| field.name.eq_ignore_ascii_case(name));
        of.and_then(|of| of.field(name).or_else(|| fold(of))).ok_or_else(|| {
            let name = go::quote(name);
            PatchError::Unexpected(format!(
                "unable to find api field in struct {go_name} for the json field {name}"
            ))
        })
    }

    /// The type, if patches can look inside, and its Go name, where Go has a struct here.
    fn structure(self) -> Option<(Option<&'t Type>, &'t str)> {
        let hidden = |name| Some((None, name));
        match self.node {
            Node::Object(id) | Node::AtomicObject(id) => {
                let of = self.types.get(*id);
                Some((Some(of), of.short_name()))
            }
            Node::Time => hidden("Time"),
            Node::MicroTime => hidden("MicroTime"),
            Node::Quantity => hidden("Quantity"),
            Node::IntOrString => hidden("IntOrString"),
            Node::Raw => hidden("RawExtension"),
            Node::FieldsV1 => hidden("FieldsV1"),
            Node::Json => hidden("JSON"),
            Node::Either(_, Other::List) => hidden("JSONSchemaPropsOrArray"),
            Node::Either(_, Other::Bool) => hidden("JSONSchemaPropsOrBool"),
            Node::Either(_, Other::Strings) => hidden("JSONSchemaPropsOrStringArray"),
            Node::String | Node::Bool | Node::Int32 | Node::Int64 | Node::Double => None,
            Node::Bytes | Node::List(_) | Node::Map(_) => None,
        }
    }

    /// `reflect.Kind` in Go.
    pub(super) fn go_kind(self) -> &'static str {
        match self.node {
            Node::String => "string",
            Node::Bool => "bool",
            Node::Int32 => "int32",
            Node::Int64 => "int64",
            Node::Double => "float64",
            Node::Bytes | Node::List(_) => "slice",
            Node::Map(_) => "map",
            _ => "struct",
        }
    }
}
