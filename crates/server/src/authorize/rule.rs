//! One rule of a role.

use super::Attributes;
use serde::{Deserialize, Serialize};

pub(super) const ALL: &str = "*";

/// Verbs on resources, or on paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Rule {
    #[serde(deserialize_with = "texts")]
    pub(crate) verbs: Vec<String>,
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub(crate) api_groups: Vec<String>,
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resources: Vec<String>,
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_names: Vec<String>,
    #[serde(rename = "nonResourceURLs", deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<String>,
}

/// A list that may be `null`, Go's encoding of an empty one.
fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The rules of a role. Undecodable rules grant nothing.
pub(crate) fn rules_of(role: &serde_json::Value) -> Vec<Rule> {
    let rules = role.get("rules").and_then(serde_json::Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| Rule::deserialize(rule).ok()).collect()
}

impl Rule {
    /// All rights, which takes two rules.
    pub(crate) fn everything() -> [Rule; 2] {
        let all = || vec![ALL.to_owned()];
        let resources = Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() };
        [resources, Rule { verbs: all(), paths: all(), ..Rule::default() }]
    }

    pub(crate) fn allows(&self, attributes: &Attributes<'_>) -> bool {
        match attributes {
            Attributes::Resource(wanted) => {
                has(&self.verbs, wanted.verb)
                    && has(&self.api_groups, wanted.group)
                    && self.names_resource(wanted.resource, wanted.subresource)
                    && (self.resource_names.is_empty()
                        || self.resource_names.iter().any(|it| it == wanted.name))
            }
            Attributes::Path { verb, path } => {
                has(&self.verbs, verb) && self.paths.iter().any(|rule| path_covers(rule, path))
            }
        }
    }

    fn names_resource(&self, resource: &str, subresource: &str) -> bool {
        self.resources.iter().any(|rule| match rule.split_once('/') {
            _ if rule == ALL => true,
            None => subresource.is_empty() && rule == resource,
            // Kubernetes: `*/scale` is a wildcard, `pods/*` is not.
            Some((of, sub)) => !subresource.is_empty() && sub == subresource && (of == ALL || of == resource),
        })
    }
}

fn has(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == ALL || value == wanted)
}

fn path_covers(rule: &str, path: &str) -> bool {
    rule == path || path_prefix(rule).is_some_and(|prefix| path.starts_with(prefix))
}

/// The prefix of paths that a path ending in a star covers.
pub(super) fn path_prefix(rule: &str) -> Option<&str> {
    rule.ends_with('*').then(|| rule.trim_end_matches('*'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorize::{OnResource, coverage::missing};
    use serde_json::json;

    fn rule(json: serde_json::Value) -> Rule {
        Rule::deserialize(json).unwrap()
    }

    #[test]
    fn rules_allow_their_verbs_on_their_resources() {
        let rules = [
            ("pods", json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})),
            ("status", json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/status"]})),
            ("any scale", json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]})),
            ("odd", json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/*"]})),
            ("all", json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})),
            (
                "named",
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
            ),
            ("null", json!({"verbs": ["get"], "apiGroups": [""], "resources": null})),
        ];
        for (wanted, allowing) in [
            (("get", "", "pods", "", "a"), "pods all named"),
            (("get", "", "pods", "", "b"), "pods all"),
            (("get", "", "pods", "", ""), "pods all"),
            (("list", "", "pods", "", ""), "all"),
            (("get", "", "pods", "status", "a"), "status all"),
            (("get", "apps", "pods", "", ""), "all"),
            (("get", "apps", "deployments", "scale", "a"), "any scale,all"),
            (("get", "apps", "deployments", "autoscale", "a"), "all"),
            (("get", "", "pods", "*", "a"), "odd all"),
        ] {
            let (verb, group, resource, subresource, name) = wanted;
            let attributes = Attributes::Resource(OnResource {
                verb,
                group,
                resource,
                subresource,
                name,
                ..OnResource::default()
            });
            let allowed = rules.iter().filter(|(_, json)| rule(json.clone()).allows(&attributes));
            let allowed: Vec<_> = allowed.map(|(name, _)| *name).collect();
            let separator = if allowing.contains(',') { ',' } else { ' ' };
            assert_eq!(allowed, allowing.split(separator).collect::<Vec<_>>(), "{wanted:?}");
        }
    }

    #[test]
    fn a_star_at_the_end_of_a_path_covers_its_prefix() {
        let rule = |paths: &[&str]| rule(json!({"verbs": ["get"], "nonResourceURLs": paths}));
        for (paths, path, expected) in [
            (&["/healthz"][..], "/healthz", true),
            (&["/healthz"], "/healthz/", false),
            (&["/healthz/*"], "/healthz/etcd", true),
            (&["/healthz/*"], "/healthz", false),
            (&["*"], "/anything", true),
            (&["/a*"], "/b", false),
            (&["*/a"], "/x/a", false),
        ] {
            assert_eq!(
                rule(paths).allows(&Attributes::Path { verb: "get", path }),
                expected,
                "{paths:?} {path}"
            );
            assert!(!rule(paths).allows(&Attributes::Path { verb: "post", path }));
        }
    }

    #[test]
    fn missing_rules_are_reported_in_kubernetes_words() {
        let pods = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
        for (held, wanted, expected) in [
            (pods.clone(), pods.clone(), ""),
            (json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), pods.clone(), ""),
            (
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
                pods.clone(),
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list"]}"#,
            ),
            (json!({}), pods.clone(), r#"{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}"#),
            (
                pods.clone(),
                json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}),
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["*"]}"#,
            ),
            (
                pods.clone(),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
                "",
            ),
            (
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["get"]}"#,
            ),
            (
                json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*/scale"]}),
                json!({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["deployments/scale", "deployments"]}),
                r#"{APIGroups:["apps"], Resources:["deployments"], Verbs:["get"]}"#,
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}),
                json!({"verbs": ["get"], "nonResourceURLs": ["/a/b", "/c"]}),
                r#"{NonResourceURLs:["/c"], Verbs:["get"]}"#,
            ),
        ] {
            assert_eq!(missing(&[rule(held.clone())], &[rule(wanted)]).join("\n"), expected, "{held}");
        }
    }
}
