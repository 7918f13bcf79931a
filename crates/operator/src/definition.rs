//! The CustomResourceDefinition of a Rust type, and a review of it.
//!
//! The type and its validation come from kube's `CustomResource` derive. [`review`] checks the result
//! as a server would, so that a test finds problems before an installation does:
//!
//! ```
//! use kube::CustomResource;
//! use operator::definition;
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//!
//! /// A web site.
//! #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Site", namespaced, status = "SiteStatus")]
//! struct SiteSpec {
//!     /// How many to run.
//!     #[schemars(range(min = 1, max = 9))]
//!     replicas: i32,
//! }
//!
//! /// What is known about it.
//! #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! struct SiteStatus {
//!     /// How many run.
//!     replicas: i32,
//! }
//!
//! let site = definition::of::<Site>();
//! assert_eq!(definition::review(&site), []);
//! ```

mod rule;
mod schema;
mod version;

use api::{kind::compare_versions, name::Format};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::crd::{CustomResourceExt, MergeError, merge_crds};
use std::fmt;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The server refuses the definition.
    Refused,
    /// The server accepts it, but it will cause problems.
    Hurts,
}

/// A problem of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The field, as the server writes it.
    pub path: String,
    /// What is wrong, and what to do about it.
    pub message: String,
}

/// The findings so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

/// The definition of one type, in one version.
pub fn of<K: CustomResourceExt>() -> CustomResourceDefinition {
    K::crd()
}

/// One definition for several versions of a type; `stored` is the storage version.
///
/// The versions come in the order in which Kubernetes prefers them: `v2`, `v1`, `v1beta1`.
pub fn merged(
    versions: Vec<CustomResourceDefinition>,
    stored: &str,
) -> Result<CustomResourceDefinition, MergeError> {
    let mut definition = merge_crds(versions, stored)?;
    definition.spec.versions.sort_by(|one, other| compare_versions(&other.name, &one.name));
    Ok(definition)
}

/// The definition as a YAML document.
pub fn yaml(definition: &CustomResourceDefinition) -> String {
    crate::rules::document(definition)
}

/// The problems of a definition, in the order of its fields.
pub fn review(definition: &CustomResourceDefinition) -> Vec<Finding> {
    let mut findings = Findings::default();
    names(definition, &mut findings);
    let versions = &definition.spec.versions;
    let stored = versions.iter().filter(|version| version.storage).count();
    if stored != 1 {
        findings.refused("spec.versions", format!("{stored} versions are stored: must be exactly one"));
    }
    if !versions.iter().any(|version| version.served) {
        findings.hurts("spec.versions", "no version is served");
    }
    for (place, version) in versions.iter().enumerate() {
        if versions[..place].iter().any(|earlier| earlier.name == version.name) {
            findings.refused(
                format!("spec.versions[{place}].name"),
                format!("{:?} is there twice", version.name),
            );
        }
        version::review(&format!("spec.versions[{place}]"), version, &mut findings);
    }
    let is_converted = definition.spec.conversion.as_ref().is_some_and(|how| how.strategy == "Webhook");
    let differs = versions.windows(2).any(|pair| pair[0].schema != pair[1].schema);
    if differs && !is_converted {
        findings.hurts("spec.conversion", "versions differ, but are only relabelled: fields get lost");
    }
    findings.0
}

fn names(definition: &CustomResourceDefinition, findings: &mut Findings) {
    let (spec, names) = (&definition.spec, &definition.spec.names);
    let expected = format!("{}.{}", names.plural, spec.group);
    if definition.metadata.name.as_ref() != Some(&expected) {
        findings.refused("metadata.name", format!("must be {expected:?}"));
    }
    if !spec.group.contains('.') || !Format::Dns1123Subdomain.problems(&spec.group).is_empty() {
        findings.refused("spec.group", "must be a domain with a dot");
    }
    let is_protected = |suffix: &str| spec.group == suffix[1..] || spec.group.ends_with(suffix);
    let approval = definition.metadata.annotations.as_ref();
    let is_approved = approval.is_some_and(|all| all.contains_key("api-approved.kubernetes.io"));
    if [".k8s.io", ".kubernetes.io"].into_iter().any(is_protected) && !is_approved {
        findings.refused("spec.group", "belongs to Kubernetes: take a domain of your own");
    }
    if spec.preserve_unknown_fields == Some(true) {
        findings.refused("spec.preserveUnknownFields", "must be false");
    }
    if !["Namespaced", "Cluster"].contains(&spec.scope.as_str()) {
        findings.refused("spec.scope", "must be Namespaced or Cluster");
    }
    let kind = names.kind.to_lowercase();
    let mut words = vec![("plural", &names.plural), ("kind", &kind)];
    words.extend(names.singular.iter().map(|name| ("singular", name)));
    words.extend(names.short_names.iter().flatten().map(|name| ("shortNames", name)));
    words.extend(names.categories.iter().flatten().map(|name| ("categories", name)));
    for (field, word) in words {
        if !Format::Dns1035Label.problems(word).is_empty() {
            findings.refused(format!("spec.names.{field}"), format!("{word:?} is no lower-case word"));
        }
    }
}

impl Findings {
    fn refused(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Refused, path: path.into(), message: message.into() });
    }

    fn hurts(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Finding { severity: Severity::Hurts, path: path.into(), message: message.into() });
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Refused => "refused",
            Severity::Hurts => "hurts",
        };
        write!(out, "{}: {severity}: {}", self.path, self.message)
    }
}

#[cfg(test)]
mod tests;
