//! Whether the caller may: the only place where a [`Permit`] is made.
//!
//! Members of one group may do everything; then the rules for nodes are asked, then the roles that are bound to the
//! caller. The first that allows decides, and what nobody allows is refused.

mod coverage;
pub(crate) mod escalation;
mod grants;
pub(crate) mod impersonate;
mod node;
mod rbac;
mod rule;
#[cfg(test)]
mod tests;

pub(crate) use grants::RoleRef;
pub(crate) use node::identity as node_identity;
pub(crate) use rule::{Rule, quoted};

use crate::{
    Inner,
    audit::Trail,
    authenticate::Caller,
    refusal::Refusal,
    request::{Options, Place, Target, Verb},
};
use api::{field_selector, kind::GroupResource, name::Format, status::Attempt};
use http::request::Parts;
use node::Nodes;
use rbac::Rbac;
use std::sync::Arc;

/// Proof that a caller may do something with what a path names. A [`Call`](crate::call::Call) is made of it.
#[derive(Debug)]
pub(crate) struct Permit {
    caller: Arc<Caller>,
    /// `None` where the method of the request has no meaning.
    verb: Option<Verb>,
    target: Target,
}

impl Permit {
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Who may do it, and with what. Only the verb that was asked about is permitted.
    pub(crate) fn redeem(self, verb: Verb) -> Result<(Arc<Caller>, Target), Refusal> {
        match self.verb == Some(verb) {
            true => Ok((self.caller, self.target)),
            false => Err(Refusal::internal_error("the permit is for another verb")),
        }
    }
}

/// The server itself, which may do everything.
pub(crate) fn itself() -> Arc<Caller> {
    Arc::new(Caller::known("system:apiserver", "", vec![MASTERS.to_owned()]))
}

/// What somebody wants to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attributes<'a> {
    Resource(OnResource<'a>),
    /// `get` of `/healthz`: the method, in lower case, on a path that names no resource.
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

/// A verb on a resource. What is empty is not said: no name is every name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnResource<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) fields: Option<&'a field_selector::Selector>,
}

/// What the rules say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) is_allowed: bool,
    /// Which binding allows it, or what went wrong; often nothing.
    pub(crate) reason: String,
}

/// Everything that decides on access.
#[derive(Debug, Default)]
pub(crate) struct Authorizer {
    pub(crate) rbac: Rbac,
    nodes: Nodes,
    impersonations: impersonate::LastAllowedModes,
}

// Kubernetes: what the audit log is told of a decision.
const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

// Kubernetes: members may do everything, whatever the rules say.
pub(crate) const MASTERS: &str = "system:masters";

impl<'a> Attributes<'a> {
    fn namespace(&self) -> &'a str {
        match self {
            Attributes::Resource(wanted) => wanted.namespace,
            Attributes::Path { .. } => "",
        }
    }

    /// The refusal of it.
    pub(crate) fn denied(&self, caller: &Caller, why: &str) -> Refusal {
        match self {
            Attributes::Path { verb, path } => {
                Refusal::denied(&caller.name, Attempt::Path { verb, path }, why)
            }
            Attributes::Resource(wanted) => {
                let attempt = Attempt::Resource {
                    verb: wanted.verb,
                    resource: &GroupResource::new(wanted.group, wanted.resource),
                    subresource: wanted.subresource,
                    namespace: wanted.namespace,
                    name: wanted.name,
                };
                Refusal::denied(&caller.name, attempt, why)
            }
        }
    }
}

impl<'a> OnResource<'a> {
    /// What a request asks for.
    pub(crate) fn of(verb: Verb, target: &'a Target, options: &'a Options) -> OnResource<'a> {
        let is_selection =
            matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) && !target.old_watch;
        let fields = is_selection.then_some(&options.fields);
        // Kubernetes: who selects one object by its name may be allowed that one. Not so when deleting.
        let selected = fields
            .filter(|_| verb != Verb::DeleteCollection)
            .and_then(|it| it.required_value("metadata.name"));
        let selected = selected.filter(|name| Format::PathSegment.fits(name));
        let name = if target.name.is_empty() { selected.unwrap_or_default() } else { &target.name };
        // Kubernetes: a namespace lies in itself.
        let is_namespace = target.group.is_empty() && target.resource == "namespaces";
        OnResource {
            verb: verb.text(),
            group: &target.group,
            resource: &target.resource,
            subresource: target.subresource.split('/').next().unwrap_or_default(),
            namespace: if is_namespace { &target.name } else { &target.namespace },
            name,
            fields,
        }
    }
}

impl<'a> OnResource<'a> {
    /// What a request by any method asks for.
    // Kubernetes: where the method means nothing the verb is empty, and is asked about all the same.
    pub(crate) fn by_method(verb: Option<Verb>, target: &'a Target, options: &'a Options) -> OnResource<'a> {
        match verb {
            Some(verb) => OnResource::of(verb, target, options),
            None => OnResource { verb: "", ..OnResource::of(Verb::Get, target, options) },
        }
    }
}

impl Decision {
    fn allow(reason: impl Into<String>) -> Decision {
        Decision { is_allowed: true, reason: reason.into() }
    }

    fn no_opinion(reason: impl Into<String>) -> Decision {
        Decision { is_allowed: false, reason: reason.into() }
    }
}

/// Whom a request is from: the caller, or whom they act as. Fairness and everything after it see only that one.
pub(crate) async fn act_as(
    inner: &Inner,
    caller: Arc<Caller>,
    head: &mut Parts,
    place: &Place,
    options: &Options,
) -> Result<Arc<Caller>, Refusal> {
    let Some(wanted) = impersonate::wanted(&head.headers)? else { return Ok(caller) };
    let method = head.method.as_str().to_lowercase();
    let attributes = match place {
        Place::Other(path) => Attributes::Path { verb: &method, path },
        Place::Resource(target) => {
            let verb = target.verb(&head.method, options.watch);
            Attributes::Resource(OnResource::by_method(verb, target, options))
        }
    };
    let acting = Box::pin(impersonate::impersonate(inner, &caller, &wanted, &attributes)).await?;
    impersonate::take_out(&mut head.headers);
    Trail::of(head).acts_as(&acting);
    Ok(Arc::new(acting.caller))
}

/// Whether a request for a resource may go on. Where its method means nothing, that is told only to who may.
pub(crate) async fn resource(
    inner: &Inner,
    caller: Arc<Caller>,
    trail: &Trail,
    verb: Option<Verb>,
    target: Target,
    options: &Options,
) -> Result<Permit, Refusal> {
    let attributes = Attributes::Resource(OnResource::by_method(verb, &target, options));
    decide(inner, &caller, trail, &attributes).await?;
    Ok(Permit { caller, verb, target })
}

/// Whether a request for anything else may go on.
pub(crate) async fn path(inner: &Inner, caller: &Caller, head: &Parts, path: &str) -> Result<(), Refusal> {
    let verb = head.method.as_str().to_lowercase();
    decide(inner, caller, Trail::of(head), &Attributes::Path { verb: &verb, path }).await
}

/// Refuses what is not allowed, and leaves a note of why.
async fn decide(
    inner: &Inner,
    caller: &Caller,
    trail: &Trail,
    attributes: &Attributes<'_>,
) -> Result<(), Refusal> {
    let decision = allows(inner, caller, attributes).await.inspect_err(|_| {
        trail.note(REASON, || "internal error".to_owned());
    })?;
    trail.note(DECISION, || if decision.is_allowed { "allow" } else { "forbid" }.to_owned());
    trail.note(REASON, || decision.reason.clone());
    if decision.is_allowed { Ok(()) } else { Err(attributes.denied(caller, &decision.reason)) }
}

/// Refuses what is not allowed.
pub(crate) async fn demand(
    inner: &Inner,
    caller: &Caller,
    attributes: &Attributes<'_>,
) -> Result<(), Refusal> {
    let decision = allows(inner, caller, attributes).await?;
    if decision.is_allowed { Ok(()) } else { Err(attributes.denied(caller, &decision.reason)) }
}

/// Asks the rules, as of now. Fails only where they cannot be read.
pub(crate) async fn allows(
    inner: &Inner,
    caller: &Caller,
    attributes: &Attributes<'_>,
) -> Result<Decision, Refusal> {
    if is_master(caller) {
        return Ok(Decision::allow(""));
    }
    let (store, authorizer) = (inner.store.as_ref(), &inner.authorizer);
    let of_node = authorizer.nodes.decide(store, caller, attributes).await?;
    if of_node.is_allowed {
        return Ok(of_node);
    }
    let mut decision = authorizer.rbac.decide(store, caller, attributes).await?;
    if !decision.is_allowed && !of_node.reason.is_empty() {
        let reasons = [of_node.reason.as_str(), &decision.reason];
        decision.reason = reasons.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n");
    }
    Ok(decision)
}

pub(crate) fn is_master(caller: &Caller) -> bool {
    caller.groups.iter().any(|group| group == MASTERS)
}
