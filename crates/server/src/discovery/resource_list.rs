//! `/api/v1` and `/apis/GROUP/VERSION`: the resources of one version.

use serde::Serialize;

use super::{Listed, json, listed};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResourceList<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    api_version: &'static str,
    group_version: String,
    resources: Vec<ApiResource<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ApiResource<'a> {
    name: String,
    singular_name: &'a str,
    namespaced: bool,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'a str,
    kind: &'a str,
    verbs: &'a [&'a str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    short_names: &'a [&'a str],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [&'a str],
    #[serde(skip_serializing_if = "str::is_empty")]
    storage_version_hash: &'a str,
}

/// The resources of a version and their subresources; `None` if it is not served.
pub(crate) fn resources(all: &[Listed<'_>], group: &str, version: &str) -> Option<String> {
    let of_version = listed::of_version(all, group, version);
    if of_version.is_empty() {
        return None;
    }
    let (api_version, group_version) = match group {
        // Kubernetes: the list of the core group has no apiVersion.
        "" => ("", version.to_owned()),
        _ => ("v1", format!("{group}/{version}")),
    };
    let resources = of_version.into_iter().flat_map(with_subresources).collect();
    Some(json(&ApiResourceList { kind: "APIResourceList", api_version, group_version, resources }))
}

fn with_subresources<'a>(it: &'a Listed<'a>) -> impl Iterator<Item = ApiResource<'a>> {
    let resource = ApiResource {
        name: it.name.to_owned(),
        singular_name: it.singular,
        namespaced: it.is_namespaced,
        group: "",
        version: "",
        kind: it.kind,
        verbs: &it.verbs,
        short_names: &it.short_names,
        categories: &it.categories,
        storage_version_hash: &it.storage_version_hash,
    };
    let subresources = it.subresources.iter().map(|sub| {
        let (group, version) = sub.foreign.unwrap_or_default();
        ApiResource {
            name: format!("{}/{}", it.name, sub.name),
            singular_name: "",
            namespaced: it.is_namespaced,
            group,
            version,
            kind: sub.kind,
            verbs: &sub.verbs,
            short_names: &[],
            categories: &[],
            storage_version_hash: "",
        }
    });
    std::iter::once(resource).chain(subresources)
}
