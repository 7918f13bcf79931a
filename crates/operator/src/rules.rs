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
    /// Watches its children of this kind.
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
    pub kind: ApiResource,
    pub uses: Use,
}

impl Declared {
    pub fn of<K>(uses: Use) -> Declared
    where
        K: Resource,
        K::DynamicType: Default,
    {
        Declared { kind: ApiResource::erase::<K>(&K::DynamicType::default()), uses }
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
            Use::Owns | Use::Watches | Use::Reads => &[("", CACHED)],
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
pub fn collect(declared: &[Declared]) -> Vec<PolicyRule> {
    let mut needs: BTreeMap<(&str, String), BTreeSet<&str>> = BTreeMap::new();
    for Declared { kind, uses } in declared {
        for (subresource, verbs) in uses.verbs() {
            let resource = match subresource.is_empty() {
                true => kind.plural.clone(),
                false => format!("{}/{subresource}", kind.plural),
            };
            needs.entry((&kind.group, resource)).or_default().extend(*verbs);
        }
    }
    if !declared.is_empty() {
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
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    pub account: ServiceAccount,
    pub cluster_role: ClusterRole,
    pub cluster_binding: ClusterRoleBinding,
    /// For the lease, in the namespace of the operator.
    pub role: Role,
    pub binding: RoleBinding,
}

impl Access {
    /// For an operator that runs as the service account `name` in `namespace`.
    pub fn new(namespace: &str, name: &str, declared: &[Declared]) -> Access {
        let inside = ObjectMeta {
            name: Some(name.into()),
            namespace: Some(namespace.into()),
            ..ObjectMeta::default()
        };
        // ClusterRoles of all operators share their names: this one has the namespace in it.
        let outside = ObjectMeta { name: Some(format!("{namespace}:{name}")), ..ObjectMeta::default() };
        let subjects = Some(vec![Subject {
            kind: "ServiceAccount".into(),
            namespace: Some(namespace.into()),
            name: name.into(),
            ..Subject::default()
        }]);
        let refers = |kind: &str, meta: &ObjectMeta| RoleRef {
            api_group: Some(RBAC.into()),
            kind: kind.into(),
            name: meta.name.clone().unwrap_or_default(),
        };
        Access {
            account: ServiceAccount { metadata: inside.clone(), ..ServiceAccount::default() },
            cluster_role: ClusterRole {
                metadata: outside.clone(),
                rules: Some(collect(declared)),
                ..ClusterRole::default()
            },
            cluster_binding: ClusterRoleBinding {
                role_ref: refers("ClusterRole", &outside),
                metadata: outside,
                subjects: subjects.clone(),
            },
            role: Role { metadata: inside.clone(), rules: Some(lease()) },
            binding: RoleBinding { role_ref: refers("Role", &inside), metadata: inside, subjects },
        }
    }

    /// All of it as one stream of YAML documents.
    pub fn yaml(&self) -> String {
        [
            document(&self.account),
            document(&self.cluster_role),
            document(&self.cluster_binding),
            document(&self.role),
            document(&self.binding),
        ]
        .join("---\n")
    }
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
        core::v1::{ConfigMap, Secret},
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
            Declared::of::<ConfigMap>(Use::Applies),
            Declared::of::<Secret>(Use::Reads),
            Declared::of::<Secret>(Use::Watches),
        ];
        let expected = [
            ": configmaps: create,delete,get,list,patch,watch",
            ": secrets: get,list,watch",
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
