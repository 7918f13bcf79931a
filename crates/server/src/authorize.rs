//! Whether the caller may: the only place where a [`Permit`] is made.

use crate::{
    authenticate::Caller,
    request::{Target, Verb},
};
use api::status::{Attempt, Status};

/// Proof that somebody may do something. Whoever acts on a resource has one.
#[derive(Debug)]
pub(crate) struct Permit(Caller);

impl Permit {
    /// The same proof, for a part of the same request that lives on by itself.
    pub(crate) fn again(&self) -> Permit {
        Permit(self.0.clone())
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.0
    }
}

// Kubernetes: members may do everything, whatever the rules say.
const MASTERS: &str = "system:masters";
/// Anybody may look at these.
// Kubernetes: what the role system:public-info-viewer allows to everybody.
const PUBLIC: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

pub(crate) fn resource(caller: &Caller, verb: Verb, target: &Target) -> Result<Permit, Status> {
    if is_master(caller) {
        return Ok(Permit(caller.clone()));
    }
    let attempt = Attempt::Resource {
        verb: verb.text(),
        resource: &api::kind::GroupResource::new(target.group.as_str(), target.resource.as_str()),
        subresource: &target.subresource,
        namespace: &target.namespace,
        name: &target.name,
    };
    Err(Status::denied(&caller.name, attempt, ""))
}

pub(crate) fn path(caller: &Caller, method: &str, path: &str) -> Result<(), Status> {
    if is_master(caller) || PUBLIC.contains(&path) {
        return Ok(());
    }
    let verb = method.to_lowercase();
    Err(Status::denied(&caller.name, Attempt::Path { verb: &verb, path }, ""))
}

fn is_master(caller: &Caller) -> bool {
    caller.groups.iter().any(|group| group == MASTERS)
}
