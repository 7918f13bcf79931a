//! The RBAC rules that controllers need for the kinds they declare: no verb more.

use k8s_openapi::{
    api::{
        core::v1::ServiceAccount,
        rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::core::{ApiResource, Resource};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

const RBAC: &str = "rbac.authorization.k8s.io";

/// What a controller does with a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Use {
    /// Reconciles it: reads it, sets finalizers, writes its status, and makes it the owner of children.
    For,
    /// Watches its children of this kind, applies and prunes them.
    Owns,
    /// Watches other objects of this kind.
    Watches,
    /// Reads it through the cache.
    Reads,
    /// Applies and prunes it.
    Applies,
}

/// A kind, and what a controller does with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Declared {
    /// The kind.
    pub kind: ApiResource,
    /// What it does with it.
    pub uses: Use,
    /// The name of the cluster; `None` is the manager's own, for which the rules are.
    pub cluster: Option<String>,
    /// Only in these namespaces; if it is empty, in all.
    pub namespaces: BTreeSet<String>,
}

impl Declared {
    /// What a controller does with a kind that has a Rust type.
    pub fn of<K>(uses: Use) -> Declared
    where
        K: Resource,
        K::DynamicType: Default,
    {
        Declared::of_kind(&ApiResource::erase::<K>(&K::DynamicType::default()), uses)
    }

    /// [`Declared::of`] for a kind that is known only when the program runs.
    pub fn of_kind(kind: &ApiResource, uses: Use) -> Declared {
        Declared { kind: kind.clone(), uses, cluster: None, namespaces: BTreeSet::new() }
    }
}

impl Use {
    /// The verbs, by subresource; the empty one is the object itself.
    fn verbs(self) -> &'static [(&'static str, &'static [&'static str])] {
        const CACHED: &[&str] = &["get", "list", "watch"];
        match self {
            Use::For => &[
                ("", &["get", "list", "patch", "watch"]),
                ("status", &["patch", "update"]),
                // Kubernetes: required to create children with blockOwnerDeletion.
                ("finalizers", &["update"]),
            ],
            Use::Owns => &[("", &["create", "delete", "get", "list", "patch", "watch"])],
            Use::Watches | Use::Reads => &[("", CACHED)],
            Use::Applies => &[("", &["create", "delete", "get", "list", "patch"])],
        }
    }
}

/// The rules for the declared kinds and for recording events: merged and sorted, so that the order of the
/// declarations does not matter.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use operator::rules::{Declared, Use, collect};
///
/// let rules = collect(&[Declared::of::<Pod>(Use::Watches), Declared::of::<ConfigMap>(Use::Reads)]);
/// assert_eq!(rules[0].resources.as_deref(), Some(&["configmaps".to_string(), "pods".to_string()][..]));
/// assert_eq!(rules[0].verbs, ["get", "list", "watch"]);
/// ```
pub fn collect<'a>(declared: impl IntoIterator<Item = &'a Declared>) -> Vec<PolicyRule> {
    let mut needs: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for Declared { kind, uses, .. } in declared.into_iter().filter(|it| it.cluster.is_none()) {
        for (subresource, verbs) in uses.verbs() {
            let resource = match subresource.is_empty() {
                true => kind.plural.clone(),
                false => format!("{}/{subresource}", kind.plural),
            };
            needs.entry((&kind.group, resource)).or_default().extend(*verbs);
        }
    }
    if !needs.is_empty() {
        needs.entry(("events.k8s.io", "events".into())).or_default().extend(["create", "patch"]);
    }
    merge(needs)
}

/// The rules for leader election, for the namespace of the operator only.
pub fn lease() -> Vec<PolicyRule> {
    let verbs = BTreeSet::from(["create", "get", "patch", "update"]);
    merge(BTreeMap::from([(("coordination.k8s.io", "leases".into()), verbs)]))
}

/// One rule for all resources of a group that need the same verbs.
fn merge(needs: BTreeMap<(&str, String), BTreeSet<&str>>) -> Vec<PolicyRule> {
    let mut rules: BTreeMap<(&str, BTreeSet<&str>), Vec<String>> = BTreeMap::new();
    for ((group, resource), verbs) in needs {
        rules.entry((group, verbs)).or_default().push(resource);
    }
    let mut rules: Vec<_> = rules.into_iter().collect();
    rules.sort_by(|((group, _), resources), ((other_group, _), others)| {
        (group, resources).cmp(&(other_group, others))
    });
    let rule = |((group, verbs), resources): ((&str, BTreeSet<&str>), Vec<String>)| PolicyRule {
        api_groups: Some(vec![group.into()]),
        resources: Some(resources),
        verbs: verbs.into_iter().map(Into::into).collect(),
        ..PolicyRule::default()
    };
    rules.into_iter().map(rule).collect()
}

/// The service account, roles and bindings of an operator.
///
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use operator::{Context, Controller, Failure, Key, Next, all, rules::Access};
///
/// async fn reconcile(_: Context<()>, _: Key) -> Result<Next, Failure> { Ok(Next::Settled) }
///
/// let maps = all::<ConfigMap>().in_namespace("prod");
/// let controller = Controller::new("web", maps).owns(all::<Secret>().in_namespace("prod")).reconcile((), reconcile);
/// let access = Access::new("ops", "web", controller.declared());
/// assert!(access.cluster.is_none(), "it may do nothing outside of `prod`, but for its lease in `ops`");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Its account.
    pub account: ServiceAccount,
    /// For kinds that are declared in all namespaces; `None` if there are no such kinds.
    pub cluster: Option<(ClusterRole, ClusterRoleBinding)>,
    /// For kinds that are declared in some namespaces, one for each namespace; and for the lease, in the namespace
    /// of the operator.
    pub roles: Vec<(Role, RoleBinding)>,
}

impl Access {
    /// For an operator that runs as the service account `name` in `namespace`, and has its lease there.
    pub fn new(namespace: &str, name: &str, declared: &[Declared]) -> Access {
        Access::bare(namespace, name).with_kinds(declared).with_rules_in(namespace, lease())
    }

    /// An account that may do nothing.
    pub(crate) fn bare(namespace: &str, name: &str) -> Access {
        let account = ServiceAccount { metadata: named(Some(namespace), name), ..ServiceAccount::default() };
        Access { account, cluster: None, roles: Vec::new() }
    }

    /// Adds what these kinds need.
    pub(crate) fn with_kinds(self, declared: &[Declared]) -> Access {
        let everywhere = collect(declared.iter().filter(|it| it.namespaces.is_empty()));
        let namespaces: BTreeSet<&String> = declared.iter().flat_map(|it| &it.namespaces).collect();
        namespaces.into_iter().fold(self.with_cluster_rules(everywhere), |access, namespace| {
            let rules = collect(declared.iter().filter(|it| it.namespaces.contains(namespace)));
            let name = access.full_name();
            access.with_role(namespace, name, rules)
        })
    }

    /// Adds rules for all namespaces, as [`Webhooks::rules`](crate::webhook::Webhooks::rules).
    pub fn with_cluster_rules(mut self, rules: Vec<PolicyRule>) -> Access {
        if rules.is_empty() {
            return self;
        }
        // ClusterRoles of all operators share their names: this one has the namespace in it.
        let metadata = named(None, &self.full_name());
        let (role_ref, subjects) = (refers("ClusterRole", &metadata), self.subjects());
        let role = || ClusterRole { metadata: metadata.clone(), ..ClusterRole::default() };
        let binding = || ClusterRoleBinding { role_ref, metadata: metadata.clone(), subjects };
        let (role, _) = self.cluster.get_or_insert_with(|| (role(), binding()));
        role.rules.get_or_insert_default().extend(rules);
        self
    }

    /// Adds rules for one namespace, under the name of the account.
    pub fn with_rules_in(self, namespace: &str, rules: Vec<PolicyRule>) -> Access {
        let name = self.account.metadata.name.clone().unwrap_or_default();
        self.with_role(namespace, name, rules)
    }

    fn with_role(mut self, namespace: &str, name: String, rules: Vec<PolicyRule>) -> Access {
        if rules.is_empty() {
            return self;
        }
        let metadata = named(Some(namespace), &name);
        if let Some((role, _)) = self.roles.iter_mut().find(|(role, _)| role.metadata == metadata) {
            role.rules.get_or_insert_default().extend(rules);
            return self;
        }
        let (role_ref, subjects) = (refers("Role", &metadata), self.subjects());
        let binding = RoleBinding { role_ref, metadata: metadata.clone(), subjects };
        self.roles.push((Role { metadata, rules: Some(rules) }, binding));
        self
    }

    /// A name that no operator of another namespace has.
    fn full_name(&self) -> String {
        let ObjectMeta { namespace, name, .. } = &self.account.metadata;
        format!("{}:{}", namespace.as_deref().unwrap_or_default(), name.as_deref().unwrap_or_default())
    }

    fn subjects(&self) -> Option<Vec<Subject>> {
        let ObjectMeta { namespace, name, .. } = self.account.metadata.clone();
        let name = name.unwrap_or_default();
        Some(vec![Subject { kind: "ServiceAccount".into(), namespace, name, ..Subject::default() }])
    }

    /// All of it as one stream of YAML documents.
    pub fn yaml(&self) -> String {
        self.documents().join("---\n")
    }

    pub(crate) fn documents(&self) -> Vec<String> {
        let mut documents = vec![document(&self.account)];
        if let Some((role, binding)) = &self.cluster {
            documents.extend([document(role), document(binding)]);
        }
        for (role, binding) in &self.roles {
            documents.extend([document(role), document(binding)]);
        }
        documents
    }
}

fn named(namespace: Option<&str>, name: &str) -> ObjectMeta {
    let namespace = namespace.map(str::to_owned);
    ObjectMeta { name: Some(name.to_owned()), namespace, ..ObjectMeta::default() }
}

fn refers(kind: &str, role: &ObjectMeta) -> RoleRef {
    let name = role.name.clone().unwrap_or_default();
    RoleRef { api_group: Some(RBAC.into()), kind: kind.into(), name }
}

pub(crate) fn document(object: &impl Serialize) -> String {
    let mut text = serde_saphyr::to_string(object).expect("an object of Kubernetes has a YAML form");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Secret, Service},
    };

    fn show(rules: &[PolicyRule]) -> Vec<String> {
        let line = |rule: &PolicyRule| {
            let groups = rule.api_groups.as_deref().unwrap_or_default().join(",");
            let resources = rule.resources.as_deref().unwrap_or_default().join(",");
            format!("{groups}: {resources}: {}", rule.verbs.join(","))
        };
        rules.iter().map(line).collect()
    }

    #[test]
    fn rules_are_merged_and_minimal() {
        let declared = [
            Declared::of::<Deployment>(Use::For),
            Declared::of::<ConfigMap>(Use::Owns),
            Declared::of::<Service>(Use::Applies),
            Declared::of::<Secret>(Use::Reads),
            Declared::of::<Secret>(Use::Watches),
        ];
        let expected = [
            ": configmaps: create,delete,get,list,patch,watch",
            ": secrets: get,list,watch",
            ": services: create,delete,get,list,patch",
            "apps: deployments: get,list,patch,watch",
            "apps: deployments/finalizers: update",
            "apps: deployments/status: patch,update",
            "events.k8s.io: events: create,patch",
        ];
        assert_eq!(show(&collect(&declared)), expected);
        let mut backwards = declared.to_vec();
        backwards.reverse();
        assert_eq!(show(&collect(&backwards)), expected);
        assert_eq!(collect(&[]), []);
    }

    #[test]
    fn access_is_five_documents() {
        let yaml = Access::new("ops", "web", &[Declared::of::<ConfigMap>(Use::Reads)]).yaml();
        assert_eq!(yaml, include_str!("rules/access.yaml"));
    }
}
