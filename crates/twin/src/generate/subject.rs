//! The resources of the stories: every built-in one with a manifest, and many custom ones.

use crate::{json::Json, story::Request};
use kinds::resources::Scope;
use schema::types::TypeId;
use std::sync::LazyLock;

static MANIFESTS: &str = include_str!("../../data/manifests.txt");
static DEFINITIONS: &str = include_str!("../../data/definitions.txt");
pub(super) const CUSTOM_GROUP: &str = "twin.example.com";

/// A resource in one version, with an object that both servers accept.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    /// The members other than `apiVersion`, `kind` and `metadata`.
    pub(super) content: Json,
    /// Whether fields other than metadata are mutable.
    pub(super) changeable: bool,
    pub(super) subresources: Vec<String>,
    pub(super) shape: Shape,
}

/// The type or schema, for generating members.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    BuiltIn(TypeId),
    /// The schema of a custom resource.
    Custom(Json),
}

impl Subject {
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    fn root(&self) -> String {
        let prefix = if self.group.is_empty() { "/api" } else { "/apis" };
        format!("{prefix}/{}", self.api_version())
    }

    /// The collection in the story's namespace, or of the cluster.
    pub(super) fn collection(&self) -> String {
        let scope = if self.namespaced { "/namespaces/{ns}" } else { "" };
        format!("{}{scope}/{}", self.root(), self.resource)
    }

    pub(super) fn everywhere(&self) -> String {
        format!("{}/{}", self.root(), self.resource)
    }

    /// Cluster-scoped names contain the letters of the run.
    pub(super) fn name(&self, letter: &str) -> String {
        if self.namespaced { letter.to_owned() } else { format!("{letter}-{{id}}") }
    }

    /// The name inside `{rv:…}`.
    pub(super) fn key(&self, letter: &str) -> String {
        if self.namespaced { letter.to_owned() } else { format!("{letter}-<id>") }
    }

    pub(super) fn path(&self, letter: &str) -> String {
        format!("{}/{}", self.collection(), self.name(letter))
    }

    pub(super) fn object(&self, letter: &str) -> Json {
        let mut object = Json::Object(Vec::new());
        object.set("apiVersion", Json::text(&self.api_version()));
        object.set("kind", Json::text(&self.kind));
        object.set_at(&["metadata", "name"], Json::text(&self.name(letter)));
        object.set_at(&["metadata", "labels", "story"], Json::text("{id}"));
        for (name, value) in self.content.members().iter().filter(|(name, _)| name != "metadata") {
            object.set(name, value.clone());
        }
        object
    }

    pub(super) fn is_custom(&self) -> bool {
        matches!(self.shape, Shape::Custom(_))
    }
}

/// Every subject, built-in ones first.
pub(super) fn subjects() -> &'static [Subject] {
    static SUBJECTS: LazyLock<Vec<Subject>> = LazyLock::new(|| {
        let built_in = lines(MANIFESTS).filter_map(built_in);
        let custom = definitions().iter().flat_map(custom);
        built_in.chain(custom).collect()
    });
    &SUBJECTS
}

/// The definitions of the custom subjects.
pub(super) fn definitions() -> &'static [Json] {
    static ALL: LazyLock<Vec<Json>> = LazyLock::new(|| lines(DEFINITIONS).filter_map(definition).collect());
    &ALL
}

/// Creates a definition, and waits until it is served.
pub(super) fn define(definition: &Json) -> Vec<crate::story::Step> {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let name = definition.text_at(&["metadata", "name"]).unwrap_or_default();
    let group = definition.text_at(&["spec", "group"]).unwrap_or_default();
    let mut steps = vec![Request::new("POST", path).json(definition.clone()).uncompared()];
    steps.push(Request::new("GET", format!("{path}/{name}")).until("\"type\":\"Established\""));
    let plural = definition.text_at(&["spec", "names", "plural"]).unwrap_or_default();
    for version in definition.at(&["spec", "versions"]).map(Json::items).unwrap_or_default() {
        if version.get("served") == Some(&Json::Bool(true)) {
            let version = version.text_at(&["name"]).unwrap_or_default();
            let path = format!("/apis/{group}/{version}");
            steps.push(Request::new("GET", path.clone()).until(&format!("\"{plural}\"")));
            steps.push(Request::new("GET", format!("{path}/{plural}")).until("\"items\""));
        }
    }
    steps
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

fn built_in(line: &'static str) -> Option<Subject> {
    let mut words = line.splitn(4, ' ');
    let (group, version) = words.next()?.split_once('/')?;
    let (resource, how) = (words.next()?, words.next()?);
    let content = Json::literal(words.next()?);
    let found = kinds::resources()
        .iter()
        .find(|it| (&*it.group, &*it.version, &*it.name) == (group, version, resource))?;
    let (of, _) = kinds::types().kind(group, version, &found.kind)?;
    Some(Subject {
        group: group.to_owned(),
        version: version.to_owned(),
        resource: resource.to_owned(),
        kind: found.kind.to_string(),
        namespaced: found.scope == Scope::Namespaced,
        content,
        changeable: how == "any",
        subresources: found.subresources.iter().map(|it| it.name.to_string()).collect(),
        shape: Shape::BuiltIn(of),
    })
}

fn definition(line: &'static str) -> Option<Json> {
    let mut words = line.splitn(4, ' ');
    let (kind, plural, scope) = (words.next()?, words.next()?, words.next()?);
    let mut spec = Json::literal(words.next()?);
    spec.set("group", Json::text(CUSTOM_GROUP));
    spec.set("scope", Json::text(if scope == "Cluster" { "Cluster" } else { "Namespaced" }));
    spec.set_at(&["names", "kind"], Json::text(kind));
    spec.set_at(&["names", "plural"], Json::text(plural));
    let mut definition = Json::literal(
        r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{}}"#,
    );
    definition.set_at(&["metadata", "name"], Json::text(&format!("{plural}.{CUSTOM_GROUP}")));
    definition.set("spec", spec);
    Some(definition)
}

/// One subject for each served version of a definition.
pub(super) fn custom(definition: &Json) -> Vec<Subject> {
    let text = |path: &[&str]| definition.text_at(path).unwrap_or_default();
    let versions = definition.at(&["spec", "versions"]).map(Json::items).unwrap_or_default();
    let served = versions.iter().filter(|version| version.get("served") == Some(&Json::Bool(true)));
    served
        .map(|version| Subject {
            group: text(&["spec", "group"]),
            version: version.text_at(&["name"]).unwrap_or_default(),
            resource: text(&["spec", "names", "plural"]),
            kind: text(&["spec", "names", "kind"]),
            namespaced: text(&["spec", "scope"]) == "Namespaced",
            content: Json::Object(Vec::new()),
            changeable: true,
            subresources: version
                .get("subresources")
                .map(|it| it.members().iter().map(|(name, _)| name.clone()).collect())
                .unwrap_or_default(),
            shape: Shape::Custom(version.at(&["schema", "openAPIV3Schema"]).cloned().unwrap_or(Json::Null)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_manifest_is_of_a_served_resource_and_well_written() {
        let built_in = subjects().iter().filter(|subject| !subject.is_custom()).count();
        assert_eq!(built_in, lines(MANIFESTS).count());
        for subject in subjects() {
            assert!(!subject.content.to_string().contains("not JSON"), "{subject:?}");
        }
    }

    #[test]
    fn every_definition_gives_a_subject_for_each_served_version() {
        assert_eq!(definitions().len(), lines(DEFINITIONS).count());
        assert_eq!(custom(&definitions()[5]).len(), 3);
        for definition in definitions() {
            assert!(!definition.to_string().contains("not JSON"), "{definition}");
        }
    }
}
