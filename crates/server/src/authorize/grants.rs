//! Roles and bindings of one scope, indexed by subject: a decision costs what the caller has, not what
//! exists.

use super::rule::{Rule, rules_of};
use crate::{authenticate::Caller, live::Fold, stored::Stored};
use api::{go, label_selector, object};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, OnceLock},
};

/// Key prefixes in the store: roles and bindings of a scope, and no other relevant objects.
pub(super) const CLUSTER: &str = "/registry/clusterrole";
pub(super) const NAMESPACED: &str = "/registry/role";

/// The ClusterRoles and ClusterRoleBindings, or the Roles and RoleBindings of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// By namespace (empty for cluster scope) and name.
    roles: HashMap<String, BTreeMap<String, Role>>,
    bindings: HashMap<String, Scope>,
    /// Rules of aggregated roles; computed at the first use after a change.
    aggregated: OnceLock<BTreeMap<String, Vec<Rule>>>,
}

#[derive(Debug)]
struct Role {
    rules: Vec<Rule>,
    labels: BTreeMap<String, String>,
    aggregates: Vec<label_selector::Selector>,
}

/// The bindings of one namespace, by name and by subject.
#[derive(Debug, Default)]
struct Scope {
    named: HashMap<String, Arc<Binding>>,
    users: HashMap<String, BindingsByName>,
    groups: HashMap<String, BindingsByName>,
}

type BindingsByName = BTreeMap<String, Arc<Binding>>;

/// A decoded binding.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Binding {
    metadata: BindingMetadata,
    pub(crate) role_ref: RoleRef,
    #[serde(default)]
    subjects: Option<Vec<Subject>>,
}

#[derive(Debug, Deserialize)]
struct BindingMetadata {
    name: String,
    #[serde(default)]
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleRef {
    #[serde(default)]
    pub(crate) api_group: String,
    #[serde(default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) name: String,
}

#[derive(Debug, Deserialize)]
struct Subject {
    kind: String,
    name: String,
    #[serde(default)]
    namespace: String,
}

impl RoleRef {
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.kind == "ClusterRole"
    }

    /// The text for a role that does not exist.
    // Kubernetes: authorizers have the singular, writers the plural.
    pub(crate) fn missing(&self) -> String {
        let resource = self.kind.to_lowercase();
        format!("{resource}.rbac.authorization.k8s.io {} not found", go::quote(&self.name))
    }

    pub(crate) fn not_found(&self) -> String {
        let resource = self.kind.to_lowercase();
        format!("{resource}s.rbac.authorization.k8s.io {} not found", go::quote(&self.name))
    }

    /// One text for several missing roles, each once.
    // Kubernetes: Go's format of aggregated errors.
    pub(crate) fn in_one(roles: &[RoleRef], words: fn(&RoleRef) -> String) -> String {
        let mut texts: Vec<String> = Vec::new();
        for role in roles.iter().map(words) {
            if !texts.contains(&role) {
                texts.push(role);
            }
        }
        match &texts[..] {
            [only] => only.clone(),
            _ => format!("[{}]", texts.join(", ")),
        }
    }
}

impl Subject {
    /// The user name of a subject; service accounts are users.
    fn user(&self, binding_namespace: &str) -> Option<String> {
        match self.kind.as_str() {
            "User" => Some(self.name.clone()),
            "ServiceAccount" => {
                let namespace = if self.namespace.is_empty() { binding_namespace } else { &self.namespace };
                (!namespace.is_empty()).then(|| Caller::account_name(namespace, &self.name))
            }
            _ => None,
        }
    }

    fn group(&self) -> Option<&str> {
        (self.kind == "Group").then_some(self.name.as_str())
    }
}

impl Binding {
    /// Which binding gives which role to which subject, for the reason of a decision.
    // Kubernetes: name before namespace.
    pub(crate) fn describe(&self, caller: &Caller) -> String {
        let BindingMetadata { name, namespace } = &self.metadata;
        let (kind, called) = match namespace.as_str() {
            "" => ("ClusterRoleBinding", name.clone()),
            namespace => ("RoleBinding", format!("{name}/{namespace}")),
        };
        let role = format!("{} {}", self.role_ref.kind, go::quote(&self.role_ref.name));
        format!("{kind} {} of {role} to {}", go::quote(&called), self.first_subject(caller))
    }

    fn first_subject(&self, caller: &Caller) -> String {
        let namespace = self.metadata.namespace.as_str();
        let mut subjects = self.subjects.iter().flatten();
        let first = subjects.find(|subject| match subject.group() {
            Some(group) => caller.groups.iter().any(|it| it == group),
            None => subject.user(namespace).is_some_and(|user| user == caller.name),
        });
        let Some(subject) = first else { return String::new() };
        let called = match (subject.kind.as_str(), subject.namespace.as_str()) {
            ("ServiceAccount", "") => format!("{}/{namespace}", subject.name),
            ("ServiceAccount", of) => format!("{}/{of}", subject.name),
            _ => subject.name.clone(),
        };
        format!("{} {}", subject.kind, go::quote(&called))
    }
}

impl Grants {
    /// The bindings of a namespace, or of the cluster, with the caller as a subject. One may come twice.
    pub(super) fn bindings<'a>(
        &'a self,
        namespace: &str,
        caller: &'a Caller,
    ) -> impl Iterator<Item = &'a Arc<Binding>> {
        let scope = self.bindings.get(namespace);
        let user = scope.and_then(|scope| scope.users.get(&caller.name));
        let groups = caller.groups.iter().filter_map(move |group| scope?.groups.get(group));
        user.into_iter().chain(groups).flat_map(BTreeMap::values)
    }

    /// The rules of a role, if it exists: its own and aggregated ones.
    pub(super) fn rules(&self, namespace: &str, name: &str) -> Option<impl Iterator<Item = &Rule>> {
        let role = self.roles.get(namespace)?.get(name)?;
        let aggregated = match role.aggregates.is_empty() {
            true => None,
            false => self.aggregated.get_or_init(|| self.aggregate()).get(name),
        };
        Some(role.rules.iter().chain(aggregated.into_iter().flatten()))
    }

    /// Aggregation: for each role with an aggregationRule, the rules of the selected roles that it does not
    /// have itself.
    fn aggregate(&self) -> BTreeMap<String, Vec<Rule>> {
        let Some(roles) = self.roles.get("") else { return BTreeMap::new() };
        let aggregating = roles.iter().filter(|(_, role)| !role.aggregates.is_empty());
        aggregating.map(|(name, role)| (name.clone(), aggregated(name, role, roles))).collect()
    }
}

/// The rules that a role aggregates, also through other aggregated roles.
fn aggregated(name: &str, role: &Role, all: &BTreeMap<String, Role>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut seen = BTreeSet::from([name]);
    let mut open = vec![role];
    while let Some(aggregating) = open.pop() {
        let is_selected =
            |it: &Role| aggregating.aggregates.iter().any(|selector| selector.matches(&it.labels));
        for (other, selected) in all.iter().filter(|(_, it)| is_selected(it)) {
            if !seen.insert(other) {
                continue;
            }
            open.push(selected);
            for rule in &selected.rules {
                if !role.rules.contains(rule) && !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    rules
}

impl Fold for Grants {
    fn clear(&mut self) {
        *self = Grants::default();
    }

    fn put(&mut self, key: &str, object: Stored) {
        let Some(grant) = GrantKey::of(key) else { return };
        self.remove(key);
        match grant.sort {
            GrantKind::Role => {
                // An undecodable role grants nothing.
                let Ok(role) = object.value() else { return };
                let role = Role::read(&role);
                self.roles.entry(grant.namespace.to_owned()).or_default().insert(grant.name.to_owned(), role);
            }
            GrantKind::Binding => {
                let binding = match serde_json::from_slice::<Binding>(&object.json) {
                    Ok(binding) => binding,
                    Err(error) => {
                        tracing::error!(key, %error, "cannot decode stored role binding: it grants nothing");
                        return;
                    }
                };
                let scope = self.bindings.entry(grant.namespace.to_owned()).or_default();
                scope.insert(grant.name, Arc::new(binding));
            }
        }
    }

    fn remove(&mut self, key: &str) {
        let Some(grant) = GrantKey::of(key) else { return };
        match grant.sort {
            GrantKind::Role => {
                self.aggregated = OnceLock::new();
                forget(&mut self.roles, grant.namespace, |roles| {
                    roles.remove(grant.name);
                    roles.is_empty()
                });
            }
            GrantKind::Binding => forget(&mut self.bindings, grant.namespace, |scope| {
                scope.remove(grant.name);
                scope.named.is_empty()
            }),
        }
    }
}

impl Role {
    fn read(role: &Value) -> Role {
        let labels = object::labels(role).into_iter().flatten();
        let labels = labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
        let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array().into_iter().flatten();
        Role {
            rules: rules_of(role),
            labels: labels.collect(),
            aggregates: selectors.filter_map(selector).collect(),
        }
    }
}

/// A selector that can be parsed. An empty selector selects everything.
fn selector(json: &Value) -> Option<label_selector::Selector> {
    let selector = label_selector::LabelSelector::deserialize(json).ok()?;
    selector.to_selector().ok()
}

impl Scope {
    fn insert(&mut self, name: &str, binding: Arc<Binding>) {
        for (is_group, subject) in subjects_of(&binding) {
            let of = if is_group { &mut self.groups } else { &mut self.users };
            of.entry(subject).or_default().insert(name.to_owned(), Arc::clone(&binding));
        }
        self.named.insert(name.to_owned(), binding);
    }

    fn remove(&mut self, name: &str) {
        let Some(binding) = self.named.remove(name) else { return };
        for (is_group, subject) in subjects_of(&binding) {
            let of = if is_group { &mut self.groups } else { &mut self.users };
            forget(of, &subject, |bound| {
                bound.remove(name);
                bound.is_empty()
            });
        }
    }
}

/// Whether each subject is a group, and its name.
fn subjects_of(binding: &Binding) -> Vec<(bool, String)> {
    let namespace = binding.metadata.namespace.as_str();
    let subjects = binding.subjects.iter().flatten();
    subjects
        .filter_map(|subject| match subject.group() {
            Some(group) => Some((true, group.to_owned())),
            None => subject.user(namespace).map(|user| (false, user)),
        })
        .collect()
}

/// Changes the entry of a key, and removes it if nothing is left.
fn forget<T>(map: &mut HashMap<String, T>, key: &str, change: impl FnOnce(&mut T) -> bool) {
    if map.get_mut(key).is_some_and(change) {
        map.remove(key);
    }
}

/// The namespace and name in a key of the store.
struct GrantKey<'a> {
    sort: GrantKind,
    namespace: &'a str,
    name: &'a str,
}

enum GrantKind {
    Role,
    Binding,
}

impl GrantKey<'_> {
    fn of(key: &str) -> Option<GrantKey<'_>> {
        let mut parts = key.strip_prefix("/registry/")?.split('/');
        let (resource, first, second) = (parts.next()?, parts.next()?, parts.next());
        let (sort, is_namespaced) = match resource {
            "roles" => (GrantKind::Role, true),
            "rolebindings" => (GrantKind::Binding, true),
            "clusterroles" => (GrantKind::Role, false),
            "clusterrolebindings" => (GrantKind::Binding, false),
            _ => return None,
        };
        match (is_namespaced, second) {
            (true, Some(name)) => Some(GrantKey { sort, namespace: first, name }),
            (false, None) => Some(GrantKey { sort, namespace: "", name: first }),
            _ => None,
        }
    }
}
