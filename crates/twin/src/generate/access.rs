//! Stories of users with few rights: what a role allows and forbids.

use super::{
    namespace, reads,
    subject::{Subject, subjects},
    writes::Writer,
};
use crate::{
    draw::Draw,
    generate::mutate::Wildness,
    json::Json,
    story::{ADMIN, Request, Step, Story},
};

const ALL_VERBS: [&str; 8] =
    ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
const USERS: [&str; 4] = ["viewer", "editor", "nobody", "other"];
const URLS: [&str; 10] =
    ["/", "/api", "/apis", "/version", "/healthz", "/readyz", "/livez/ping", "/metrics", "/logs", "/api/v1"];

pub(super) fn story(draw: &mut Draw) -> Story {
    let candidates: Vec<&Subject> = subjects()
        .iter()
        .filter(|it| {
            it.namespaced
                && (it.is_custom() || matches!(it.kind.as_str(), "ConfigMap" | "Deployment" | "Pod" | "Role"))
        })
        .collect();
    let subject = draw.pick(&candidates);
    let user = draw.pick(&USERS);
    let mut setup = namespace();
    setup.extend(grant(subject, user, draw));
    let mut writers =
        [Writer::new(subject, "a", Wildness::Tame, draw), Writer::new(subject, "b", Wildness::Tame, draw)];
    let mut steps = vec![writers[0].first(draw)];
    for _ in 0..8 + draw.below(8) {
        let mut step = match draw.below(10) {
            0..5 => {
                let at = draw.below(2);
                writers[at].next(draw)
            }
            5 => reads::get(subject, "a", draw),
            6 => reads::list(subject, draw),
            7 => Request::new("GET", draw.pick(&URLS)).accept("*/*").compared(),
            8 => review(subject, draw),
            _ => escalation(draw),
        };
        if !draw.one_in(6) {
            step.request.user = user;
        }
        if draw.one_in(10) {
            impersonate(&mut step.request, draw);
        }
        steps.push(step);
    }
    for step in &mut steps {
        // For these only the 403 is the same.
        if step.request.path == "/metrics" || step.request.path == "/logs" || step.request.path == "/" {
            step.request.user = "nobody";
        }
    }
    Story { theme: "access", setup, steps, cleanup: super::cleanup(subject, &["a", "b"]) }
}

/// Creates a role for the user, and waits until the real server has it.
fn grant(subject: &Subject, user: &'static str, draw: &mut Draw) -> Vec<Step> {
    let mut verbs: Vec<&str> = ALL_VERBS.into_iter().filter(|_| draw.one_in(2)).collect();
    if verbs.is_empty() {
        verbs.push("get");
    }
    let list = |words: &[&str]| Json::List(words.iter().map(|word| Json::text(word)).collect());
    let below = format!("{}/{}", subject.resource, draw.pick(&["status", "scale", "*"]));
    let resources: Vec<&str> =
        if draw.one_in(2) { vec![&subject.resource, &below] } else { vec![subject.resource.as_str()] };
    let mut rule = Json::Object(Vec::new());
    rule.set("apiGroups", list(&[&subject.group]));
    rule.set("resources", list(&resources));
    rule.set("verbs", list(&verbs));
    if draw.one_in(5) {
        rule.set("resourceNames", list(&["a"]));
    }
    let roles = Json::literal(
        r#"{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["create","update","get"]}"#,
    );
    let mut role = Json::literal(
        r#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"granted"}}"#,
    );
    role.set("rules", Json::List(vec![rule, roles]));
    let binding = Json::literal(&format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{{"name":"granted"}},
        "subjects":[{{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"{user}"}}],
        "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"granted"}}}}"#
    ));
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}";
    let asked = r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"{ns}","verb":"update","group":"rbac.authorization.k8s.io","resource":"roles"}}}"#;
    vec![
        Request::new("POST", format!("{root}/roles")).json(role).uncompared(),
        Request::new("POST", format!("{root}/rolebindings")).json(binding).uncompared(),
        Request::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
            .json(Json::literal(asked))
            .user(user)
            .until("\"allowed\":true"),
    ]
}

/// A review of the user's own rights.
fn review(subject: &Subject, draw: &mut Draw) -> Step {
    let attributes = format!(
        r#"{{"namespace":"{{ns}}","verb":"{}","group":"{}","resource":"{}","name":"{}"}}"#,
        draw.pick(&ALL_VERBS),
        subject.group,
        subject.resource,
        draw.pick(&["", "a"])
    );
    let body = format!(
        r#"{{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{{"resourceAttributes":{attributes}}}}}"#
    );
    Request::new("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
        .json(Json::literal(&body))
        .compared()
}

/// Tries to grant rights that the user does not have.
fn escalation(draw: &mut Draw) -> Step {
    let root = "/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}";
    let verbs = draw.pick(&[r#"["get"]"#, r#"["*"]"#, r#"["create","delete"]"#]);
    let resources = draw.pick(&[r#"["configmaps"]"#, r#"["secrets","pods/*"]"#, r#"["*"]"#]);
    if draw.one_in(3) {
        let binding = format!(
            r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{{"name":"taken"}},
            "subjects":[{{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"nobodies"}}],
            "roleRef":{{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"{}"}}}}"#,
            draw.pick(&["cluster-admin", "system:basic-user", "none"])
        );
        return Request::new("POST", format!("{root}/rolebindings")).json(Json::literal(&binding)).compared();
    }
    let role = format!(
        r#"{{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{{"name":"taken"}},
        "rules":[{{"apiGroups":[""],"resources":{resources},"verbs":{verbs}}}]}}"#
    );
    Request::new("POST", format!("{root}/roles")).json(Json::literal(&role)).compared()
}

fn impersonate(request: &mut Request, draw: &mut Draw) {
    if draw.one_in(2) {
        request.user = ADMIN;
    }
    let user = draw.pick(&["viewer", "somebody", "system:serviceaccount:{ns}:default", "system:anonymous"]);
    request.headers.push(("impersonate-user", user.to_owned()));
    if draw.one_in(3) {
        request.headers.push(("impersonate-group", "twin:viewers".to_owned()));
    }
}
