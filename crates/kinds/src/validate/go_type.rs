//! An error and the kind it is about in, the value as Go shows it out: the type of the field decides between `%q`,
//! JSON and Go's zero value.
//!
//! Kubernetes: a `string` is printed with `%q`. A string of a named type (`v1.ServiceType`) and whatever a pointer
//! holds are printed as JSON, in which `<`, `>` and `&` are escaped.

use api::field::{BadValue, Error, ErrorList, ErrorType};
use schema::types::{Field, Node};

use super::at::IMMUTABLE;
use crate::types;

/// Pointers to plain strings that Kubernetes hands to the error as pointers.
const SHOWN_AS_POINTERS: [&str; 8] = [
    "deprecationWarning",
    "failedIndexes",
    "gmsaCredentialSpec",
    "gmsaCredentialSpecName",
    "loadBalancerClass",
    "resourceClaimName",
    "runAsUserName",
    "timeZone",
];
/// Kubernetes makes plain strings of these before it checks their form.
const SHOWN_AS_PLAIN: [&str; 4] =
    ["v1.ConversionStrategyType", "v1.FinalizerName", "v1.PodConditionType", "v1.ResourceScope"];

/// Rewrites the values of the errors of a kind to what Go prints for the types of their fields.
pub(super) fn show_values(group: &str, version: &str, kind: &str, errors: &mut ErrorList) {
    if errors.is_empty() {
        return;
    }
    let Some((id, _)) = types().kind(group, version, kind) else { return };
    let root = Node::Object(id);
    errors.show_values(|error| Place::find(&root, &error.field)?.shown(error));
}

/// What Go holds at the end of a field path.
#[derive(Clone, Copy)]
struct Place<'t> {
    node: &'t Node,
    /// The field it is, or the list or map that it is in.
    field: &'t Field,
    /// It is an item of a list or a value of a map, which are never pointers.
    is_item: bool,
}

impl<'t> Place<'t> {
    fn find(root: &'t Node, path: &str) -> Option<Place<'t>> {
        let (mut node, mut place) = (root, None);
        let mut rest = path;
        while !rest.is_empty() {
            let found = match (rest.strip_prefix('['), node) {
                (Some(inside), Node::List(list)) => {
                    rest = inside.split_once(']')?.1;
                    let Place { field, .. } = place?;
                    Place { node: &list.items, field, is_item: true }
                }
                (Some(inside), Node::Map(map)) => {
                    rest = inside.split_once(']')?.1;
                    let Place { field, .. } = place?;
                    Place { node: &map.values, field, is_item: true }
                }
                (None, Node::Object(id) | Node::AtomicObject(id)) => {
                    let name = rest.strip_prefix('.').unwrap_or(rest);
                    let end = name.find(['.', '[']).unwrap_or(name.len());
                    rest = &name[end..];
                    let field = types().get(*id).field(&name[..end])?;
                    Place { node: &field.node, field, is_item: false }
                }
                _ => return None,
            };
            node = found.node;
            place = Some(found);
        }
        place
    }

    /// Its Go type where it is a string of a named one: `v1.Protocol`, also in `[]v1.Protocol`.
    fn named_string(&self) -> Option<&'t str> {
        let name = self.field.go.as_ref()?.type_name.as_deref()?;
        let name = name.rsplit_once(']').map_or(name, |(_, of_item)| of_item);
        // An error about a list may show one of its items.
        let is_string = match self.node {
            Node::List(list) => matches!(list.items, Node::String),
            node => matches!(node, Node::String),
        };
        (is_string && !SHOWN_AS_PLAIN.contains(&name)).then_some(name)
    }

    fn is_pointer(&self) -> bool {
        self.field.pointer && !self.is_item
    }

    fn shown(&self, error: &Error) -> Option<BadValue> {
        let is_immutable = error.error_type == ErrorType::Invalid && error.detail == IMMUTABLE;
        let as_pointer =
            self.is_pointer() && (is_immutable || SHOWN_AS_POINTERS.contains(&&*self.field.name));
        match error.error_type {
            ErrorType::Invalid | ErrorType::NotSupported
                if error.value.is_null() && !self.field.pointer && !self.is_item =>
            {
                self.zero()
            }
            ErrorType::Invalid | ErrorType::NotSupported | ErrorType::Duplicate | ErrorType::NotFound => {
                // Kubernetes: a count or percentage is handed to the error whole, and writes itself as JSON; of a port only
                // the text is.
                let is_percentage =
                    matches!(&*self.field.name, "minAvailable" | "maxUnavailable" | "maxSurge");
                (as_pointer || is_percentage || self.named_string().is_some())
                    .then(|| error.value.clone().with_named_string_type())
            }
            _ => None,
        }
    }

    /// What stands for nothing where Go holds no pointer.
    fn zero(&self) -> Option<BadValue> {
        match self.node {
            Node::String => Some(BadValue::from("")),
            Node::Bool => Some(BadValue::from(false)),
            Node::Int32 | Node::Int64 => Some(BadValue::from(0_i64)),
            _ => None,
        }
    }
}
