//! Deletes the children of an owner that are no longer in its set, in a safe order.
//!
//! Candidates are found by the set's label, and deleted by UID if the owner controls them: names may
//! belong to other objects.

use crate::{apply::SET_LABEL, client::CachedRead, retry};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectList, Preconditions},
    core::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, PartialObjectMeta},
};
use std::{collections::BTreeSet, fmt};

/// The order of creation; deletion is in reverse. Kinds that are not listed come with the workloads.
const ORDER: &[&[&str]] = &[
    &["namespaces", "customresourcedefinitions", "priorityclasses", "storageclasses"],
    &["networkpolicies", "resourcequotas", "limitranges", "serviceaccounts"],
    &["clusterroles", "roles"],
    &["clusterrolebindings", "rolebindings"],
    &["configmaps", "secrets", "persistentvolumes", "persistentvolumeclaims"],
    &["services"],
    WORKLOADS,
    &["horizontalpodautoscalers", "poddisruptionbudgets", "ingresses", "httproutes"],
    // They can block everything above: created last, deleted first.
    &["apiservices", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
];
const WORKLOADS: &[&str] = &[];

/// A kind of children: its plural, group and version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberKind {
    plural: String,
    group: String,
    version: String,
}

/// An object that carries the set's label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its kind.
    pub kind: MemberKind,
    /// Its namespace; `None` if its kind is cluster-scoped.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Its UID: another object of the same name is not deleted.
    pub uid: String,
    /// Its resourceVersion.
    pub resource_version: Option<String>,
    /// The UID of the owner that controls it.
    pub controller: Option<String>,
    /// Whether it is being deleted already.
    pub is_deleting: bool,
}

/// Which members to delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which to delete them.
    pub delete: Vec<Member>,
    /// They have the label, but the owner does not control them: they stay.
    pub spare: Vec<Member>,
}

/// What pruning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// They were deleted.
    pub deleted: Vec<Member>,
    /// They have the label, but the owner does not control them: they stayed.
    pub spared: Vec<Member>,
    /// Kinds to prune again: the server does not serve them now, or an object is still being deleted.
    pub unfinished: BTreeSet<MemberKind>,
}

impl MemberKind {
    /// The group, version, kind and plural of this resource.
    pub fn of(resource: &ApiResource) -> MemberKind {
        MemberKind {
            plural: resource.plural.clone(),
            group: resource.group.clone(),
            version: resource.version.clone(),
        }
    }

    /// The kind as kube names it.
    pub fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, &self.version, "");
        ApiResource::from_gvk_with_plural(&kind, &self.plural)
    }

    /// The position in the order of creation.
    pub(crate) fn rank(&self) -> usize {
        let listed = ORDER.iter().position(|band| band.contains(&self.plural.as_str()));
        let workloads = ORDER.iter().position(|band| band.is_empty());
        listed.or(workloads).unwrap_or(ORDER.len())
    }

    /// Whether it is the same kind in any version.
    fn is_same_kind(&self, other: &MemberKind) -> bool {
        (&self.plural, &self.group) == (&other.plural, &other.group)
    }

    fn parse(text: &str) -> Option<MemberKind> {
        let (plural, rest) = text.trim().split_once('.')?;
        let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
        Some(MemberKind { plural: plural.into(), group: group.into(), version: version.into() })
    }
}

impl fmt::Display for MemberKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.plural, self.version)?;
        if self.group.is_empty() { Ok(()) } else { write!(out, ".{}", self.group) }
    }
}

/// Decides which members to delete: those that the owner controls and that are not in `keep`.
pub fn plan(owner: &str, keep: &BTreeSet<String>, members: Vec<Member>) -> Plan {
    let mut plan = Plan::default();
    for member in members {
        if keep.contains(&member.uid) {
            continue;
        }
        match member.controller.as_deref() == Some(owner) {
            true => plan.delete.push(member),
            false => plan.spare.push(member),
        }
    }
    plan.delete.sort_by(|one, other| order(other).cmp(&order(one)));
    plan
}

/// The objects of this kind that carry the label of the set, from the cache or the server.
async fn list(
    client: &Client,
    kind: &MemberKind,
    namespace: Option<&str>,
    set: &str,
) -> Result<Vec<PartialObjectMeta<DynamicObject>>, kube::Error> {
    let params = ListParams::default().labels(&format!("{SET_LABEL}={set}"));
    let objects = api(client, &kind.resource(), namespace);
    let request = kube::core::Request::new(objects.resource_url()).list_metadata(&params);
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    let value = set.to_owned();
    request.extensions_mut().insert(CachedRead::Labelled { label: SET_LABEL, value });
    let list: ObjectList<PartialObjectMeta<DynamicObject>> = client.request(request).await?;
    Ok(list.items)
}

/// Lists the members of the set in all `kinds`, and carries out the plan.
pub(crate) async fn run(
    client: &Client,
    kinds: &BTreeSet<MemberKind>,
    namespace: Option<&str>,
    set: &str,
    owner: &str,
    keep: &BTreeSet<String>,
) -> Result<Pruned, kube::Error> {
    let mut pruned = Pruned::default();
    let mut members = Vec::new();
    for kind in kinds {
        match list(client, kind, namespace, set).await {
            Ok(list) => members.extend(list.into_iter().map(|item| Member::of(kind, item.metadata))),
            // Perhaps only this version is not served any more: keep the kind in the record.
            Err(error) if retry::is_missing(&error) => drop(pruned.unfinished.insert(kind.clone())),
            Err(error) => return Err(error),
        }
    }
    let plan = plan(owner, keep, members);
    pruned.spared = plan.spare;
    for member in plan.delete {
        // A finalizer may keep it: prune this kind again next time.
        pruned.unfinished.insert(member.kind.clone());
        if !member.is_deleting && delete(client, &member).await? {
            pruned.deleted.push(member);
        }
    }
    Ok(pruned)
}

/// Whether the member was deleted: not if it was gone, or has changed since it was listed.
async fn delete(client: &Client, member: &Member) -> Result<bool, kube::Error> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(member.uid.clone()),
            // Its owners may have changed since: then the next run decides.
            resource_version: member.resource_version.clone(),
        }),
        ..DeleteParams::background()
    };
    let api = api(client, &member.kind.resource(), member.namespace.as_deref());
    match api.delete(&member.name, &params).await {
        Ok(_) => Ok(true),
        Err(error) if retry::is_missing(&error) || retry::is_conflict(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

pub(crate) fn api(client: &Client, resource: &ApiResource, namespace: Option<&str>) -> Api<DynamicObject> {
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    }
}

/// All kinds of both; if they have different versions of a kind, that of the first.
pub(crate) fn union(wanted: &BTreeSet<MemberKind>, known: &BTreeSet<MemberKind>) -> BTreeSet<MemberKind> {
    let others = known.iter().filter(|kind| !wanted.iter().any(|wanted| wanted.is_same_kind(kind)));
    wanted.iter().chain(others).cloned().collect()
}

/// The record of kinds, as in the annotation of the owner: `configmaps.v1,deployments.v1.apps`.
pub(crate) fn write(kinds: &BTreeSet<MemberKind>) -> String {
    kinds.iter().map(MemberKind::to_string).collect::<Vec<_>>().join(",")
}

pub(crate) fn read(text: &str) -> BTreeSet<MemberKind> {
    text.split(',').filter_map(MemberKind::parse).collect()
}

impl Member {
    fn of(kind: &MemberKind, meta: ObjectMeta) -> Member {
        let mut owners = meta.owner_references.into_iter().flatten();
        Member {
            kind: kind.clone(),
            namespace: meta.namespace,
            name: meta.name.unwrap_or_default(),
            uid: meta.uid.unwrap_or_default(),
            resource_version: meta.resource_version,
            controller: owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid),
            is_deleting: meta.deletion_timestamp.is_some(),
        }
    }
}

fn order(member: &Member) -> (usize, &MemberKind, Option<&str>, &str) {
    (member.kind.rank(), &member.kind, member.namespace.as_deref(), &member.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(kind: &str, name: &str, controller: Option<&str>) -> Member {
        Member {
            kind: MemberKind::parse(kind).unwrap(),
            namespace: None,
            name: name.into(),
            uid: format!("uid-{name}"),
            resource_version: None,
            controller: controller.map(Into::into),
            is_deleting: false,
        }
    }

    fn names(members: &[Member]) -> Vec<&str> {
        members.iter().map(|member| member.name.as_str()).collect()
    }

    #[test]
    fn only_members_that_the_owner_controls_are_deleted() {
        let members = vec![
            member("configmaps.v1", "kept", Some("me")),
            member("configmaps.v1", "dropped", Some("me")),
            member("configmaps.v1", "theirs", Some("other")),
            member("configmaps.v1", "orphan", None),
        ];
        let plan = plan("me", &["uid-kept".to_owned()].into(), members);
        assert_eq!(names(&plan.delete), ["dropped"]);
        assert_eq!(names(&plan.spare), ["theirs", "orphan"]);
    }

    #[test]
    fn dependents_are_deleted_first() {
        let kinds = [
            "serviceaccounts.v1",
            "widgets.v1.example.com",
            "configmaps.v1",
            "validatingwebhookconfigurations.v1.admissionregistration.k8s.io",
            "namespaces.v1",
            "ingresses.v1.networking.k8s.io",
        ];
        let members = kinds.iter().map(|kind| member(kind, kind.split('.').next().unwrap(), Some("me")));
        let plan = plan("me", &BTreeSet::new(), members.collect());
        assert_eq!(
            names(&plan.delete),
            [
                "validatingwebhookconfigurations",
                "ingresses",
                "widgets",
                "configmaps",
                "serviceaccounts",
                "namespaces"
            ]
        );
    }

    #[test]
    fn the_record_of_kinds_reads_back() {
        for text in ["", "configmaps.v1", "configmaps.v1,deployments.v1.apps,widgets.v1beta1.a.example.com"] {
            assert_eq!(write(&read(text)), text);
        }
        assert_eq!(
            write(&union(
                &read("widgets.v1.example.com"),
                &read("configmaps.v1,widgets.v1beta1.example.com")
            )),
            "configmaps.v1,widgets.v1.example.com"
        );
        let resource = MemberKind::parse("deployments.v1.apps").unwrap().resource();
        assert_eq!((resource.api_version.as_str(), resource.plural.as_str()), ("apps/v1", "deployments"));
    }
}
