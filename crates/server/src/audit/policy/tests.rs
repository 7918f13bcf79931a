//! Levels of requests, and errors of invalid policies.

use super::*;

fn policy(rules: &str) -> Result<AuditPolicy, BadAuditPolicy> {
    AuditPolicy::parse(format!("apiVersion: audit.k8s.io/v1\nkind: Policy\n{rules}").as_bytes())
}

#[test]
fn the_first_rule_that_matches_decides() {
    let policy = policy(
        "
omitStages: [RequestReceived]
rules:
- {level: None, users: [quiet]}
- {level: None, nonResourceURLs: ['/healthz*', /version]}
- {level: Metadata, resources: [{group: '', resources: [secrets, configmaps]}], omitStages: [ResponseStarted]}
- {level: RequestResponse, resources: [{group: '', resources: [pods], resourceNames: [web]}], omitManagedFields: true}
- {level: Request, resources: [{group: apps, resources: ['*/scale', 'deployments/*']}]}
- {level: Request, verbs: [delete], userGroups: [ops]}
- {level: Metadata, resources: [{group: '*'}], namespaces: [kube-system, '']}
",
    )
    .unwrap();
    let user = |name: &str, groups: &[&str]| {
        Caller::known(name, "", groups.iter().map(|group| (*group).to_owned()).collect())
    };
    let on = |text: &'static str| {
        let [verb, group, resource, subresource, namespace, name] =
            text.split(' ').map(|it| if it == "-" { "" } else { it }).collect::<Vec<_>>()[..]
        else {
            panic!("{text}")
        };
        Attributes::Resource(OnResource { verb, group, resource, subresource, namespace, name, fields: None })
    };
    let path = |path: &'static str| Attributes::Path { verb: "get", path };
    for (caller, wanted, expected) in [
        (user("quiet", &[]), on("get - secrets - a s"), "None"),
        (user("ann", &[]), path("/healthz/ping"), "None"),
        (user("ann", &[]), path("/version"), "None"),
        (user("ann", &[]), path("/versions"), "None"),
        (user("ann", &[]), on("get - secrets - a s"), "Metadata 2"),
        (user("ann", &[]), on("get - pods - a web"), "RequestResponse 1 without owners"),
        (user("ann", &[]), on("get - pods - a other"), "None"),
        (user("ann", &[]), on("get - pods log a web"), "None"),
        (user("ann", &[]), on("update apps statefulsets scale a x"), "Request 1"),
        (user("ann", &[]), on("update apps deployments status a x"), "Request 1"),
        (user("ann", &[]), on("update apps deployments - a x"), "Request 1"),
        (user("ann", &["ops"]), on("delete - services - a x"), "Request 1"),
        (user("ann", &[]), on("delete - services - a x"), "None"),
        (user("ann", &[]), on("list apps daemonsets - kube-system -"), "Metadata 1"),
        (user("ann", &[]), on("list - nodes - - -"), "Metadata 1"),
    ] {
        let found = match policy.recording(Some(&caller), &wanted) {
            None => "None".to_owned(),
            Some(recording) => {
                let owners = if recording.omits_owners { " without owners" } else { "" };
                format!("{} {}{owners}", recording.level.text(), recording.omitted.len())
            }
        };
        assert_eq!(found, expected, "{} {wanted:?}", caller.name);
    }
}

#[test]
fn invalid_policies_are_reported_in_kubernetes_words() {
    for (text, expected) in [
        ("rules: []", "loaded illegal policy with 0 rules"),
        ("rules: [{}]", "rules[0].level: Required value"),
        (
            "rules: [{level: All}]",
            r#"rules[0].level: Unsupported value: "All": supported values: "None", "Metadata", "Request", "RequestResponse""#,
        ),
        (
            "rules: [{level: None, nonResourceURLs: [healthz, '/a*b']}]",
            r#"[rules[0].nonResourceURLs[0]: Invalid value: "healthz": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule]"#,
        ),
        (
            "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]",
            r#"rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs"#,
        ),
        (
            "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
            r#"rules[0].resources.resourceNames: Invalid value: ["a"]: using resourceNames requires at least one resource"#,
        ),
        (
            "omitStages: [Later]\nrules: [{level: None}]",
            r#"omitStages[0]: Invalid value: "Later": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic"#,
        ),
    ] {
        assert_eq!(policy(text).unwrap_err().to_string(), expected, "{text}");
    }
    let foreign = AuditPolicy::parse(b"apiVersion: v1\nkind: Policy\nrules: [{level: None}]").unwrap_err();
    assert_eq!(foreign.to_string(), "unknown group version field v1, Kind=Policy in policy");
}
