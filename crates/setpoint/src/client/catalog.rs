//! What a server serves, and how the words on a command line name it.

use super::{
    api::{Api, Call, percent},
    failure::{ClientError, ClientResult},
};
use serde_json::Value;

const DISCOVERY: &str =
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io,application/json";

/// A resource of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServedResource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    verbs: Vec<String>,
    pub(crate) is_namespaced: bool,
}

impl ServedResource {
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// `deployment.apps`: how kubectl names the type of an object.
    pub(crate) fn type_name(&self) -> String {
        type_name(&self.kind, &self.group)
    }

    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|known| known == verb)
    }

    /// The path of the collection: of a namespace, or of all without one.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        };
        match namespace {
            Some(namespace) if self.is_namespaced => {
                format!("{root}/namespaces/{}/{}", percent(namespace), self.plural)
            }
            _ => format!("{root}/{}", self.plural),
        }
    }

    /// The path of one object.
    pub(crate) fn object_path(&self, namespace: Option<&str>, name: &str) -> String {
        format!("{}/{}", self.path(namespace), percent(name))
    }

    fn has_name(&self, name: &str) -> bool {
        self.plural == name || self.singular == name || self.kind.eq_ignore_ascii_case(name)
    }
}

/// `deployment.apps`, or `pod` in the core group.
pub(crate) fn type_name(kind: &str, group: &str) -> String {
    let kind = kind.to_lowercase();
    if group.is_empty() { kind } else { format!("{kind}.{group}") }
}

/// The group of an apiVersion.
pub(crate) fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Everything that a server serves: groups in its order, versions of a group by preference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    resources: Vec<ServedResource>,
}

impl Catalog {
    pub(crate) async fn load(api: &Api) -> ClientResult<Catalog> {
        let [core, groups] = ["/api", "/apis"].map(|path| api.json(Call::get(path, DISCOVERY)));
        let (core, groups) = futures::join!(core, groups);
        let (core, groups) = (core?, groups?);
        if core["kind"] != "APIGroupDiscoveryList" {
            return Err(ClientError::error("this needs a server of Kubernetes v1.30 or later"));
        }
        Ok(Catalog::read(&[core, groups]))
    }

    fn read(lists: &[Value]) -> Catalog {
        let mut resources = Vec::new();
        for group in lists.iter().flat_map(|list| list["items"].as_array().into_iter().flatten()) {
            let name = text(&group["metadata"]["name"]);
            for version in group["versions"].as_array().into_iter().flatten() {
                let number = text(&version["version"]);
                let found = version["resources"].as_array().into_iter().flatten();
                resources.extend(found.map(|resource| read(&name, &number, resource)));
            }
        }
        Catalog { resources }
    }

    /// What a word such as `po`, `deployments.apps` or `cronjobs.v1.batch` names.
    pub(crate) fn find(&self, word: &str) -> ClientResult<&ServedResource> {
        let wanted = word.to_lowercase();
        let mut parts = wanted.splitn(3, '.');
        let (name, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        if let (Some(version), Some(group)) = (second, third) {
            let exact =
                self.matching(name, |resource| resource.version == version && resource.group == group);
            if let Some(found) = exact {
                return Ok(found);
            }
        }
        let found = match wanted.split_once('.') {
            None => self.matching(&wanted, |_| true),
            Some((name, group)) => self
                .matching(name, |resource| resource.group == group)
                .or_else(|| self.matching(name, |resource| resource.group.starts_with(group))),
        };
        // Kubernetes: kubectl names the resource alone.
        found.ok_or_else(|| ClientError::error(format!("the server doesn't have a resource type \"{name}\"")))
    }

    /// A full name counts more than a short name.
    fn matching(&self, name: &str, fits: impl Fn(&ServedResource) -> bool) -> Option<&ServedResource> {
        let full = self.resources.iter().find(|resource| resource.has_name(name) && fits(resource));
        full.or_else(|| {
            let is_short =
                |resource: &&ServedResource| resource.short_names.iter().any(|short| short == name);
            self.resources.iter().filter(is_short).find(|resource| fits(resource))
        })
    }

    pub(crate) fn for_kind(&self, api_version: &str, kind: &str) -> Option<&ServedResource> {
        self.resources.iter().find(|resource| resource.kind == kind && resource.api_version() == api_version)
    }

    /// The resources of a category such as `all`, each in its preferred version.
    pub(crate) fn category(&self, name: &str) -> Vec<&ServedResource> {
        self.preferred().filter(|resource| resource.categories.iter().any(|known| known == name)).collect()
    }

    /// Each resource once, in the preferred of its versions.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &ServedResource> {
        let first = |at: usize, resource: &ServedResource| {
            !self.resources[..at]
                .iter()
                .any(|other| other.group == resource.group && other.plural == resource.plural)
        };
        self.resources
            .iter()
            .enumerate()
            .filter(move |(at, resource)| first(*at, resource))
            .map(|(_, resource)| resource)
    }
}

fn read(group: &str, version: &str, resource: &Value) -> ServedResource {
    let kind = &resource["responseKind"];
    // A resource may answer with a kind of another group: a scale, an eviction.
    ServedResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: text(&kind["kind"]),
        plural: text(&resource["resource"]),
        singular: text(&resource["singularResource"]),
        short_names: texts(&resource["shortNames"]),
        categories: texts(&resource["categories"]),
        verbs: texts(&resource["verbs"]),
        is_namespaced: resource["scope"] == "Namespaced",
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn catalog() -> Catalog {
        let resource = |plural: &str, kind: &str, short: &[&str], categories: &[&str]| {
            json!({"resource": plural, "singularResource": kind.to_lowercase(), "scope": "Namespaced",
                "responseKind": {"kind": kind}, "shortNames": short, "categories": categories, "verbs": ["get"]})
        };
        let group = |name: &str, versions: &[(&str, Vec<Value>)]| {
            let versions: Vec<_> =
                versions.iter().map(|(name, found)| json!({"version": name, "resources": found})).collect();
            json!({"metadata": {"name": name}, "versions": versions})
        };
        let core =
            vec![resource("pods", "Pod", &["po"], &["all"]), resource("events", "Event", &["ev"], &[])];
        let apps = vec![resource("deployments", "Deployment", &["deploy"], &["all"])];
        let other = vec![resource("events", "Event", &[], &[])];
        let disks = vec![resource("disks", "Disk", &["po"], &["all"])];
        Catalog::read(&[
            json!({"items": [group("", &[("v1", core)])]}),
            json!({"items": [
                group("apps", &[("v1", apps)]),
                group("events.k8s.io", &[("v1", other)]),
                group("example.com", &[("v2", disks.clone()), ("v1", disks)]),
            ]}),
        ])
    }

    #[test]
    fn words_name_resources_as_for_kubectl() {
        let catalog = catalog();
        for (word, expected) in [
            ("pods", "/api/v1/pods"),
            ("Pod", "/api/v1/pods"),
            ("po", "/api/v1/pods"),
            ("ev", "/api/v1/events"),
            ("events.events.k8s.io", "/apis/events.k8s.io/v1/events"),
            ("deploy", "/apis/apps/v1/deployments"),
            ("deployments.v1.apps", "/apis/apps/v1/deployments"),
            ("deployment.apps", "/apis/apps/v1/deployments"),
            ("disk", "/apis/example.com/v2/disks"),
            ("disks.v1.example.com", "/apis/example.com/v1/disks"),
            ("disks.example", "/apis/example.com/v2/disks"),
            ("po.example.com", "/apis/example.com/v2/disks"),
        ] {
            assert_eq!(catalog.find(word).unwrap().path(None), expected, "{word}");
        }
        let missing = |word| catalog.find(word).unwrap_err().to_string();
        assert_eq!(missing("x"), "error: the server doesn't have a resource type \"x\"");
        assert_eq!(missing("x.y"), "error: the server doesn't have a resource type \"x\"");
        let all: Vec<_> = catalog.category("all").iter().map(|found| found.type_name()).collect();
        assert_eq!(all, ["pod", "deployment.apps", "disk.example.com"]);
    }
}
