//! One rule of a role: what it allows, what it covers, how it reads in a refusal.

use super::Attributes;
use api::go;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const ALL: &str = "*";

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

/// A list that may be `null`, as Go writes an empty one.
fn texts<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

/// The rules of a role, as it is sent or stored. What cannot be read grants nothing.
pub(crate) fn rules_of(role: &serde_json::Value) -> Vec<Rule> {
    let rules = role.get("rules").and_then(serde_json::Value::as_array).into_iter().flatten();
    rules.filter_map(|rule| Rule::deserialize(rule).ok()).collect()
}

impl Rule {
    /// Everything there is, as the two rules that it takes to say so.
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

    /// The rules that say the same, each about one verb on one thing.
    fn pieces(&self) -> Vec<Rule> {
        let one = |text: &String| vec![text.clone()];
        let mut pieces = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let piece = Rule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Rule::default()
                    };
                    if self.resource_names.is_empty() {
                        pieces.push(piece);
                    } else {
                        let named = self.resource_names.iter().map(one);
                        pieces.extend(named.map(|resource_names| Rule { resource_names, ..piece.clone() }));
                    }
                }
            }
        }
        for path in &self.paths {
            let verbs = self.verbs.iter().map(one);
            pieces.extend(verbs.map(|verbs| Rule { verbs, paths: one(path), ..Rule::default() }));
        }
        pieces
    }

    /// Whether whoever has this rule has that piece.
    fn covers(&self, piece: &Rule) -> bool {
        let resource = |wanted: &String| {
            has(&self.resources, wanted)
                || wanted.split_once('/').is_some_and(|(_, sub)| {
                    self.resources.iter().any(|it| it.strip_prefix("*/").is_some_and(|of| of == sub))
                })
        };
        let names = self.resource_names.is_empty()
            || (!piece.resource_names.is_empty() && has_all(&self.resource_names, &piece.resource_names));
        let path = |wanted: &String| self.paths.iter().any(|own| path_covers(own, wanted));
        (has(&self.verbs, ALL) || has_all(&self.verbs, &piece.verbs))
            && (has(&self.api_groups, ALL) || has_all(&self.api_groups, &piece.api_groups))
            && piece.resources.iter().all(resource)
            && names
            && piece.paths.iter().all(path)
    }

    /// As refusals show it.
    fn text(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let said = parts.iter().filter(|(_, values)| !values.is_empty());
        let said: Vec<_> = said.map(|(name, values)| format!("{name}:{}", quoted(values))).collect();
        format!("{{{}}}", said.join(", "))
    }
}

/// What `wanted` has beyond `held`, a line for each thing, sorted; nothing where it is all covered.
pub(crate) fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<String> {
    let pieces = wanted.iter().flat_map(Rule::pieces);
    let lacking: Vec<_> = pieces.filter(|piece| !held.iter().any(|rule| rule.covers(piece))).collect();
    let mut lines: Vec<_> = compact(lacking).iter().map(Rule::text).collect();
    lines.sort();
    lines.dedup();
    lines
}

/// Pieces about the same resource become one rule with several verbs.
fn compact(pieces: Vec<Rule>) -> Vec<Rule> {
    let mut by_resource: BTreeMap<(String, String, Option<String>), Rule> = BTreeMap::new();
    let mut compacted = Vec::new();
    for piece in pieces {
        let (Some(group), Some(resource)) = (piece.api_groups.first(), piece.resources.first()) else {
            compacted.push(piece);
            continue;
        };
        let key = (group.clone(), resource.clone(), piece.resource_names.first().cloned());
        match by_resource.get_mut(&key) {
            Some(rule) => rule.verbs.extend(piece.verbs),
            None => drop(by_resource.insert(key, piece)),
        }
    }
    compacted.extend(by_resource.into_values());
    compacted
}

fn has(values: &[String], wanted: &str) -> bool {
    values.iter().any(|value| value == ALL || value == wanted)
}

/// Literally: a star among `wanted` asks for a star.
fn has_all(values: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|wanted| values.contains(wanted))
}

fn path_covers(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

/// Go's `%q` of a list.
pub(crate) fn quoted<T: AsRef<str>>(values: &[T]) -> String {
    let values: Vec<_> = values.iter().map(|value| go::quote(value.as_ref())).collect();
    format!("[{}]", values.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorize::OnResource;
    use serde_json::json;

    fn rule(json: serde_json::Value) -> Rule {
        Rule::deserialize(json).unwrap()
    }

    #[test]
    fn rules_allow_what_they_say() {
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
    fn paths_end_in_stars() {
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
    fn what_is_missing_is_told_in_the_real_words() {
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
