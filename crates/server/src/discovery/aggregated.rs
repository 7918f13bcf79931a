//! Aggregated discovery: `/api` and `/apis` as one document, which kubectl and client-go request first.

use serde::Serialize;

use super::{Listed, ListedSubresource, fingerprint, json, listed};

/// The content type of [`Aggregated::body`].
pub(crate) const AGGREGATED_MEDIA_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The aggregated document. Kubernetes sends it with `ETag`, `Vary: Accept` and `Cache-Control: public`,
/// and answers 304 to an equal `If-None-Match`.
#[derive(Clone, Debug)]
pub(crate) struct Aggregated {
    pub(crate) body: String,
    /// With quotes.
    pub(crate) etag: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: DiscoveryMetadata<'static>,
    items: Vec<GroupDiscovery<'a>>,
}

#[derive(Serialize)]
struct GroupDiscovery<'a> {
    metadata: DiscoveryMetadata<'a>,
    versions: Vec<VersionDiscovery<'a>>,
}

#[derive(Default, Serialize)]
struct DiscoveryMetadata<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
}

#[derive(Serialize)]
struct VersionDiscovery<'a> {
    version: &'a str,
    resources: Vec<ResourceDiscovery<'a>>,
    freshness: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery<'a> {
    resource: &'a str,
    response_kind: ResponseKind<'a>,
    scope: &'static str,
    singular_resource: &'a str,
    verbs: &'a [&'a str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'a [&'a str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [&'a str],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subresources: Vec<SubresourceDiscovery<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SubresourceDiscovery<'a> {
    subresource: &'a str,
    response_kind: ResponseKind<'a>,
    verbs: &'a [&'a str],
}

#[derive(Serialize)]
struct ResponseKind<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// The core group (`/api`), or all named groups (`/apis`).
pub(crate) fn aggregated(all: &[Listed<'_>], is_core: bool) -> Aggregated {
    let groups = listed::groups(all).into_iter().filter(|(name, _)| name.is_empty() == is_core);
    let items = groups.map(|(name, versions)| GroupDiscovery {
        metadata: DiscoveryMetadata { name },
        versions: versions.into_iter().map(|version| describe_version(all, name, version)).collect(),
    });
    let body = json(&GroupList {
        kind: "APIGroupDiscoveryList",
        api_version: "apidiscovery.k8s.io/v2",
        metadata: DiscoveryMetadata::default(),
        items: items.collect(),
    });
    let etag = format!("\"{}\"", fingerprint(body.as_bytes()));
    Aggregated { body, etag }
}

/// Whether the client accepts this document.
///
/// Kubernetes: v2beta1 is no longer served; such a client gets the next type that it accepts.
pub(crate) fn is_aggregated_wanted(accept: &str) -> bool {
    accept.split(',').any(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let is_json = matches!(parts.next(), Some("application/json" | "*/*" | "application/*"));
        let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
        let value = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let wanted = (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList"));
        is_json && (value("g"), value("v"), value("as")) == wanted
    })
}

fn describe_version<'a>(all: &'a [Listed<'a>], group: &str, version: &'a str) -> VersionDiscovery<'a> {
    let resources = listed::of_version(all, group, version).into_iter().map(describe).collect();
    VersionDiscovery { version, resources, freshness: "Current" }
}

fn describe<'a>(it: &'a Listed<'a>) -> ResourceDiscovery<'a> {
    // Kubernetes: a built-in resource leaves out its own group and version.
    let (group, version) = if it.is_custom { (it.group, it.version) } else { ("", "") };
    let subresource = |sub: &'a ListedSubresource<'a>| {
        let (group, version) = sub.foreign.unwrap_or((group, version));
        let response_kind = ResponseKind { group, version, kind: sub.kind };
        SubresourceDiscovery { subresource: sub.name, response_kind, verbs: &sub.verbs }
    };
    ResourceDiscovery {
        resource: it.name,
        response_kind: ResponseKind { group, version, kind: it.kind },
        scope: if it.is_namespaced { "Namespaced" } else { "Cluster" },
        singular_resource: it.singular,
        verbs: &it.verbs,
        short_names: &it.short_names,
        categories: &it.categories,
        subresources: it.subresources.iter().map(subresource).collect(),
    }
}
