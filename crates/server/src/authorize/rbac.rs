//! RBAC: decides by the roles that are bound to the caller.

use super::{
    Attributes, Decision,
    grants::{Binding, CLUSTER, Grants, NAMESPACED, RoleRef},
    rule::Rule,
};
use crate::{authenticate::Caller, live::Live};
use std::sync::Arc;
use store::ReadStore;

/// Roles and bindings, kept current.
#[derive(Debug)]
pub(crate) struct Rbac {
    cluster: Live<Grants>,
    namespaced: Live<Grants>,
}

/// The result of a walk over the rules of some bindings.
#[derive(Debug, Default)]
struct Walk<T> {
    found: T,
    has_ended: bool,
    /// Roles that bindings name and that do not exist.
    missing: Vec<RoleRef>,
    /// Bindings whose role is in the other scope.
    elsewhere: Vec<Arc<Binding>>,
}

impl Default for Rbac {
    fn default() -> Rbac {
        Rbac {
            cluster: Live::new(CLUSTER, Grants::default()),
            namespaced: Live::new(NAMESPACED, Grants::default()),
        }
    }
}

impl Rbac {
    pub(super) async fn decide(
        &self,
        store: &dyn ReadStore,
        caller: &Caller,
        attributes: &Attributes<'_>,
    ) -> Result<Decision, store::Error> {
        let visit = |binding: &Binding, rule: &Rule, found: &mut Option<String>| {
            if rule.allows(attributes) {
                *found = Some(binding.describe(caller));
            }
            found.is_some()
        };
        let walk = self.walk(store, caller, attributes.namespace(), visit).await?;
        Ok(match walk.found.into_iter().flatten().next() {
            Some(binding) => Decision::allow(format!("RBAC: allowed by {binding}")),
            None if walk.missing.is_empty() => Decision::no_opinion(""),
            None => {
                Decision::no_opinion(format!("RBAC: {}", RoleRef::in_one(&walk.missing, RoleRef::missing)))
            }
        })
    }

    /// All rules of the caller in a namespace, and the bound roles that do not exist.
    pub(crate) async fn rules_for(
        &self,
        store: &dyn ReadStore,
        caller: &Caller,
        namespace: &str,
    ) -> Result<(Vec<Rule>, Vec<RoleRef>), store::Error> {
        let keep = |_: &Binding, rule: &Rule, found: &mut Vec<Rule>| {
            found.push(rule.clone());
            false
        };
        let walk = self.walk(store, caller, namespace, keep).await?;
        Ok((walk.found.concat(), walk.missing))
    }

    /// The rules of the role that a binding names.
    pub(crate) async fn rules_of(
        &self,
        store: &dyn ReadStore,
        role: &RoleRef,
        namespace: &str,
    ) -> Result<Option<Vec<Rule>>, store::Error> {
        let (grants, namespace) = match role.is_of_cluster() {
            true => (&self.cluster, ""),
            false => (&self.namespaced, namespace),
        };
        let rules =
            |grants: &Grants| grants.rules(namespace, &role.name).map(|rules| rules.cloned().collect());
        grants.look(store, rules).await
    }

    /// Visits the caller's rules, cluster-wide ones first, until `visit` has seen enough.
    async fn walk<T: Default>(
        &self,
        store: &dyn ReadStore,
        caller: &Caller,
        namespace: &str,
        visit: impl Fn(&Binding, &Rule, &mut T) -> bool,
    ) -> Result<Walk<Vec<T>>, store::Error> {
        let mut all = Walk::default();
        let own = |grants: &Grants| Walk::over(grants, "", grants.bindings("", caller), &visit);
        all.add(self.cluster.look(store, own).await?);
        if all.has_ended || namespace.is_empty() {
            return Ok(all);
        }
        let here =
            |grants: &Grants| Walk::over(grants, namespace, grants.bindings(namespace, caller), &visit);
        let elsewhere = all.add(self.namespaced.look(store, here).await?);
        if !all.has_ended && !elsewhere.is_empty() {
            let there = |grants: &Grants| Walk::over(grants, "", elsewhere.iter(), &visit);
            all.add(self.cluster.look(store, there).await?);
        }
        Ok(all)
    }
}

impl<T: Default> Walk<T> {
    fn over<'a>(
        grants: &Grants,
        namespace: &str,
        bindings: impl Iterator<Item = &'a Arc<Binding>>,
        visit: &impl Fn(&Binding, &Rule, &mut T) -> bool,
    ) -> Walk<T> {
        let mut walk = Walk::default();
        for binding in bindings {
            let role = &binding.role_ref;
            if role.is_of_cluster() != namespace.is_empty() {
                walk.elsewhere.push(Arc::clone(binding));
                continue;
            }
            match grants.rules(namespace, &role.name) {
                None => walk.missing.push(role.clone()),
                Some(mut rules) => walk.has_ended = rules.any(|rule| visit(binding, rule, &mut walk.found)),
            }
            if walk.has_ended {
                break;
            }
        }
        walk
    }
}

impl<T> Walk<Vec<T>> {
    /// Merges another walk; returns the bindings whose role is in the other scope.
    fn add(&mut self, next: Walk<T>) -> Vec<Arc<Binding>> {
        self.found.push(next.found);
        self.has_ended = next.has_ended;
        self.missing.extend(next.missing);
        next.elsewhere
    }
}
