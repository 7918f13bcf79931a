//! Group, version, kind and resource: what an object is and where its collection lies.
//!
//! They print as Go prints them, because messages carry them. Clones share their text.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// `apps/v1`, or `v1` for the core group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersion {
    pub group: Arc<str>,
    pub version: Arc<str>,
}

/// `Deployment.apps`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupKind {
    pub group: Arc<str>,
    pub kind: Arc<str>,
}

/// `deployments.apps`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    pub group: Arc<str>,
    pub resource: Arc<str>,
}

/// `apps/v1, Kind=Deployment`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionKind {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
}

/// `apps/v1, Resource=deployments`
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupVersionResource {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub resource: Arc<str>,
}

/// Not `version` and not `group/version`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected GroupVersion string: {0}")]
pub struct BadGroupVersion(pub String);

impl GroupVersion {
    pub fn new(group: impl Into<Arc<str>>, version: impl Into<Arc<str>>) -> Self {
        GroupVersion { group: group.into(), version: version.into() }
    }

    pub fn with_kind(&self, kind: impl Into<Arc<str>>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: self.version.clone(), kind: kind.into() }
    }

    pub fn with_resource(&self, resource: impl Into<Arc<str>>) -> GroupVersionResource {
        GroupVersionResource {
            group: self.group.clone(),
            version: self.version.clone(),
            resource: resource.into(),
        }
    }
}

impl GroupKind {
    pub fn new(group: impl Into<Arc<str>>, kind: impl Into<Arc<str>>) -> Self {
        GroupKind { group: group.into(), kind: kind.into() }
    }

    pub fn with_version(&self, version: impl Into<Arc<str>>) -> GroupVersionKind {
        GroupVersionKind { group: self.group.clone(), version: version.into(), kind: self.kind.clone() }
    }
}

impl GroupResource {
    pub fn new(group: impl Into<Arc<str>>, resource: impl Into<Arc<str>>) -> Self {
        GroupResource { group: group.into(), resource: resource.into() }
    }

    /// Nothing in particular: messages then leave the resource out.
    pub fn none() -> Self {
        Self::new("", "")
    }

    pub fn is_none(&self) -> bool {
        self.group.is_empty() && self.resource.is_empty()
    }

    pub fn with_version(&self, version: impl Into<Arc<str>>) -> GroupVersionResource {
        GroupVersionResource {
            group: self.group.clone(),
            version: version.into(),
            resource: self.resource.clone(),
        }
    }
}

impl GroupVersionKind {
    pub fn new(
        group: impl Into<Arc<str>>,
        version: impl Into<Arc<str>>,
        kind: impl Into<Arc<str>>,
    ) -> GroupVersionKind {
        GroupVersionKind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// From the `apiVersion` and `kind` of an object.
    pub fn parse(api_version: &str, kind: &str) -> Result<Self, BadGroupVersion> {
        Ok(GroupVersion::from_str(api_version)?.with_kind(kind))
    }

    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    pub fn group_kind(&self) -> GroupKind {
        GroupKind { group: self.group.clone(), kind: self.kind.clone() }
    }
}

impl GroupVersionResource {
    pub fn new(
        group: impl Into<Arc<str>>,
        version: impl Into<Arc<str>>,
        resource: impl Into<Arc<str>>,
    ) -> GroupVersionResource {
        GroupVersionResource { group: group.into(), version: version.into(), resource: resource.into() }
    }

    pub fn group_version(&self) -> GroupVersion {
        GroupVersion { group: self.group.clone(), version: self.version.clone() }
    }

    pub fn group_resource(&self) -> GroupResource {
        GroupResource { group: self.group.clone(), resource: self.resource.clone() }
    }
}

/// The `apiVersion` of an object.
impl fmt::Display for GroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            f.write_str(&self.version)
        } else {
            write!(f, "{}/{}", self.group, self.version)
        }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.kind, &self.group)
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_qualified(f, &self.resource, &self.group)
    }
}

// Kubernetes: unlike a GroupVersion, the slash stays for the core group: `/v1, Kind=Pod`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

impl fmt::Display for GroupVersionResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Resource={}", self.group, self.version, self.resource)
    }
}

fn write_qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

impl FromStr for GroupVersion {
    type Err = BadGroupVersion;

    fn from_str(text: &str) -> Result<Self, BadGroupVersion> {
        match text.split_once('/') {
            None => Ok(GroupVersion::new("", text)),
            Some((_, version)) if version.contains('/') => Err(BadGroupVersion(text.to_owned())),
            Some((group, version)) => Ok(GroupVersion::new(group, version)),
        }
    }
}

impl FromStr for GroupKind {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (kind, group) = text.split_once('.').unwrap_or((text, ""));
        Ok(GroupKind::new(group, kind))
    }
}

impl FromStr for GroupResource {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (resource, group) = text.split_once('.').unwrap_or((text, ""));
        Ok(GroupResource::new(group, resource))
    }
}

/// Which of two versions a client should prefer; the greater one. Stable ones come before beta and alpha, then
/// the higher number wins: `v2 > v1 > v2beta1 > v1alpha1`. Names of no such form come last, by alphabet.
pub fn compare_versions(left: &str, right: &str) -> Ordering {
    match (maturity(left), maturity(right)) {
        (None, None) => right.cmp(left),
        (left, right) => left.cmp(&right),
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stability {
    Alpha,
    Beta,
    Stable,
}

/// `v2beta1` is beta 1 of version 2.
fn maturity(version: &str) -> Option<(Stability, i64, i64)> {
    let (major, rest) = leading_number(version.strip_prefix('v')?)?;
    let (stability, minor) = match (rest.strip_prefix("alpha"), rest.strip_prefix("beta")) {
        _ if rest.is_empty() => return Some((Stability::Stable, major, 0)),
        (Some(minor), _) => (Stability::Alpha, minor),
        (_, Some(minor)) => (Stability::Beta, minor),
        (None, None) => return None,
    };
    let (minor, rest) = leading_number(minor)?;
    rest.is_empty().then_some((stability, major, minor))
}

fn leading_number(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_print_as_in_go() {
        let apps = GroupVersion::new("apps", "v1");
        let core = GroupVersion::new("", "v1");
        for (printed, expected) in [
            (apps.to_string(), "apps/v1"),
            (core.to_string(), "v1"),
            (apps.with_kind("Deployment").to_string(), "apps/v1, Kind=Deployment"),
            (core.with_kind("Event").to_string(), "/v1, Kind=Event"),
            (apps.with_resource("deployments").to_string(), "apps/v1, Resource=deployments"),
            (apps.with_kind("Deployment").group_kind().to_string(), "Deployment.apps"),
            (core.with_kind("Pod").group_kind().to_string(), "Pod"),
            (apps.with_resource("deployments").group_resource().to_string(), "deployments.apps"),
            (core.with_resource("pods").group_resource().to_string(), "pods"),
            (GroupKind::new("authorization.k8s.io", "").to_string(), ".authorization.k8s.io"),
        ] {
            assert_eq!(printed, expected);
        }
    }

    #[test]
    fn api_versions_parse_as_in_go() {
        for (text, expected) in [
            ("v1", Ok(("", "v1"))),
            ("apps/v1", Ok(("apps", "v1"))),
            ("", Ok(("", ""))),
            ("/", Ok(("", ""))),
            ("/v1", Ok(("", "v1"))),
            ("apps/", Ok(("apps", ""))),
            ("a/b/c", Err("unexpected GroupVersion string: a/b/c")),
        ] {
            let parsed = text.parse::<GroupVersion>().map_err(|bad| bad.to_string());
            let expected = expected.map(|(group, version)| GroupVersion::new(group, version));
            assert_eq!(parsed, expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn the_group_begins_at_the_first_dot() {
        let Ok(resource) = "leases.coordination.k8s.io".parse::<GroupResource>();
        assert_eq!(resource, GroupResource::new("coordination.k8s.io", "leases"));
        let Ok(kind) = "Pod".parse::<GroupKind>();
        assert_eq!(kind, GroupKind::new("", "Pod"));
    }

    #[test]
    fn versions_order_by_maturity_then_number() {
        let best_first = [
            "v10",
            "v2",
            "v1",
            "v11beta2",
            "v10beta3",
            "v3beta1",
            "v12alpha1",
            "v11alpha2",
            "bar",
            "foo1",
            "foo10",
            "v1.1",
            "v1alpha",
            "v99999999999999999999",
        ];
        for (at, left) in best_first.iter().enumerate() {
            for (other, right) in best_first.iter().enumerate() {
                assert_eq!(compare_versions(left, right), other.cmp(&at), "{left} against {right}");
            }
        }
    }
}
