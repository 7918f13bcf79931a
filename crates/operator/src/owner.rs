//! Sets the controller reference of a child to its owner.

use k8s_openapi::{ClusterResourceScope, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Resource, core::DynamicResourceScope};
use std::any::TypeId;

/// Why an object cannot own another.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// The owner has not been read from a server.
    #[error("owner {owner:?} has no name and uid yet: own only with what was read from a server")]
    NotStored {
        /// The name of the owner.
        owner: String,
    },
    /// Owner and child are in two namespaces.
    #[error("owner {owner:?} is in namespace {namespace:?}, child {child:?} in {other:?}")]
    OtherNamespace {
        /// The name of the owner.
        owner: String,
        /// The namespace of the owner.
        namespace: String,
        /// The name of the child.
        child: String,
        /// The namespace of the child.
        other: String,
    },
    /// The owner is in a namespace, and the child is cluster-scoped.
    #[error("owner {owner:?} is in namespace {namespace:?}, child {child:?} in none")]
    OutsideNamespaces {
        /// The name of the owner.
        owner: String,
        /// The namespace of the owner.
        namespace: String,
        /// The name of the child.
        child: String,
    },
    /// The child has another controller.
    #[error("child {child:?} is controlled by {kind} {name:?} ({uid})")]
    Controlled {
        /// The name of the child.
        child: String,
        /// The kind of its controller.
        kind: String,
        /// The name of its controller.
        name: String,
        /// The UID of its controller.
        uid: String,
    },
    /// The child exists and has no controller; a person may have made it.
    #[error("child {child:?} exists and has no controller: let the set adopt it, or use another name")]
    Uncontrolled {
        /// The name of the child.
        child: String,
    },
}

impl OwnerError {
    pub(crate) fn controlled(child: &impl Resource, controller: &OwnerReference) -> OwnerError {
        OwnerError::Controlled {
            child: name_of(child),
            kind: controller.kind.clone(),
            name: controller.name.clone(),
            uid: controller.uid.clone(),
        }
    }
}

/// Makes `owner` the controller of `child`: the child is deleted with the owner, and a change of the child
/// triggers a reconcile of the owner.
///
/// A child of a namespaced kind without a namespace gets the owner's. A plain reference to the same owner
/// becomes the controller reference; other owners stay.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use operator::owner;
///
/// let mut web = ConfigMap::default();
/// web.metadata.name = Some("web".into());
/// web.metadata.namespace = Some("prod".into());
/// web.metadata.uid = Some("4f5e".into());
///
/// let mut child = Pod::default();
/// owner::control(&web, &mut child)?;
/// assert!(owner::is_controlled_by(&child, &web));
/// assert_eq!(child.metadata.namespace.as_deref(), Some("prod"));
/// # Ok::<(), owner::OwnerError>(())
/// ```
pub fn control<O, C>(owner: &O, child: &mut C) -> Result<(), OwnerError>
where
    O: Resource,
    O::DynamicType: Default,
    C: Resource,
    C::Scope: 'static,
{
    control_with(owner, &O::DynamicType::default(), child)
}

/// [`control`] for an owner whose kind is known only when the program runs.
pub fn control_with<O, C>(owner: &O, kind: &O::DynamicType, child: &mut C) -> Result<(), OwnerError>
where
    O: Resource,
    C: Resource,
    C::Scope: 'static,
{
    let reference = reference_with(owner, kind)?;
    let namespace = inherited_namespace(owner.meta().namespace.as_deref(), child, &reference)?;
    if let Some(other) = controller_of(child).filter(|other| other.uid != reference.uid) {
        return Err(OwnerError::controlled(child, other));
    }
    if namespace.is_some() {
        child.meta_mut().namespace = namespace;
    }
    let references = child.meta_mut().owner_references.get_or_insert_default();
    match references.iter_mut().find(|present| present.uid == reference.uid) {
        Some(present) => *present = reference,
        None => references.push(reference),
    }
    Ok(())
}

/// The controller reference that points at `owner`.
pub fn reference<O>(owner: &O) -> Result<OwnerReference, OwnerError>
where
    O: Resource,
    O::DynamicType: Default,
{
    reference_with(owner, &O::DynamicType::default())
}

/// [`reference`] for an owner whose kind is known only when the program runs.
pub fn reference_with<O: Resource>(owner: &O, kind: &O::DynamicType) -> Result<OwnerReference, OwnerError> {
    let reference =
        owner.controller_owner_ref(kind).ok_or_else(|| OwnerError::NotStored { owner: name_of(owner) })?;
    Ok(OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// The controller reference of `child`.
pub fn controller_of<C: Resource>(child: &C) -> Option<&OwnerReference> {
    child.meta().owner_references.iter().flatten().find(|reference| reference.controller == Some(true))
}

/// Whether `owner` controls `child`, by its UID.
pub fn is_controlled_by<C: Resource, O: Resource>(child: &C, owner: &O) -> bool {
    match (controller_of(child), &owner.meta().uid) {
        (Some(reference), Some(uid)) => reference.uid == *uid,
        _ => false,
    }
}

/// The namespace that the child gets from its owner, if it has none.
fn inherited_namespace<C>(
    namespace: Option<&str>,
    child: &C,
    owner: &OwnerReference,
) -> Result<Option<String>, OwnerError>
where
    C: Resource,
    C::Scope: 'static,
{
    let Some(namespace) = namespace else { return Ok(None) };
    let scope = TypeId::of::<C::Scope>();
    let is_cluster_scoped = scope == TypeId::of::<ClusterResourceScope>();
    // A kind that is known only at run time may be cluster-scoped: the child must name its namespace.
    let may_be_cluster_scoped = is_cluster_scoped || scope == TypeId::of::<DynamicResourceScope>();
    match child.meta().namespace.as_deref() {
        Some(other) if other != namespace && !is_cluster_scoped => Err(OwnerError::OtherNamespace {
            owner: owner.name.clone(),
            namespace: namespace.into(),
            child: name_of(child),
            other: other.into(),
        }),
        Some(_) if !is_cluster_scoped => Ok(None),
        None if !may_be_cluster_scoped => Ok(Some(namespace.into())),
        _ => Err(OwnerError::OutsideNamespaces {
            owner: owner.name.clone(),
            namespace: namespace.into(),
            child: name_of(child),
        }),
    }
}

fn name_of(object: &impl Resource) -> String {
    let meta = object.meta();
    meta.name.as_ref().or(meta.generate_name.as_ref()).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    use kube::core::{ApiResource, DynamicObject, ObjectMeta};

    fn meta(namespace: Option<&str>, name: &str, uid: Option<&str>) -> ObjectMeta {
        ObjectMeta {
            name: Some(name.into()),
            namespace: namespace.map(Into::into),
            uid: uid.map(Into::into),
            ..ObjectMeta::default()
        }
    }

    fn map(namespace: Option<&str>, name: &str, uid: Option<&str>) -> ConfigMap {
        ConfigMap { metadata: meta(namespace, name, uid), ..ConfigMap::default() }
    }

    fn space(name: &str, uid: Option<&str>) -> Namespace {
        Namespace { metadata: meta(None, name, uid), ..Namespace::default() }
    }

    fn dynamic(namespace: Option<&str>) -> DynamicObject {
        let mut object = DynamicObject::new("d", &ApiResource::erase::<ConfigMap>(&()));
        object.metadata.namespace = namespace.map(Into::into);
        object
    }

    fn message(result: Result<(), OwnerError>) -> String {
        result.map_or_else(|refused| refused.to_string(), |()| "owned".into())
    }

    #[test]
    fn an_owner_must_be_cluster_scoped_or_in_the_namespace_of_the_child() {
        let here = map(Some("a"), "o", Some("1"));
        let above = space("o", Some("1"));
        let cases = [
            (control(&here, &mut map(Some("a"), "c", None)), "owned"),
            (control(&here, &mut map(None, "c", None)), "owned"),
            (
                control(&here, &mut map(Some("b"), "c", None)),
                r#"owner "o" is in namespace "a", child "c" in "b""#,
            ),
            (control(&here, &mut space("c", None)), r#"owner "o" is in namespace "a", child "c" in none"#),
            (control(&here, &mut dynamic(Some("a"))), "owned"),
            (control(&here, &mut dynamic(None)), r#"owner "o" is in namespace "a", child "d" in none"#),
            (control(&above, &mut map(Some("b"), "c", None)), "owned"),
            (control(&above, &mut space("c", None)), "owned"),
            (
                control(&map(Some("a"), "o", None), &mut map(Some("a"), "c", None)),
                r#"owner "o" has no name and uid yet: own only with what was read from a server"#,
            ),
        ];
        for (result, expected) in cases {
            assert_eq!(message(result), expected);
        }
    }

    #[test]
    fn a_child_has_one_controller() {
        let (first, second) = (map(Some("a"), "first", Some("1")), map(Some("a"), "second", Some("2")));
        let mut child = map(Some("a"), "c", None);
        control(&first, &mut child).unwrap();
        control(&first, &mut child).unwrap();
        assert_eq!(child.metadata.owner_references.as_ref().unwrap().len(), 1);
        let untouched = child.clone();
        assert_eq!(
            message(control(&second, &mut child)),
            r#"child "c" is controlled by ConfigMap "first" (1)"#
        );
        assert_eq!(child, untouched);
        assert!(is_controlled_by(&child, &first) && !is_controlled_by(&child, &second));
        let namesake = map(Some("a"), "first", Some("3"));
        assert!(!is_controlled_by(&child, &namesake));
    }

    #[test]
    fn a_plain_reference_becomes_the_controller_reference() {
        let owner = map(Some("a"), "o", Some("1"));
        let mut child = map(Some("a"), "c", None);
        let plain = |uid: &str| OwnerReference { uid: uid.into(), ..OwnerReference::default() };
        child.metadata.owner_references = Some(vec![plain("0"), plain("1"), plain("2")]);
        control(&owner, &mut child).unwrap();
        let references = child.metadata.owner_references.unwrap();
        assert_eq!(references.iter().map(|r| r.uid.as_str()).collect::<Vec<_>>(), ["0", "1", "2"]);
        assert_eq!(
            serde_json::to_value(&references[1]).unwrap(),
            serde_json::json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "1",
                "controller": true, "blockOwnerDeletion": true,
            })
        );
    }
}
