//! What a node may do: look after its own pods, and read what these need.

mod graph;

use super::{Attributes, Decision, OnResource, rule::Rule, rule::rules_of};
use crate::{authenticate::Caller, live::Live};
use graph::{Named, OfNodes, Pods, Usable, Volumes};
use std::sync::LazyLock;
use store::ReadStore;

use Ask::Settled;

// Kubernetes: who belongs to the group and is called so is that node.
pub(crate) const NODES: &str = "system:nodes";
pub(crate) const NODE_PREFIX: &str = "system:node:";
const LEASES_OF_NODES: &str = "kube-node-lease";

/// What nodes have to do with, as of now. Costs nothing until a node asks.
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

/// What has to be looked up before there is an answer.
enum Ask {
    /// Nothing: this is the answer.
    Settled(Decision),
    Uses(Usable),
    SecretOfPodOrVolume,
    Volume,
    Attachment,
    Slice,
}

type Answer = Result<Decision, store::Error>;

/// The node that a caller is, and whether it is one at all.
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
    ) -> Answer {
        let Some(node) = identity(caller) else { return Ok(no("")) };
        if node.is_empty() {
            return Ok(no(format!("unknown node for user {}", api::go::quote(&caller.name))));
        }
        let Attributes::Resource(wanted) = attributes else { return Ok(by_rules(attributes)) };
        let asked = match (wanted.group, wanted.resource) {
            ("", "secrets") => read(wanted, Ask::SecretOfPodOrVolume),
            ("", "configmaps") => read(wanted, Ask::Uses(Usable::ConfigMap)),
            ("", "persistentvolumeclaims") if wanted.subresource == "status" => update_status(wanted),
            ("", "persistentvolumeclaims") => get(wanted, Ask::Uses(Usable::Claim)),
            ("", "persistentvolumes") => get(wanted, Ask::Volume),
            ("resource.k8s.io", "resourceclaims") => get(wanted, Ask::Uses(Usable::ResourceClaim)),
            ("storage.k8s.io", "volumeattachments") => get(wanted, Ask::Attachment),
            ("", "serviceaccounts") => account(wanted),
            ("coordination.k8s.io", "leases") => Settled(lease(node, wanted)),
            ("storage.k8s.io", "csinodes") => Settled(csi_node(node, wanted)),
            ("resource.k8s.io", "resourceslices") => slice(node, wanted),
            ("", "nodes") => Settled(own_node(node, wanted)),
            ("", "pods") => pod(node, wanted),
            ("certificates.k8s.io", "podcertificaterequests") => Settled(no("")),
            _ => Settled(by_rules(attributes)),
        };
        match asked {
            Settled(decision) => Ok(decision),
            _ if wanted.name.is_empty() => Ok(no("No Object name found")),
            ask => self.related(store, node, wanted, ask).await,
        }
    }

    async fn related(&self, store: &dyn ReadStore, node: &str, wanted: &OnResource<'_>, ask: Ask) -> Answer {
        let (namespace, name) = (wanted.namespace, wanted.name);
        let is_related = match ask {
            Ask::Uses(sort) => self.use_it(store, node, sort, namespace, name).await?,
            Ask::Volume => {
                let claim = self.volumes.look(store, |volumes| volumes.claim_of(name)).await?;
                self.claim_one(store, node, claim.as_slice()).await?
            }
            Ask::SecretOfPodOrVolume => {
                let secret = (namespace.to_owned(), name.to_owned());
                self.use_it(store, node, Usable::Secret, namespace, name).await? || {
                    let claims = self.volumes.look(store, |volumes| volumes.claims_behind(&secret)).await?;
                    self.claim_one(store, node, &claims).await?
                }
            }
            Settled(decision) => return Ok(decision),
            Ask::Attachment => self.attachments.look(store, |all| all.node_of(name) == Some(node)).await?,
            Ask::Slice => self.slices.look(store, |all| all.node_of(name) == Some(node)).await?,
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
        sort: Usable,
        namespace: &str,
        name: &str,
    ) -> Result<bool, store::Error> {
        self.pods.look(store, |pods| pods.reach(node, sort, namespace, name)).await
    }

    async fn claim_one(
        &self,
        store: &dyn ReadStore,
        node: &str,
        claims: &[Named],
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

/// What every node may do alike.
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

/// Reads one object of a namespace, also by way of a list that selects it.
fn read(wanted: &OnResource<'_>, ask: Ask) -> Ask {
    match wanted {
        _ if !["get", "list", "watch"].contains(&wanted.verb) => {
            Settled(no("can only read resources of this type"))
        }
        _ if !wanted.subresource.is_empty() => Settled(no("cannot read subresource")),
        _ if wanted.namespace.is_empty() => Settled(no("can only read namespaced object of this type")),
        _ => ask,
    }
}

fn get(wanted: &OnResource<'_>, ask: Ask) -> Ask {
    match wanted {
        _ if wanted.verb != "get" => Settled(no("can only get individual resources of this type")),
        _ if !wanted.subresource.is_empty() => Settled(no("cannot get subresource")),
        _ => ask,
    }
}

fn update_status(wanted: &OnResource<'_>) -> Ask {
    match wanted.verb {
        "update" | "patch" => Ask::Uses(Usable::Claim),
        _ => Settled(no("can only get/update/patch this type")),
    }
}

fn account(wanted: &OnResource<'_>) -> Ask {
    match (wanted.verb, wanted.subresource) {
        ("get", "") => read(wanted, Ask::Uses(Usable::ServiceAccount)),
        ("create", "token") if !wanted.name.is_empty() => Ask::Uses(Usable::ServiceAccount),
        ("create", _) if !wanted.name.is_empty() => {
            Settled(no("can only create token subresource of serviceaccount"))
        }
        _ => Settled(no("can only create tokens for individual service accounts")),
    }
}

// Kubernetes: a create does not say the name here; an admission plugin looks at it.
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

fn slice(node: &str, wanted: &OnResource<'_>) -> Ask {
    if !wanted.subresource.is_empty() {
        return Settled(no("cannot authorize ResourceSlice subresources"));
    }
    match wanted.verb {
        "create" => Settled(Decision::allow("")),
        "get" | "update" | "patch" | "delete" => Ask::Slice,
        "watch" | "list" | "deletecollection" if selects(wanted, node) => Settled(Decision::allow("")),
        "watch" | "list" | "deletecollection" => {
            Settled(no("can only list/watch/deletecollection resourceslices with nodeName field selector"))
        }
        _ => Settled(no(
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

fn pod(node: &str, wanted: &OnResource<'_>) -> Ask {
    match (wanted.subresource, wanted.verb) {
        ("", "get") => Ask::Uses(Usable::Pod),
        ("", "list" | "watch") if selects(wanted, node) => Settled(Decision::allow("")),
        ("", "list" | "watch") if !wanted.name.is_empty() => Ask::Uses(Usable::Pod),
        ("", "list" | "watch") => Settled(no("can only list/watch pods with spec.nodeName field selector")),
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => {
            Settled(Decision::allow(""))
        }
        _ => Settled(no("")),
    }
}

/// Whether only what belongs to the node is asked for.
fn selects(wanted: &OnResource<'_>, node: &str) -> bool {
    wanted.fields.is_some_and(|fields| fields.required_value("spec.nodeName") == Some(node))
}
