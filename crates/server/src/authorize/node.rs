//! The node authorizer: a kubelet may manage its own pods, and read the objects that these use.

mod graph;

use super::{Attributes, Decision, OnResource, rule::Rule, rule::rules_of};
use crate::{authenticate::Caller, live::Live};
use graph::{NamespacedName, OfNodes, Pods, Usable, Volumes};
use std::sync::LazyLock;
use store::ReadStore;

use Lookup::Decided;

// Kubernetes: a member of this group with this name prefix is that node.
pub(crate) const NODES: &str = "system:nodes";
pub(crate) const NODE_PREFIX: &str = "system:node:";
const LEASES_OF_NODES: &str = "kube-node-lease";

/// The objects related to nodes. Costs nothing until a node sends a request.
#[derive(Debug)]
pub(crate) struct Nodes {
    pods: Live<Pods>,
    volumes: Live<Volumes>,
    attachments: Live<OfNodes>,
    slices: Live<OfNodes>,
}

impl Default for Nodes {
    fn default() -> Nodes {
        Nodes {
            pods: Live::new("/registry/pods/", Pods::default()),
            volumes: Live::new("/registry/persistentvolumes/", Volumes::default()),
            attachments: Live::new("/registry/volumeattachments/", OfNodes::default()),
            slices: Live::new("/registry/resourceslices/", OfNodes::default()),
        }
    }
}

/// What must be looked up for a decision.
enum Lookup {
    /// Nothing: it is decided.
    Decided(Decision),
    Uses(Usable),
    SecretOfPodOrVolume,
    Volume,
    Attachment,
    Slice,
}

/// The name of the node that a caller is; `None` if it is not a node.
pub(crate) fn identity(caller: &Caller) -> Option<&str> {
    let name = caller.name.strip_prefix(NODE_PREFIX)?;
    caller.groups.iter().any(|group| group == NODES).then_some(name)
}

impl Nodes {
    pub(super) async fn decide(
        &self,
        store: &dyn ReadStore,
        caller: &Caller,
        attributes: &Attributes<'_>,
    ) -> Result<Decision, store::Error> {
        let Some(node) = identity(caller) else { return Ok(no("")) };
        if node.is_empty() {
            return Ok(no(format!("unknown node for user {}", api::go::quote(&caller.name))));
        }
        let Attributes::Resource(wanted) = attributes else { return Ok(by_rules(attributes)) };
        let lookup = match (wanted.group, wanted.resource) {
            ("", "secrets") => read(wanted, Lookup::SecretOfPodOrVolume),
            ("", "configmaps") => read(wanted, Lookup::Uses(Usable::ConfigMap)),
            ("", "persistentvolumeclaims") if wanted.subresource == "status" => update_status(wanted),
            ("", "persistentvolumeclaims") => get(wanted, Lookup::Uses(Usable::Claim)),
            ("", "persistentvolumes") => get(wanted, Lookup::Volume),
            ("resource.k8s.io", "resourceclaims") => get(wanted, Lookup::Uses(Usable::ResourceClaim)),
            ("storage.k8s.io", "volumeattachments") => get(wanted, Lookup::Attachment),
            ("", "serviceaccounts") => account(wanted),
            ("coordination.k8s.io", "leases") => Decided(lease(node, wanted)),
            ("storage.k8s.io", "csinodes") => Decided(csi_node(node, wanted)),
            ("resource.k8s.io", "resourceslices") => slice(node, wanted),
            ("", "nodes") => Decided(own_node(node, wanted)),
            ("", "pods") => pod(node, wanted),
            ("certificates.k8s.io", "podcertificaterequests") => Decided(no("")),
            _ => Decided(by_rules(attributes)),
        };
        match lookup {
            Decided(decision) => Ok(decision),
            _ if wanted.name.is_empty() => Ok(no("No Object name found")),
            lookup => self.related(store, node, wanted, lookup).await,
        }
    }

    async fn related(
        &self,
        store: &dyn ReadStore,
        node: &str,
        wanted: &OnResource<'_>,
        lookup: Lookup,
    ) -> Result<Decision, store::Error> {
        let (namespace, name) = (wanted.namespace, wanted.name);
        let is_related = match lookup {
            Lookup::Uses(usable) => self.use_it(store, node, usable, namespace, name).await?,
            Lookup::Volume => {
                let claim = self.volumes.look(store, |volumes| volumes.claim_of(name)).await?;
                self.claim_one(store, node, claim.as_slice()).await?
            }
            Lookup::SecretOfPodOrVolume => {
                let secret = (namespace.to_owned(), name.to_owned());
                self.use_it(store, node, Usable::Secret, namespace, name).await? || {
                    let claims = self.volumes.look(store, |volumes| volumes.claims_behind(&secret)).await?;
                    self.claim_one(store, node, &claims).await?
                }
            }
            Decided(decision) => return Ok(decision),
            Lookup::Attachment => self.attachments.look(store, |all| all.node_of(name) == Some(node)).await?,
            Lookup::Slice => self.slices.look(store, |all| all.node_of(name) == Some(node)).await?,
        };
        Ok(match is_related {
            true => Decision::allow(""),
            false => no(format!("no relationship found between node '{node}' and this object")),
        })
    }

    async fn use_it(
        &self,
        store: &dyn ReadStore,
        node: &str,
        usable: Usable,
        namespace: &str,
        name: &str,
    ) -> Result<bool, store::Error> {
        self.pods.look(store, |pods| pods.reach(node, usable, namespace, name)).await
    }

    async fn claim_one(
        &self,
        store: &dyn ReadStore,
        node: &str,
        claims: &[NamespacedName],
    ) -> Result<bool, store::Error> {
        let reach = |pods: &Pods| {
            claims.iter().any(|(namespace, claim)| pods.reach(node, Usable::Claim, namespace, claim))
        };
        self.pods.look(store, reach).await
    }
}

fn no(reason: impl Into<String>) -> Decision {
    Decision::no_opinion(reason)
}

/// The rules for all nodes.
fn by_rules(attributes: &Attributes<'_>) -> Decision {
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let roles = kinds::bootstrap().filter(|(path, _)| path.ends_with("/clusterroles"));
        let mut roles = roles.filter_map(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok());
        roles
            .find(|role| api::object::name(role) == "system:node")
            .map(|role| rules_of(&role))
            .unwrap_or_default()
    });
    if RULES.iter().any(|rule| rule.allows(attributes)) { Decision::allow("") } else { no("") }
}

/// A get of one namespaced object, or a list or watch that selects it by name.
fn read(wanted: &OnResource<'_>, lookup: Lookup) -> Lookup {
    match wanted {
        _ if !["get", "list", "watch"].contains(&wanted.verb) => {
            Decided(no("can only read resources of this type"))
        }
        _ if !wanted.subresource.is_empty() => Decided(no("cannot read subresource")),
        _ if wanted.namespace.is_empty() => Decided(no("can only read namespaced object of this type")),
        _ => lookup,
    }
}

fn get(wanted: &OnResource<'_>, lookup: Lookup) -> Lookup {
    match wanted {
        _ if wanted.verb != "get" => Decided(no("can only get individual resources of this type")),
        _ if !wanted.subresource.is_empty() => Decided(no("cannot get subresource")),
        _ => lookup,
    }
}

fn update_status(wanted: &OnResource<'_>) -> Lookup {
    match wanted.verb {
        "update" | "patch" => Lookup::Uses(Usable::Claim),
        _ => Decided(no("can only get/update/patch this type")),
    }
}

fn account(wanted: &OnResource<'_>) -> Lookup {
    match (wanted.verb, wanted.subresource) {
        ("get", "") => read(wanted, Lookup::Uses(Usable::ServiceAccount)),
        ("create", "token") if !wanted.name.is_empty() => Lookup::Uses(Usable::ServiceAccount),
        ("create", _) if !wanted.name.is_empty() => {
            Decided(no("can only create token subresource of serviceaccount"))
        }
        _ => Decided(no("can only create tokens for individual service accounts")),
    }
}

// Kubernetes: a create has no name here; an admission plugin checks it.
fn own(node: &str, wanted: &OnResource<'_>, refusal: &str) -> Decision {
    if wanted.verb == "create" || wanted.name == node { Decision::allow("") } else { no(refusal) }
}

const WRITES: [&str; 5] = ["get", "create", "update", "patch", "delete"];

fn lease(node: &str, wanted: &OnResource<'_>) -> Decision {
    match wanted {
        _ if !WRITES.contains(&wanted.verb) => {
            no("can only get, create, update, patch, or delete a node lease")
        }
        _ if wanted.namespace != LEASES_OF_NODES => {
            no(format!("can only access leases in the \"{LEASES_OF_NODES}\" system namespace"))
        }
        _ => own(node, wanted, "can only access node lease with the same name as the requesting node"),
    }
}

fn csi_node(node: &str, wanted: &OnResource<'_>) -> Decision {
    match wanted {
        _ if !WRITES.contains(&wanted.verb) => no("can only get, create, update, patch, or delete a CSINode"),
        _ if !wanted.subresource.is_empty() => no("cannot authorize CSINode subresources"),
        _ => own(node, wanted, "can only access CSINode with the same name as the requesting node"),
    }
}

fn slice(node: &str, wanted: &OnResource<'_>) -> Lookup {
    if !wanted.subresource.is_empty() {
        return Decided(no("cannot authorize ResourceSlice subresources"));
    }
    match wanted.verb {
        "create" => Decided(Decision::allow("")),
        "get" | "update" | "patch" | "delete" => Lookup::Slice,
        "watch" | "list" | "deletecollection" if selects(wanted, node) => Decided(Decision::allow("")),
        "watch" | "list" | "deletecollection" => {
            Decided(no("can only list/watch/deletecollection resourceslices with nodeName field selector"))
        }
        _ => Decided(no(
            "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
             delete, deletecollection",
        )),
    }
}

fn own_node(node: &str, wanted: &OnResource<'_>) -> Decision {
    match (wanted.subresource, wanted.verb) {
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Decision::allow(""),
        ("", "get" | "list" | "watch") => match wanted.name {
            "" => no(format!("node '{node}' cannot read all nodes, only its own Node object")),
            name if name == node => Decision::allow(""),
            name => no(format!("node '{node}' cannot read '{name}', only its own Node object")),
        },
        _ => no(""),
    }
}

fn pod(node: &str, wanted: &OnResource<'_>) -> Lookup {
    match (wanted.subresource, wanted.verb) {
        ("", "get") => Lookup::Uses(Usable::Pod),
        ("", "list" | "watch") if selects(wanted, node) => Decided(Decision::allow("")),
        ("", "list" | "watch") if !wanted.name.is_empty() => Lookup::Uses(Usable::Pod),
        ("", "list" | "watch") => Decided(no("can only list/watch pods with spec.nodeName field selector")),
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
            Decided(Decision::allow(""))
        }
        _ => Decided(no("")),
    }
}

/// Whether the request selects only objects of the node.
fn selects(wanted: &OnResource<'_>, node: &str) -> bool {
    wanted.fields.is_some_and(|fields| fields.required_value("spec.nodeName") == Some(node))
}
