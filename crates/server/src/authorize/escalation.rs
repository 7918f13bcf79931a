//! Privilege escalation check: a user can only grant rights that they have. Runs before a role or binding
//! is written.

use super::{Attributes, OnResource, allows, coverage, grants::RoleRef, is_master, rule, rule::Rule};
use crate::{Inner, authenticate::Caller, refusal::Refusal, request::Target};
use api::{go, kind::GroupResource, object};
use serde::Deserialize;
use serde_json::Value;

const GROUP: &str = "rbac.authorization.k8s.io";

/// A write that may grant rights: who writes which object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) caller: &'a Caller,
    pub(crate) target: &'a Target,
}

impl Grant<'_> {
    /// Rejects a role with more rights than its writer has, and a binding to such a role. Other objects pass.
    pub(crate) async fn check(self, draft: &Value, current: Option<&Value>) -> Result<(), Refusal> {
        let resource = self.target.resource.as_str();
        let is_role = matches!(resource, "roles" | "clusterroles");
        let is_binding = matches!(resource, "rolebindings" | "clusterrolebindings");
        if self.target.group != GROUP || !(is_role || is_binding) || is_master(self.caller) {
            return Ok(());
        }
        if current.is_some_and(|current| changes_only_gc_metadata(draft, current)) {
            return Ok(());
        }
        match is_role {
            true => Box::pin(self.check_role(draft, current)).await,
            false => Box::pin(self.check_binding(draft)).await,
        }
    }

    async fn check_role(self, draft: &Value, current: Option<&Value>) -> Result<(), Refusal> {
        let target = self.target;
        let escalate = OnResource {
            verb: "escalate",
            group: GROUP,
            resource: &target.resource,
            namespace: &target.namespace,
            name: &target.name,
            ..OnResource::default()
        };
        if self.may(escalate).await? {
            return Ok(());
        }
        let name = object::name(draft);
        self.check_held(name, &rule::rules_of(draft)).await?;
        // An aggregationRule can select any role.
        if aggregates(draft) || current.is_some_and(aggregates) {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            let confirmed = self.check_held(name, &Rule::everything()).await;
            confirmed.map_err(|_| Refusal::forbidden(&self.resource(), name, why))?;
        }
        Ok(())
    }

    async fn check_binding(self, draft: &Value) -> Result<(), Refusal> {
        // Validation rejects an undecodable roleRef.
        let Ok(role) = RoleRef::deserialize(&draft["roleRef"]) else { return Ok(()) };
        let namespace = self.target.namespace.as_str();
        let resource = if role.is_of_cluster() { "clusterroles" } else { "roles" };
        let group = if role.api_group.is_empty() { GROUP } else { &role.api_group };
        let bind = OnResource {
            verb: "bind",
            group,
            resource,
            namespace,
            name: &role.name,
            ..OnResource::default()
        };
        if matches!(role.kind.as_str(), "Role" | "ClusterRole") && self.may(bind).await? {
            return Ok(());
        }
        let rules = self.inner.authorizer.rbac.rules_of(self.inner.store.as_ref(), &role, namespace).await;
        let rules = rules?;
        // Kubernetes: the error names the binding, not the role, as missing.
        let rules = rules.ok_or_else(|| Refusal::not_found(&self.resource(), &role.name))?;
        self.check_held(object::name(draft), &rules).await
    }

    async fn may(self, wanted: OnResource<'_>) -> Result<bool, Refusal> {
        let decision = allows(self.inner, self.caller, &Attributes::Resource(wanted)).await?;
        Ok(decision.is_allowed)
    }

    /// Whether the caller has all rights of `rules`.
    async fn check_held(self, name: &str, rules: &[Rule]) -> Result<(), Refusal> {
        let (caller, inner) = (self.caller, self.inner);
        let held =
            inner.authorizer.rbac.rules_for(inner.store.as_ref(), caller, &self.target.namespace).await;
        let (held, lost) = held?;
        let missing = coverage::missing(&held, rules);
        if missing.is_empty() {
            return Ok(());
        }
        let mut text = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            go::quote(&caller.name),
            go::quote_list(&caller.groups),
            missing.join("\n")
        );
        if !lost.is_empty() {
            text.push_str(&format!("; resolution errors: [{}]", RoleRef::in_one(&lost, RoleRef::not_found)));
        }
        Err(Refusal::forbidden(&self.resource(), name, text))
    }

    fn resource(self) -> GroupResource {
        GroupResource::new(&*self.target.group, &*self.target.resource)
    }
}

/// Whether only metadata changes that the garbage collector writes.
fn changes_only_gc_metadata(draft: &Value, current: &Value) -> bool {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        let metadata = object::metadata_mut(&mut object);
        for field in ["ownerReferences", "finalizers", "managedFields", "selfLink"] {
            metadata.remove(field);
        }
        object
    };
    stripped(draft) == stripped(current)
}

fn aggregates(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|them| !them.is_empty())
}
