//! Authorization: the only place that makes a [`Permit`].
//!
//! Members of system:masters may do everything; then the modes decide, by default the node authorizer and
//! RBAC. The first that allows decides; a request that none allows is rejected.

mod coverage;
pub(crate) mod escalation;
mod grants;
pub(crate) mod impersonate;
mod mode;
mod node;
mod rbac;
mod rule;
#[cfg(test)]
mod tests;

pub(crate) use grants::RoleRef;
pub use mode::{AuthorizationMode, BadAuthorizationMode};
pub(crate) use node::identity as node_identity;
pub(crate) use rule::Rule;

use crate::{
    Inner,
    audit_trail::Trail,
    authenticate::Caller,
    refusal::Refusal,
    request::{Options, Place, Target, Verb},
};
use api::{field_selector, kind::GroupResource, name::Format, status::Attempt};
use http::request::Parts;
use node::Nodes;
use rbac::Rbac;
use std::sync::Arc;

/// Proof that a caller may do something with the target of a path. A [`Call`](crate::call::Call) is made
/// from it.
#[derive(Debug)]
pub(crate) struct Permit {
    caller: Arc<Caller>,
    /// `None` where the method is not supported for the target.
    verb: Option<Verb>,
    target: Target,
}

impl Permit {
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn verb(&self) -> Option<Verb> {
        self.verb
    }

    /// For a request that a proxy passes on whatever its method: one without a verb goes the way of a read. Only who
    /// may do everything with the target has got a permit for it.
    pub(crate) fn passed_on(mut self) -> Permit {
        self.verb.get_or_insert(Verb::Get);
        self
    }

    /// The caller and target. Only the verb that was authorized is permitted.
    pub(crate) fn redeem(self, verb: Verb) -> Result<(Arc<Caller>, Target), Refusal> {
        match self.verb == Some(verb) {
            true => Ok((self.caller, self.target)),
            false => Err(Refusal::internal_error("the permit is for another verb")),
        }
    }
}

/// The server itself, which may do everything.
pub(crate) fn server_caller() -> Arc<Caller> {
    Arc::new(Caller::known("system:apiserver", "", vec![MASTERS.to_owned()]))
}

/// The request to authorize.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attributes<'a> {
    Resource(OnResource<'a>),
    /// `get` of `/healthz`: the method in lower case, on a path that names no resource.
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

/// A verb on a resource. Empty fields are unset: no name means all names.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnResource<'a> {
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) fields: Option<&'a field_selector::FieldSelector>,
}

/// An authorizer's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) is_allowed: bool,
    /// The binding that allows it, or an error; often empty.
    pub(crate) reason: String,
}

/// All authorizers.
#[derive(Debug)]
pub(crate) struct Authorizer {
    pub(crate) modes: Vec<AuthorizationMode>,
    pub(crate) rbac: Rbac,
    nodes: Nodes,
    impersonations: impersonate::LastAllowedModes,
}

impl Default for Authorizer {
    fn default() -> Authorizer {
        Authorizer::new(vec![AuthorizationMode::Node, AuthorizationMode::Rbac])
    }
}

impl Authorizer {
    pub(crate) fn new(modes: Vec<AuthorizationMode>) -> Authorizer {
        Authorizer {
            modes,
            rbac: Rbac::default(),
            nodes: Nodes::default(),
            impersonations: impersonate::LastAllowedModes::default(),
        }
    }
}

// Kubernetes: audit annotations of the decision.
const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

// Kubernetes: members may do everything, whatever the roles.
pub(crate) const MASTERS: &str = "system:masters";

impl<'a> Attributes<'a> {
    fn namespace(&self) -> &'a str {
        match self {
            Attributes::Resource(wanted) => wanted.namespace,
            Attributes::Path { .. } => "",
        }
    }

    /// The 403 for this request.
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
    /// The attributes of a request.
    pub(crate) fn of(verb: Verb, target: &'a Target, options: &'a Options) -> OnResource<'a> {
        let is_selection =
            matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection) && !target.old_watch;
        let fields = is_selection.then_some(&options.fields);
        // Kubernetes: a list that selects one object by name is authorized for that name. Not for
        // deletecollection.
        let selected = fields
            .filter(|_| verb != Verb::DeleteCollection)
            .and_then(|it| it.required_value("metadata.name"));
        let selected = selected.filter(|name| Format::PathSegment.fits(name));
        let name = if target.name.is_empty() { selected.unwrap_or_default() } else { &target.name };
        // Kubernetes: the namespace of a Namespace is itself.
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
    /// The attributes of a request with any method.
    // Kubernetes: an unsupported method has an empty verb, and is authorized all the same.
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

/// The user of a request: the caller, or the user that they impersonate. Fairness and all later stages see
/// only that user.
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
    impersonate::remove_headers(&mut head.headers);
    Trail::of(head).acts_as(&acting.caller, &acting.constraint);
    Ok(Arc::new(acting.caller))
}

/// Authorizes a request for a resource. An unsupported method is reported only to authorized callers.
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

/// Authorizes a request for any other path.
pub(crate) async fn path(inner: &Inner, caller: &Caller, head: &Parts, path: &str) -> Result<(), Refusal> {
    let verb = head.method.as_str().to_lowercase();
    decide(inner, caller, Trail::of(head), &Attributes::Path { verb: &verb, path }).await
}

/// Rejects what is not allowed, and adds the decision to the audit event.
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

/// Rejects what is not allowed.
pub(crate) async fn demand(
    inner: &Inner,
    caller: &Caller,
    attributes: &Attributes<'_>,
) -> Result<(), Refusal> {
    let decision = allows(inner, caller, attributes).await?;
    if decision.is_allowed { Ok(()) } else { Err(attributes.denied(caller, &decision.reason)) }
}

/// Asks the authorizers. Fails only where roles or bindings cannot be read.
pub(crate) async fn allows(
    inner: &Inner,
    caller: &Caller,
    attributes: &Attributes<'_>,
) -> Result<Decision, Refusal> {
    if is_master(caller) {
        return Ok(Decision::allow(""));
    }
    let (store, authorizer) = (inner.store.as_ref(), &inner.authorizer);
    let mut reasons = Vec::new();
    for mode in &authorizer.modes {
        let decision = match mode {
            AuthorizationMode::Node => authorizer.nodes.decide(store, caller, attributes).await?,
            AuthorizationMode::Rbac => authorizer.rbac.decide(store, caller, attributes).await?,
            AuthorizationMode::AlwaysAllow => Decision::allow(""),
            // Kubernetes: its text.
            AuthorizationMode::AlwaysDeny => Decision::no_opinion("Everything is forbidden."),
        };
        if decision.is_allowed {
            return Ok(decision);
        }
        reasons.push(decision.reason);
    }
    reasons.retain(|reason| !reason.is_empty());
    Ok(Decision::no_opinion(reasons.join("\n")))
}

pub(crate) fn is_master(caller: &Caller) -> bool {
    caller.groups.iter().any(|group| group == MASTERS)
}
