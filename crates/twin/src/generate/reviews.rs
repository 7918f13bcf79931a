//! Stories of requests that store nothing: discovery, reviews, tokens, evictions and bindings.

use super::{namespace, reads, value};
use crate::{
    draw::Draw,
    json::Json,
    story::{Body, PROTOBUF, Request, Step, Story, YAML},
};

const DOCUMENTS: [&str; 22] = [
    "/",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/apps",
    "/apis/apps/v1",
    "/apis/batch/v1",
    "/apis/autoscaling",
    "/apis/autoscaling/v1",
    "/apis/autoscaling/v2",
    "/apis/policy/v1",
    "/apis/rbac.authorization.k8s.io/v1",
    "/apis/apiextensions.k8s.io/v1",
    "/apis/twin.example.com",
    "/apis/twin.example.com/v1",
    "/apis/twin.example.com/v1alpha1",
    "/apis/events.k8s.io/v1",
    "/version",
    "/healthz",
    "/livez",
    "/readyz",
    "/openid/v1/jwks",
];
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const REVIEWS: [(&str, &str); 12] = [
    (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"{ns}","verb":"get","resource":"pods"}}}"#,
    ),
    (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"path":"/x","verb":"get"}}}"#,
    ),
    (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{}}"#,
    ),
    (
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"viewer","groups":["g"],"resourceAttributes":{"verb":"list","group":"apps","resource":"deployments","labelSelector":{"rawSelector":"a=b"}}}}"#,
    ),
    (
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"groups":["system:masters"],"resourceAttributes":{"verb":"*","group":"*","resource":"*"}}}"#,
    ),
    (
        "/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews",
        r#"{"apiVersion":"authorization.k8s.io/v1","kind":"LocalSubjectAccessReview","metadata":{"namespace":"{ns}"},"spec":{"user":"viewer","resourceAttributes":{"namespace":"{ns}","verb":"get","resource":"pods"}}}"#,
    ),
    (
        "/apis/authentication.k8s.io/v1/tokenreviews",
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"viewer-token"}}"#,
    ),
    (
        "/apis/authentication.k8s.io/v1/tokenreviews",
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"wrong","audiences":["a"]}}"#,
    ),
    (
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}"#,
    ),
    (
        "/api/v1/namespaces/{ns}/serviceaccounts/default/token",
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":["a"],"expirationSeconds":700}}"#,
    ),
    (
        "/api/v1/namespaces/{ns}/serviceaccounts/missing/token",
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#,
    ),
    (
        "/api/v1/namespaces/{ns}/serviceaccounts/default/token",
        r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":5,"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":"x"}}}"#,
    ),
];
const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
const BINDINGS: [&str; 4] = [
    r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Node","name":"n"}}"#,
    r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p","annotations":{"x":"y"}},"target":{"name":"n"}}"#,
    r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"q"},"target":{"kind":"Node","name":"n"}}"#,
    r#"{"apiVersion":"v1","kind":"Binding","metadata":{"name":"p"},"target":{"kind":"Pod","name":""}}"#,
];
const EVICTIONS: [&str; 4] = [
    r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}"#,
    r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":{"dryRun":["All"]}}"#,
    r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"q"}}"#,
    r#"{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"},"deleteOptions":{"gracePeriodSeconds":0}}"#,
];

pub(super) fn documents(draw: &mut Draw) -> Story {
    let step = |draw: &mut Draw| {
        let path = draw.pick(&DOCUMENTS);
        let mut request = Request::new(draw.pick(&["GET", "GET", "GET", "GET", "HEAD", "POST"]), path);
        request = match draw.below(6) {
            0 => request.accept(reads::object_form(draw)),
            1 if matches!(path, "/api") => request.accept(AGGREGATED),
            2 => request.query(draw.pick(&["exclude=etcd", "pretty=1", "timeout=1s"])),
            _ => request,
        };
        request.user = draw.pick(&["admin", "admin", "viewer", "wrong"]);
        request.http2 = draw.one_in(3);
        request.compared()
    };
    let steps = (0..12).map(|_| step(draw)).collect();
    Story { theme: "documents", setup: Vec::new(), steps, cleanup: Vec::new() }
}

pub(super) fn reviews(draw: &mut Draw) -> Story {
    let mut steps = Vec::new();
    for _ in 0..8 {
        let (path, body) = draw.pick(&REVIEWS);
        let mut body = Json::literal(body);
        if draw.one_in(4) {
            body.set_at(
                &["spec", draw.pick(&["user", "unknown", "token", "extra", "audiences"])],
                value::any(draw, 1),
            );
        }
        let mut request = with_form(Request::new("POST", path), body, draw);
        request.user = draw.pick(&["admin", "admin", "admin", "viewer"]);
        steps.push(request.compared());
    }
    Story { theme: "reviews", setup: namespace(), steps, cleanup: Vec::new() }
}

pub(super) fn pods(draw: &mut Draw) -> Story {
    let pods = "/api/v1/namespaces/{ns}/pods";
    let mut steps: Vec<Step> = vec![Request::new("POST", pods).json(Json::literal(POD)).compared()];
    for _ in 0..5 {
        let request = match draw.below(5) {
            0 => with_form(
                Request::new("POST", format!("{pods}/p/binding")),
                Json::literal(draw.pick(&BINDINGS)),
                draw,
            ),
            1 => with_form(
                Request::new("POST", "/api/v1/namespaces/{ns}/bindings"),
                Json::literal(draw.pick(&BINDINGS)),
                draw,
            ),
            2 => with_form(
                Request::new("POST", format!("{pods}/p/eviction")),
                Json::literal(draw.pick(&EVICTIONS)),
                draw,
            ),
            3 => Request::new("DELETE", format!("{pods}/p")).query(draw.pick(&[
                "",
                "gracePeriodSeconds=5",
                "gracePeriodSeconds=0",
                "dryRun=All",
            ])),
            _ => {
                let status = draw.pick(&[
                    r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"podIPs":[{"ip":"10.9.9.9"}]}}"#,
                    r#"{"status":{"phase":"Succeeded"}}"#,
                    r#"{"status":{"containerStatuses":[{"name":"c","ready":true,"restartCount":2,"image":"i","imageID":"x","state":{"running":{"startedAt":"2001-01-01T00:00:00Z"}}}]}}"#,
                ]);
                let body = Body::Json(Json::literal(status));
                Request::new("PATCH", format!("{pods}/p/status")).body(super::writes::STRATEGIC, body)
            }
        };
        steps.push(request.compared());
        steps.push(Request::new("GET", pods).accept(reads::object_form(draw)).compared());
        steps.push(Request::new("GET", format!("{pods}/p")).accept(reads::object_form(draw)).compared());
    }
    Story { theme: "pods", setup: namespace(), steps, cleanup: Vec::new() }
}

fn with_form(request: Request, body: Json, draw: &mut Draw) -> Request {
    let request = match draw.below(5) {
        0 => request.body(YAML, Body::Yaml(body)),
        1 => request.body(PROTOBUF, Body::Protobuf(body)),
        _ => request.json(body),
    };
    let request = if draw.one_in(4) {
        request.query(draw.pick(&["dryRun=All", "fieldManager=x", "fieldValidation=Strict"]))
    } else {
        request
    };
    if draw.one_in(3) { request.accept(reads::object_form(draw)) } else { request }
}
