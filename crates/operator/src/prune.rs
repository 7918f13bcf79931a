//! What an owner has and what it should have in, what to delete out, in a safe order.
//!
//! Candidates are found by the set's label and deleted by UID, and only if the owner controls them:
//! a name says nothing about whose an object is.

use crate::retry;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Preconditions},
    core::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta},
};
use std::{collections::BTreeSet, fmt};

/// What has to be there before what comes below it; deleted from the bottom up. Kinds that are not
/// listed come with the workloads.
const ORDER: &[&[&str]] = &[
    &["namespaces", "customresourcedefinitions", "priorityclasses", "storageclasses"],
    &["networkpolicies", "resourcequotas", "limitranges", "serviceaccounts"],
    &["clusterroles", "roles"],
    &["clusterrolebindings", "rolebindings"],
    &["configmaps", "secrets", "persistentvolumes", "persistentvolumeclaims"],
    &["services"],
    WORKLOADS,
    &["horizontalpodautoscalers", "poddisruptionbudgets", "ingresses", "httproutes"],
    // They stand in the way of everything above: last to come, first to go.
    &["apiservices", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
];
const WORKLOADS: &[&str] = &[];

/// A kind of children, by what is needed to reach them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    plural: String,
    group: String,
    version: String,
}

/// An object that carries the set's label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub kind: Kind,
    pub namespace: Option<String>,
    pub name: String,
    pub uid: String,
    pub resource_version: Option<String>,
    /// The UID of whoever controls it.
    pub controller: Option<String>,
    pub is_leaving: bool,
}

/// Which members go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which to delete them.
    pub delete: Vec<Member>,
    /// They carry the label, but another controls them, or nobody: they stay.
    pub spare: Vec<Member>,
}

/// What pruning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub deleted: Vec<Member>,
    /// They carry the label, but another controls them, or nobody: they stayed.
    pub spared: Vec<Member>,
    /// Kinds to look at again: the server does not serve them now, or an object would not go yet.
    pub unfinished: BTreeSet<Kind>,
}

impl Kind {
    pub fn of(resource: &ApiResource) -> Kind {
        Kind {
            plural: resource.plural.clone(),
            group: resource.group.clone(),
            version: resource.version.clone(),
        }
    }

    pub fn resource(&self) -> ApiResource {
        let kind = GroupVersionKind::gvk(&self.group, &self.version, "");
        ApiResource::from_gvk_with_plural(&kind, &self.plural)
    }

    /// The place in the order of creation.
    pub(crate) fn rank(&self) -> usize {
        let listed = ORDER.iter().position(|band| band.contains(&self.plural.as_str()));
        let workloads = ORDER.iter().position(|band| band.is_empty());
        listed.or(workloads).unwrap_or(ORDER.len())
    }

    /// The same kind, in whichever version.
    fn is_alike(&self, other: &Kind) -> bool {
        (&self.plural, &self.group) == (&other.plural, &other.group)
    }

    fn parse(text: &str) -> Option<Kind> {
        let (plural, rest) = text.trim().split_once('.')?;
        let (version, group) = rest.split_once('.').unwrap_or((rest, ""));
        Some(Kind { plural: plural.into(), group: group.into(), version: version.into() })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.plural, self.version)?;
        if self.group.is_empty() { Ok(()) } else { write!(out, ".{}", self.group) }
    }
}

/// Decides which members go: those that the owner controls and that are not to be kept.
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

/// Lists the members of the set in all `kinds`, and deletes what the plan says.
pub(crate) async fn run(
    client: &Client,
    kinds: &BTreeSet<Kind>,
    namespace: Option<&str>,
    selector: &str,
    owner: &str,
    keep: &BTreeSet<String>,
) -> Result<Pruned, kube::Error> {
    let mut pruned = Pruned::default();
    let mut members = Vec::new();
    for kind in kinds {
        match api(client, &kind.resource(), namespace)
            .list_metadata(&ListParams::default().labels(selector))
            .await
        {
            Ok(list) => members.extend(list.items.into_iter().map(|item| Member::of(kind, item.metadata))),
            // Perhaps only this version of it is gone: the record must keep it.
            Err(error) if retry::is_missing(&error) => drop(pruned.unfinished.insert(kind.clone())),
            Err(error) => return Err(error),
        }
    }
    let plan = plan(owner, keep, members);
    pruned.spared = plan.spare;
    for member in plan.delete {
        // What is leaving already may still be held by a finalizer: look again.
        pruned.unfinished.insert(member.kind.clone());
        if !member.is_leaving && delete(client, &member).await? {
            pruned.deleted.push(member);
        }
    }
    Ok(pruned)
}

/// Whether the member was deleted; not if it went by itself or is no longer what was listed.
async fn delete(client: &Client, member: &Member) -> Result<bool, kube::Error> {
    let params = DeleteParams {
        preconditions: Some(Preconditions {
            uid: Some(member.uid.clone()),
            // Its owners may have changed since: then the next look decides.
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

/// All kinds of both; where they have one in two versions, the first's.
pub(crate) fn union(wanted: &BTreeSet<Kind>, known: &BTreeSet<Kind>) -> BTreeSet<Kind> {
    let others = known.iter().filter(|kind| !wanted.iter().any(|wanted| wanted.is_alike(kind)));
    wanted.iter().chain(others).cloned().collect()
}

/// The record of kinds as it stands on the owner: `configmaps.v1,deployments.v1.apps`.
pub(crate) fn write(kinds: &BTreeSet<Kind>) -> String {
    kinds.iter().map(Kind::to_string).collect::<Vec<_>>().join(",")
}

pub(crate) fn read(text: &str) -> BTreeSet<Kind> {
    text.split(',').filter_map(Kind::parse).collect()
}

impl Member {
    fn of(kind: &Kind, meta: ObjectMeta) -> Member {
        let mut owners = meta.owner_references.into_iter().flatten();
        Member {
            kind: kind.clone(),
            namespace: meta.namespace,
            name: meta.name.unwrap_or_default(),
            uid: meta.uid.unwrap_or_default(),
            resource_version: meta.resource_version,
            controller: owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid),
            is_leaving: meta.deletion_timestamp.is_some(),
        }
    }
}

fn order(member: &Member) -> (usize, &Kind, Option<&str>, &str) {
    (member.kind.rank(), &member.kind, member.namespace.as_deref(), &member.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(kind: &str, name: &str, controller: Option<&str>) -> Member {
        Member {
            kind: Kind::parse(kind).unwrap(),
            namespace: None,
            name: name.into(),
            uid: format!("uid-{name}"),
            resource_version: None,
            controller: controller.map(Into::into),
            is_leaving: false,
        }
    }

    fn names(members: &[Member]) -> Vec<&str> {
        members.iter().map(|member| member.name.as_str()).collect()
    }

    #[test]
    fn only_what_the_owner_controls_goes() {
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
    fn what_needs_something_goes_before_it() {
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
        let resource = Kind::parse("deployments.v1.apps").unwrap().resource();
        assert_eq!((resource.api_version.as_str(), resource.plural.as_str()), ("apps/v1", "deployments"));
    }
}
