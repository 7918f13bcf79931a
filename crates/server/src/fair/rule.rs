//! Matching of a FlowSchema rule to a request.

use crate::{authenticate::Caller, authorize::Attributes};
use serde::Deserialize;

/// Subjects, and the requests that they make.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct FlowRule {
    subjects: Vec<FlowSubject>,
    resource_rules: Vec<ResourceRule>,
    non_resource_rules: Vec<PathRule>,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "kind")]
enum FlowSubject {
    User {
        user: SubjectName,
    },
    Group {
        group: SubjectName,
    },
    #[serde(rename_all = "camelCase")]
    ServiceAccount {
        service_account: Account,
    },
}

#[derive(Debug, Deserialize)]
struct SubjectName {
    name: String,
}

#[derive(Debug, Deserialize)]
struct Account {
    namespace: String,
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceRule {
    verbs: Vec<String>,
    api_groups: Vec<String>,
    resources: Vec<String>,
    cluster_scope: bool,
    namespaces: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PathRule {
    verbs: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
}

impl FlowRule {
    pub(super) fn matches(&self, caller: &Caller, wanted: &Attributes<'_>) -> bool {
        let is_wanted = match wanted {
            Attributes::Resource(_) => self.resource_rules.iter().any(|rule| rule.matches(wanted)),
            Attributes::Path { verb, path } => {
                self.non_resource_rules.iter().any(|rule| has(&rule.verbs, verb) && rule.has_path(path))
            }
        };
        is_wanted && self.subjects.iter().any(|subject| subject.is(caller))
    }
}

impl FlowSubject {
    fn is(&self, caller: &Caller) -> bool {
        match self {
            FlowSubject::User { user } => user.name == "*" || user.name == caller.name,
            FlowSubject::Group { group } => group.name == "*" || caller.groups.contains(&group.name),
            FlowSubject::ServiceAccount { service_account: Account { namespace, name } } => {
                let found = Caller::account_of(&caller.name);
                found.is_some_and(|(of, called)| of == namespace && (name == "*" || name == called))
            }
        }
    }
}

impl ResourceRule {
    fn matches(&self, wanted: &Attributes<'_>) -> bool {
        let Attributes::Resource(wanted) = wanted else { return false };
        let is_resource = match wanted.subresource {
            "" => has(&self.resources, wanted.resource),
            subresource => has(&self.resources, &format!("{}/{subresource}", wanted.resource)),
        };
        let is_scope = match wanted.namespace {
            "" => self.cluster_scope,
            namespace => has(&self.namespaces, namespace),
        };
        is_resource && is_scope && has(&self.verbs, wanted.verb) && has(&self.api_groups, wanted.group)
    }
}

impl PathRule {
    // Kubernetes: a path matches everything below it, with or without a star.
    fn has_path(&self, path: &str) -> bool {
        self.paths.iter().any(|rule| {
            let prefix = rule.trim_end_matches('*').trim_end_matches('/');
            rule == "*" || rule == path || path.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

/// Kubernetes: a star matches only as the sole entry.
fn has(list: &[String], wanted: &str) -> bool {
    matches!(list, [only] if only == "*") || list.iter().any(|it| it == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authorize::OnResource;

    fn rule() -> FlowRule {
        serde_json::from_str(
            r#"{"subjects":[
                {"kind":"User","user":{"name":"ann"}},
                {"kind":"Group","group":{"name":"crew"}},
                {"kind":"ServiceAccount","serviceAccount":{"namespace":"shop","name":"*"}},
                {"kind":"ServiceAccount","serviceAccount":{"namespace":"one","name":"bot"}}],
            "resourceRules":[
                {"verbs":["get","list"],"apiGroups":["","apps"],"resources":["pods","pods/status"],"namespaces":["shop"]},
                {"verbs":["*"],"apiGroups":["*"],"resources":["nodes"],"clusterScope":true}],
            "nonResourceRules":[{"verbs":["get"],"nonResourceURLs":["/healthz","/logs/*"]}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn rules_match_subjects() {
        let wanted = Attributes::Path { verb: "get", path: "/healthz" };
        for (caller, expected) in [
            (Caller::known("ann", "", vec![]), true),
            (Caller::known("bob", "", vec![]), false),
            (Caller::known("bob", "", vec!["crew".to_owned()]), true),
            (Caller::account("shop", "any", ""), true),
            (Caller::account("shops", "any", ""), false),
            (Caller::account("one", "bot", ""), true),
            (Caller::account("one", "other", ""), false),
        ] {
            assert_eq!(rule().matches(&caller, &wanted), expected, "{caller:?}");
        }
    }

    #[test]
    fn rules_match_requests() {
        let ann = Caller::known("ann", "", vec![]);
        for (verb, group, resource, subresource, namespace, expected) in [
            ("get", "", "pods", "", "shop", true),
            ("list", "apps", "pods", "", "shop", true),
            ("get", "", "pods", "status", "shop", true),
            ("get", "", "pods", "log", "shop", false),
            ("watch", "", "pods", "", "shop", false),
            ("get", "", "pods", "", "other", false),
            ("get", "", "pods", "", "", false),
            ("delete", "any", "nodes", "", "", true),
            ("delete", "any", "nodes", "", "shop", false),
        ] {
            let wanted =
                OnResource { verb, group, resource, subresource, namespace, ..OnResource::default() };
            let found = rule().matches(&ann, &Attributes::Resource(wanted));
            assert_eq!(found, expected, "{verb} {group} {resource}/{subresource} in {namespace}");
        }
        for (verb, path, expected) in [
            ("get", "/healthz", true),
            ("get", "/healthz/ping", true),
            ("get", "/healthzz", false),
            ("post", "/healthz", false),
            ("get", "/logs/a", true),
            ("get", "/logs", false),
            ("get", "/", false),
        ] {
            assert_eq!(rule().matches(&ann, &Attributes::Path { verb, path }), expected, "{verb} {path}");
        }
    }
}
