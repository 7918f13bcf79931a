//! Discovery documents: served groups, versions and resources.
//!
//! | path | document |
//! |---|---|
//! | `/version` | [`version`] |
//! | `/api` | [`core_versions`], or [`aggregated`] if the client accepts it |
//! | `/apis` | [`groups`], or [`aggregated`] |
//! | `/apis/GROUP` | [`group`] |
//! | `/api/v1`, `/apis/GROUP/VERSION` | [`resources`] |
//!
//! Documents are JSON text, with members in kube-apiserver's order.

mod aggregated;
mod listed;
mod resource_list;
#[cfg(test)]
mod tests;

pub(crate) use aggregated::{AGGREGATED_MEDIA_TYPE, aggregated, is_aggregated_wanted};
pub(crate) use listed::{Listed, ListedSubresource};
pub(crate) use resource_list::resources;

use aws_lc_rs::digest::{SHA512, digest};
use serde::Serialize;

/// The Kubernetes version that this server implements.
pub(crate) const EMULATED: &str = "1.36";

/// With our own version as build metadata, which semantic versions do not compare.
pub(crate) const GIT_VERSION: &str = concat!("v1.36.0+setpoint-", env!("CARGO_PKG_VERSION"));

const VERSION: Info = Info {
    major: "1",
    minor: "36",
    emulation_major: "1",
    emulation_minor: "36",
    min_compatibility_major: "1",
    min_compatibility_minor: "35",
    git_version: GIT_VERSION,
    git_commit: "",
    git_tree_state: "clean",
    build_date: "1970-01-01T00:00:00Z",
    go_version: "",
    compiler: "rustc",
    platform: PLATFORM,
};

#[cfg(target_arch = "aarch64")]
const PLATFORM: &str = "linux/arm64";
#[cfg(not(target_arch = "aarch64"))]
const PLATFORM: &str = "linux/amd64";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Info {
    major: &'static str,
    minor: &'static str,
    emulation_major: &'static str,
    emulation_minor: &'static str,
    min_compatibility_major: &'static str,
    min_compatibility_minor: &'static str,
    git_version: &'static str,
    git_commit: &'static str,
    git_tree_state: &'static str,
    build_date: &'static str,
    go_version: &'static str,
    compiler: &'static str,
    platform: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiVersions<'a> {
    kind: &'static str,
    versions: [&'static str; 1],
    #[serde(rename = "serverAddressByClientCIDRs")]
    server_addresses: [ServerAddress<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerAddress<'a> {
    #[serde(rename = "clientCIDR")]
    client_cidr: &'static str,
    server_address: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroupList<'a> {
    kind: &'static str,
    api_version: &'static str,
    groups: Vec<ApiGroup<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiGroup<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    name: &'a str,
    versions: Vec<GroupVersion<'a>>,
    preferred_version: GroupVersion<'a>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupVersion<'a> {
    group_version: String,
    version: &'a str,
}

/// `/version`, pretty-printed as in Kubernetes.
pub(crate) fn version() -> String {
    serde_json::to_string_pretty(&VERSION).expect("strings serialize")
}

/// `/api`. The address is the one at which clients reach this server: `127.0.0.1:6443`.
pub(crate) fn core_versions(server_address: &str) -> String {
    let server_addresses = [ServerAddress { client_cidr: "0.0.0.0/0", server_address }];
    json(&ApiVersions { kind: "APIVersions", versions: ["v1"], server_addresses })
}

/// `/apis`.
pub(crate) fn groups(all: &[Listed<'_>]) -> String {
    let named = listed::groups(all).into_iter().filter(|(name, _)| !name.is_empty());
    let groups = named.map(|(name, versions)| api_group(name, &versions, false)).collect();
    json(&ApiGroupList { kind: "APIGroupList", api_version: "v1", groups })
}

/// `/apis/GROUP`; `None` if it is not served.
pub(crate) fn group(all: &[Listed<'_>], name: &str) -> Option<String> {
    let found = listed::groups(all).into_iter().find(|(group, _)| *group == name && !name.is_empty());
    found.map(|(name, versions)| json(&api_group(name, &versions, true)))
}

fn api_group<'a>(name: &'a str, versions: &[&'a str], stands_alone: bool) -> ApiGroup<'a> {
    let describe = |version: &&'a str| GroupVersion { group_version: format!("{name}/{version}"), version };
    let versions: Vec<_> = versions.iter().map(describe).collect();
    let preferred_version = versions.first().cloned().expect("a group has a version");
    let (kind, api_version) = if stands_alone { (Some("APIGroup"), Some("v1")) } else { (None, None) };
    ApiGroup { kind, api_version, name, versions, preferred_version }
}

fn json(document: &impl Serialize) -> String {
    let mut text = serde_json::to_string(document).expect("strings and lists serialize");
    // Kubernetes: Go's encoder ends each document with a newline.
    text.push('\n');
    text
}

/// A hash of the document, for `ETag` and for the OpenAPI index.
pub(crate) fn fingerprint(document: &[u8]) -> String {
    digest(&SHA512, document).as_ref().iter().map(|byte| format!("{byte:02X}")).collect()
}
