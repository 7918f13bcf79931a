//! Whether a policy or webhook matches a request: rules, exclusions and selectors.

use super::facts::Facts;
use crate::{refusal::Refusal, served::Served};
use api::{
    label_selector::{LabelSelector, Selector},
    object,
};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{collections::BTreeMap, sync::Arc};

/// Operations on resources.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct OperationRule {
    operations: Vec<String>,
    api_groups: Vec<String>,
    api_versions: Vec<String>,
    resources: Vec<String>,
    scope: Option<String>,
    resource_names: Vec<String>,
}

/// All criteria that a request must match.
#[derive(Clone, Debug)]
pub(super) struct Criteria {
    rules: Vec<OperationRule>,
    excluded: Vec<OperationRule>,
    namespaces: Selector,
    objects: Selector,
    /// `matchPolicy: Equivalent`: a rule for one version matches all.
    is_for_equivalents: bool,
    /// Whether an empty list of rules matches everything.
    is_open: bool,
}

/// Policies or webhooks by resource name, so that requests which match none cost next to nothing.
#[derive(Debug)]
pub(super) struct ByResource<T> {
    all: Vec<Arc<T>>,
    by_resource: BTreeMap<String, Vec<usize>>,
    for_any: Vec<usize>,
}

impl OperationRule {
    fn fits(&self, facts: &Facts<'_>, face: &Served, object: &Value) -> bool {
        let has = |list: &[String], wanted: &str| list.iter().any(|it| it == "*" || it == wanted);
        let is_in_cluster = facts.is_namespace() || facts.namespace(object).is_empty();
        let fits_scope = match self.scope.as_deref() {
            None | Some("*") => true,
            Some("Namespaced") => !is_in_cluster,
            Some("Cluster") => is_in_cluster,
            Some(_) => false,
        };
        let fits_resource = |it: &String| {
            let (name, sub) = it.split_once('/').unwrap_or((it, ""));
            (name == "*" || name == face.resource.name) && (sub == "*" || sub == facts.subresource())
        };
        fits_scope
            && has(&self.operations, facts.operation())
            && has(&self.api_groups, &face.resource.group)
            && has(&self.api_versions, &face.resource.version)
            && self.resources.iter().any(fits_resource)
            && (self.resource_names.is_empty()
                || self.resource_names.iter().any(|it| it == facts.name(object)))
    }
}

impl Criteria {
    /// A webhook without rules matches nothing.
    pub(super) fn of_webhook(webhook: &Value) -> Criteria {
        Criteria { rules: rules(&webhook["rules"]), is_open: false, ..Criteria::of_policy(webhook) }
    }

    /// Reads `matchConstraints` or `matchResources`.
    pub(super) fn of_policy(matched: &Value) -> Criteria {
        Criteria {
            rules: rules(&matched["resourceRules"]),
            excluded: rules(&matched["excludeResourceRules"]),
            namespaces: selector(&matched["namespaceSelector"]),
            objects: selector(&matched["objectSelector"]),
            is_for_equivalents: matched["matchPolicy"] == "Equivalent",
            is_open: true,
        }
    }

    /// The resource names that it may match; `None` for any.
    fn resources(&self) -> Option<Vec<&str>> {
        if self.rules.is_empty() && self.is_open {
            return None;
        }
        let all = self.rules.iter().flat_map(|rule| &rule.resources);
        let names: Vec<&str> = all.map(|it| it.split('/').next().unwrap_or_default()).collect();
        if names.contains(&"*") { None } else { Some(names) }
    }

    /// The version to evaluate in, if the request matches.
    pub(super) async fn matches(
        &self,
        facts: &Facts<'_>,
        object: &Value,
    ) -> Result<Option<Arc<Served>>, Refusal> {
        if self.find(&self.excluded, facts, object).await?.is_some() {
            return Ok(None);
        }
        let face = match self.rules.is_empty() && self.is_open {
            true => Some(Arc::clone(&facts.call.served)),
            false => self.find(&self.rules, facts, object).await?,
        };
        let Some(face) = face else { return Ok(None) };
        let fits = self.fits_object(facts, object) && self.fits_namespace(facts, object).await?;
        Ok(fits.then_some(face))
    }

    async fn find(
        &self,
        rules: &[OperationRule],
        facts: &Facts<'_>,
        object: &Value,
    ) -> Result<Option<Arc<Served>>, Refusal> {
        let own = &facts.call.served;
        if rules.iter().any(|rule| rule.fits(facts, own, object)) {
            return Ok(Some(Arc::clone(own)));
        }
        if !self.is_for_equivalents || rules.is_empty() {
            return Ok(None);
        }
        let others = facts.equivalents().await?;
        let pairs = rules.iter().flat_map(|rule| others.iter().map(move |face| (rule, face)));
        let mut fitting = pairs.filter(|(rule, face)| rule.fits(facts, face, object));
        Ok(fitting.next().map(|(_, face)| Arc::clone(face)))
    }

    fn fits_object(&self, facts: &Facts<'_>, object: &Value) -> bool {
        let fits = |it: &Value| !it.is_null() && matches(&self.objects, it);
        self.objects.is_everything() || fits(object) || facts.old.is_some_and(fits)
    }

    async fn fits_namespace(&self, facts: &Facts<'_>, object: &Value) -> Result<bool, Refusal> {
        if self.namespaces.is_everything() {
            return Ok(true);
        }
        // Kubernetes: the new labels of a Namespace that is written, else those of the stored one.
        if facts.is_namespace() && facts.subresource().is_empty() && !object.is_null() {
            return Ok(matches(&self.namespaces, object));
        }
        let namespace = facts.stored_namespace(object).await?;
        Ok(namespace.is_none_or(|namespace| matches(&self.namespaces, namespace)))
    }
}

impl<T> ByResource<T> {
    pub(super) fn new<'t>(
        all: impl Iterator<Item = &'t Arc<T>>,
        criteria: impl Fn(&T) -> &Criteria,
    ) -> ByResource<T>
    where
        T: 't,
    {
        let mut index = ByResource::default();
        for it in all {
            let at = index.all.len();
            match criteria(it).resources() {
                None => index.for_any.push(at),
                Some(names) => {
                    for name in names {
                        let places = index.by_resource.entry(name.to_owned()).or_default();
                        if places.last() != Some(&at) {
                            places.push(at);
                        }
                    }
                }
            }
            index.all.push(Arc::clone(it));
        }
        index
    }

    /// The candidates in the order in which they are called.
    pub(super) fn candidates(&self, resource: &str) -> Vec<Arc<T>> {
        let named = self.by_resource.get(resource).map(Vec::as_slice).unwrap_or_default();
        let mut places: Vec<usize> = named.iter().chain(&self.for_any).copied().collect();
        places.sort_unstable();
        places.into_iter().map(|at| Arc::clone(&self.all[at])).collect()
    }
}

impl<T> Default for ByResource<T> {
    fn default() -> ByResource<T> {
        ByResource { all: Vec::new(), by_resource: BTreeMap::new(), for_any: Vec::new() }
    }
}

fn rules(list: &Value) -> Vec<OperationRule> {
    Vec::deserialize(list).unwrap_or_default()
}

/// Stored selectors have been validated.
pub(super) fn selector(json: &Value) -> Selector {
    let selector = LabelSelector::deserialize(json).ok();
    selector.and_then(|selector| selector.to_selector().ok()).unwrap_or_default()
}

pub(super) fn matches(selector: &Selector, object: &Value) -> bool {
    match object::labels(object) {
        Some(labels) => selector.matches(labels),
        None => selector.matches(&Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_index_skips_entries_for_other_resources() {
        let of =
            |resources: Value| Arc::new(Criteria::of_webhook(&json!({"rules": [{"resources": resources}]})));
        let all = [
            of(json!(["pods", "pods/status"])),
            of(json!(["*/*"])),
            of(json!(["services"])),
            of(json!([])),
            of(json!(["services/status", "pods"])),
        ];
        let index = ByResource::new(all.iter(), |it| it);
        for (resource, expected) in [("pods", vec![0, 1, 4]), ("services", vec![1, 2, 4]), ("nodes", vec![1])]
        {
            let found = index.candidates(resource);
            let places = found.iter().map(|it| all.iter().position(|one| Arc::ptr_eq(one, it)).unwrap());
            assert_eq!(places.collect::<Vec<_>>(), expected, "{resource}");
        }
    }
}
