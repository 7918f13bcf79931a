//! The resources that the server serves: for loops that work with every kind, also with those of tomorrow.

use kube::{
    Client,
    core::{ApiResource, discovery::v2::APIGroupDiscoveryList},
};
use std::collections::{BTreeMap, BTreeSet};

/// One resource of one version of its API group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) api: ApiResource,
    pub(crate) is_namespaced: bool,
    verbs: BTreeSet<String>,
}

/// What discovery answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovered {
    /// All versions, by apiVersion and kind.
    by_kind: BTreeMap<(String, String), Resource>,
    /// The preferred version of each resource, by group and plural.
    preferred: BTreeMap<(String, String), Resource>,
    /// The apiVersions whose resources are not known now, because their own server does not answer.
    pub(crate) stale: BTreeSet<String>,
}

/// Asks the server which resources there are.
pub(crate) async fn discover(client: &Client) -> Result<Discovered, kube::Error> {
    let core = client.list_core_api_versions_aggregated().await?;
    let named = client.list_api_groups_aggregated().await?;
    let mut discovered = Discovered::default();
    discovered.add(core);
    discovered.add(named);
    Ok(discovered)
}

impl Resource {
    pub(crate) fn has_verbs(&self, verbs: &[&str]) -> bool {
        verbs.iter().all(|verb| self.verbs.contains(*verb))
    }

    pub(crate) fn is(&self, group: &str, plural: &str) -> bool {
        self.api.group == group && self.api.plural == plural
    }
}

impl Discovered {
    /// The preferred version of every resource, sorted by group and plural.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &Resource> {
        self.preferred.values()
    }

    pub(crate) fn serves(&self, group: &str, plural: &str) -> bool {
        self.preferred.contains_key(&(group.to_owned(), plural.to_owned()))
    }

    /// The resource of a kind in exactly this version.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.by_kind.get(&(api_version.to_owned(), kind.to_owned()))
    }

    fn add(&mut self, list: APIGroupDiscoveryList) {
        for group in list.items {
            let name = group.metadata.and_then(|metadata| metadata.name).unwrap_or_default();
            // The preferred version comes first.
            for version in group.versions {
                let number = version.version.unwrap_or_default();
                let api_version = if name.is_empty() { number.clone() } else { format!("{name}/{number}") };
                if version.freshness.as_deref() == Some("Stale") {
                    self.stale.insert(api_version);
                    continue;
                }
                for found in version.resources {
                    let kind = found.response_kind.and_then(|response| response.kind).unwrap_or_default();
                    let plural = found.resource.unwrap_or_default();
                    let resource = Resource {
                        api: ApiResource {
                            group: name.clone(),
                            version: number.clone(),
                            api_version: api_version.clone(),
                            kind: kind.clone(),
                            plural: plural.clone(),
                        },
                        is_namespaced: found.scope.as_deref() == Some("Namespaced"),
                        verbs: found.verbs.into_iter().collect(),
                    };
                    self.preferred.entry((name.clone(), plural)).or_insert_with(|| resource.clone());
                    self.by_kind.entry((api_version.clone(), kind)).or_insert(resource);
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_version_that_has_a_resource_is_preferred_and_stale_versions_are_left_out() {
        let resource = |plural: &str, kind: &str| json!({"resource": plural, "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": ["get", "list"]});
        let list = json!({"items": [
            {"metadata": {"name": "shop.io"}, "versions": [
                {"version": "v2", "freshness": "Current", "resources": [resource("carts", "Cart")]},
                {"version": "v1", "freshness": "Current", "resources": [resource("carts", "Cart"), resource("bags", "Bag")]}]},
            {"metadata": {"name": "down.io"}, "versions": [
                {"version": "v1", "freshness": "Stale", "resources": [resource("lost", "Lost")]}]}]});
        let mut discovered = Discovered::default();
        discovered.add(serde_json::from_value(list).unwrap());
        let preferred: Vec<String> =
            discovered.preferred().map(|it| format!("{} {}", it.api.plural, it.api.version)).collect();
        assert_eq!(preferred, ["bags v1", "carts v2"]);
        assert!(discovered.of_kind("shop.io/v1", "Cart").is_some());
        assert!(discovered.of_kind("shop.io/v3", "Cart").is_none());
        assert!(discovered.serves("shop.io", "carts") && !discovered.serves("down.io", "lost"));
        assert_eq!(discovered.stale.iter().collect::<Vec<_>>(), ["down.io/v1"]);
        let carts = discovered.of_kind("shop.io/v2", "Cart").unwrap();
        assert!(
            carts.has_verbs(&["get"]) && !carts.has_verbs(&["get", "delete"]) && carts.is("shop.io", "carts")
        );
    }
}
