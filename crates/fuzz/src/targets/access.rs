//! RBAC: for any role, a SubjectAccessReview answers as a naive reading of its rules.

use super::control_plane::{post, with_server};
use crate::{
    Target,
    recorded::{divide, seed},
};
use serde_json::{Value, json};

pub(super) const TARGET: Target = Target { name: "access", check, seeds, words: WORDS };

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
/// The most reviews of one role.
const MAX_LINES: usize = 20;

const WORDS: &[&str] = &[
    "\"verbs\":[\"*\"]",
    "\"apiGroups\":[\"\",\"apps\"]",
    "\"resources\":[\"pods\"]",
    "\"resources\":[\"*/scale\"]",
    "\"resources\":[\"pods/*\"]",
    "\"resourceNames\":[\"a\"]",
    "\"nonResourceURLs\":[\"/healthz/*\"]",
    "\"*\"",
    "\"**\"",
    "/*",
    "*/",
    "get",
    " pods",
    "-",
    "status",
    "\n",
];

fn seeds() -> Vec<Vec<u8>> {
    let all = [
        (
            r#"[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods","pods/log"],"resourceNames":["a"]}]"#,
            "get - pods - a\nget - pods log a\nlist - pods - -\nget apps pods - a\n* * * * *",
        ),
        (
            r#"[{"verbs":["*"],"apiGroups":["*"],"resources":["*/scale","nodes"]},{"verbs":["get"],"nonResourceURLs":["/healthz/*","/version"]}]"#,
            "get apps deployments scale a\nget apps deployments - a\nget /healthz/etcd\nget /healthz\npost /version\nget /version/",
        ),
        (
            r#"[{"verbs":["get"],"apiGroups":[""],"resources":["*"]},{"verbs":["get"],"nonResourceURLs":["*"]},{"verbs":["use"],"apiGroups":["policy"],"resources":["pods/*"]}]"#,
            "get - pods status a\nget /a/b/../c\nuse policy pods x -\nuse policy pods * -",
        ),
    ];
    all.into_iter().map(|(rules, asked)| seed(b'!', &[rules, asked].map(str::as_bytes))).collect()
}

fn check(input: &[u8]) {
    let Some((rules, asked)) = input.get(1..).and_then(divide) else { return };
    let (Ok(rules), Ok(asked)) = (serde_json::from_slice::<Value>(rules), std::str::from_utf8(asked)) else {
        return;
    };
    with_server(|server| async move {
        let role = json!({"metadata": {"name": "r"}, "rules": rules});
        let role = post(&server, &format!("{RBAC}/clusterroles"), &role).await;
        if role.code != 201 {
            return;
        }
        let binding = json!({
            "metadata": {"name": "b"}, "subjects": [{"kind": "User", "name": "u"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        });
        assert_eq!(post(&server, &format!("{RBAC}/clusterrolebindings"), &binding).await.code, 201);
        let rules = role.json()["rules"].clone();
        for line in asked.lines().take(MAX_LINES) {
            let Some(wanted) = Wanted::read(line) else { continue };
            for (user, expected) in [("u", wanted.is_allowed_by(&rules)), ("v", false)] {
                let review = post(&server, REVIEWS, &wanted.review(user)).await;
                if review.code == 201 {
                    let allowed = review.json()["status"]["allowed"] == true;
                    assert_eq!(allowed, expected, "{user}: {wanted:?} by {rules}");
                }
            }
        }
    });
}

/// An action to authorize.
#[derive(Debug)]
enum Wanted<'a> {
    Resource { verb: &'a str, group: &'a str, resource: &'a str, subresource: &'a str, name: &'a str },
    Path { verb: &'a str, path: &'a str },
}

impl<'a> Wanted<'a> {
    /// `get apps deployments scale a`, with `-` for nothing, or `get /healthz`.
    fn read(line: &'a str) -> Option<Wanted<'a>> {
        let plain = |word: &'a str| if word == "-" { "" } else { word };
        match line.split(' ').map(plain).collect::<Vec<_>>()[..] {
            [verb, path] if path.starts_with('/') => Some(Wanted::Path { verb, path }),
            [verb, group, resource, subresource, name] => {
                Some(Wanted::Resource { verb, group, resource, subresource, name })
            }
            _ => None,
        }
    }

    fn review(&self, user: &str) -> Value {
        match self {
            Wanted::Resource { verb, group, resource, subresource, name } => {
                json!({"spec": {"user": user, "resourceAttributes": {
                    "verb": verb, "group": group, "resource": resource, "subresource": subresource, "name": name,
                }}})
            }
            Wanted::Path { verb, path } => {
                json!({"spec": {"user": user, "nonResourceAttributes": {"verb": verb, "path": path}}})
            }
        }
    }

    /// A naive reading of the rules, without the server's own code.
    fn is_allowed_by(&self, rules: &Value) -> bool {
        let texts = |rule: &Value, field: &str| -> Vec<String> {
            let list = rule[field].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let has = |list: Vec<String>, wanted: &str| list.iter().any(|it| it == "*" || it == wanted);
        rules.as_array().into_iter().flatten().any(|rule| match self {
            Wanted::Resource { verb, group, resource, subresource, name } => {
                let mut called = vec!["*".to_owned(), (*resource).to_owned()];
                if !subresource.is_empty() {
                    called =
                        vec!["*".to_owned(), format!("{resource}/{subresource}"), format!("*/{subresource}")];
                }
                let names = texts(rule, "resourceNames");
                has(texts(rule, "verbs"), verb)
                    && has(texts(rule, "apiGroups"), group)
                    && texts(rule, "resources").iter().any(|it| called.contains(it))
                    && (names.is_empty() || names.iter().any(|it| it == name))
            }
            Wanted::Path { verb, path } => {
                let covers = |url: &String| {
                    url == path || url.ends_with('*') && path.starts_with(url.trim_end_matches('*'))
                };
                has(texts(rule, "verbs"), verb) && texts(rule, "nonResourceURLs").iter().any(covers)
            }
        })
    }
}
