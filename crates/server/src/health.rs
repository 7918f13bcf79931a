//! Paths beside resources: health, version, discovery, documents.

use crate::{
    Inner,
    answer::{self, Body},
    refusal::Refusal,
    registry::Customs,
    request::pairs,
};
use api::{go, path::VersionPath};
use http::{Method, Response, StatusCode, request::Parts};
use std::collections::BTreeSet;

/// Health checks.
const CHECKS: [&str; 3] = ["ping", "log", STORE];

// Kubernetes: this name for any store.
const STORE: &str = "etcd";

/// Fails /readyz while the server drains.
const SHUTDOWN: &str = "shutdown";

const PROBES: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// Paths beside groups, versions and checks.
const PATHS: [&str; 10] = [
    "/.well-known/openid-configuration",
    "/api",
    "/apis",
    "/apis/",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/version",
];

pub(crate) async fn answer(inner: &Inner, path: &str, head: &Parts) -> Result<Response<Body>, Refusal> {
    if path == "/" {
        return Ok(root(inner, &inner.registry.customs(&*inner.store).await?));
    }
    if PROBES.contains(&path) {
        return Ok(health(inner, path, head.uri.query().unwrap_or_default()));
    }
    if let Some((probe, check)) = check_of(path) {
        return Ok(match checks(probe).any(|known| known == check) {
            true if is_well(inner, probe, check) => plain("ok"),
            true if check == STORE => text(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal server error: the store cannot be written to\n",
            ),
            true => {
                text(StatusCode::INTERNAL_SERVER_ERROR, "internal server error: process is shutting down\n")
            }
            false => nothing_here(),
        });
    }
    if head.method != Method::GET && is_only_read(inner, path) {
        return Err(Refusal::method_not_allowed());
    }
    match crate::documents::answer(inner, path, head).await? {
        Some(found) => Ok(found),
        None if is_routed(inner, path) => Err(Refusal::not_served()),
        None => Ok(nothing_here()),
    }
}

/// Whether a path belongs to a built-in group, whose router answers with a Status.
fn is_routed(inner: &Inner, path: &str) -> bool {
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/');
    match (parts.next().unwrap_or_default(), parts.next(), parts.next()) {
        ("api" | "version", ..)
        | (".well-known", Some("openid-configuration"), _)
        | ("openid", Some("v1"), Some("jwks")) => true,
        // Kubernetes: groups themselves are served by another handler.
        ("apis", Some(group), Some(version)) => !version.is_empty() && inner.registry.has_group(group),
        _ => false,
    }
}

/// Kubernetes: these paths allow only GET; all others answer any method alike.
fn is_only_read(inner: &Inner, path: &str) -> bool {
    let has = |group, version| inner.registry.group_versions().any(|it| it == (group, version));
    match path.trim_end_matches('/').split('/').collect::<Vec<_>>()[..] {
        ["", "api" | "version"] | ["", "openid", "v1", "jwks"] => true,
        ["", ".well-known", "openid-configuration"] => true,
        ["", "api", version] => has("", version),
        ["", "apis", group, version] => has(group, version),
        _ => false,
    }
}

fn check_of(path: &str) -> Option<(&'static str, &str)> {
    PROBES.into_iter().find_map(|probe| Some((probe, path.strip_prefix(probe)?.strip_prefix('/')?)))
}

fn checks(probe: &str) -> impl Iterator<Item = &'static str> + use<> {
    CHECKS.into_iter().chain((probe == "/readyz").then_some(SHUTDOWN))
}

fn is_well(inner: &Inner, probe: &str, check: &str) -> bool {
    match check {
        SHUTDOWN => !inner.draining.value(),
        // A full disk fails readyz only: the server is alive and answers reads, but rejects writes.
        STORE => probe != "/readyz" || inner.store.is_writable(),
        _ => true,
    }
}

fn health(inner: &Inner, probe: &str, query: &str) -> Response<Body> {
    let name = probe.trim_start_matches('/');
    let excluded: BTreeSet<String> =
        pairs(query).filter(|(key, _)| key == "exclude").map(|(_, check)| check).collect();
    let (mut lines, mut unknown, mut has_failed) = (String::new(), excluded.clone(), false);
    for check in checks(probe) {
        unknown.remove(check);
        lines.push_str(&match excluded.contains(check) {
            true => format!("[+]{check} excluded: ok\n"),
            false if is_well(inner, probe, check) => format!("[+]{check} ok\n"),
            false => {
                has_failed = true;
                format!("[-]{check} failed: reason withheld\n")
            }
        });
    }
    if !unknown.is_empty() {
        let unknown = unknown.iter().map(|check| go::quote(check)).collect::<Vec<_>>().join(",");
        let warning = "warn: some health checks cannot be excluded: no matches for";
        lines.push_str(&format!("{warning} {unknown}\n"));
    }
    let is_verbose = pairs(query).any(|(key, _)| key == "verbose");
    match (has_failed, is_verbose) {
        (true, _) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{lines}{name} check failed\n")),
        (false, true) => text(StatusCode::OK, &format!("{lines}{name} check passed\n")),
        (false, false) => text(StatusCode::OK, "ok"),
    }
}

/// Kubernetes: a malformed URL is rejected before it reaches the API.
pub(crate) fn unreadable() -> Response<Body> {
    text(StatusCode::BAD_REQUEST, "400 Bad Request")
}

/// Kubernetes: paths outside of all resources get plain text, not a Status.
pub(crate) fn nothing_here() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// Kubernetes: for a single healthy check Go detects the Content-Type.
fn plain(body: &str) -> Response<Body> {
    answer::full(StatusCode::OK, "text/plain; charset=utf-8", body.to_owned())
}

fn text(code: StatusCode, body: &str) -> Response<Body> {
    let mut response = answer::full(code, "text/plain; charset=utf-8", body.to_owned());
    let nosniff = http::HeaderValue::from_static("nosniff");
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// The list of paths at `/`.
fn root(inner: &Inner, customs: &Customs) -> Response<Body> {
    let mut paths = Vec::from(PATHS.map(str::to_owned));
    let customs = customs.of("", "").map(|custom| (&*custom.resource.group, &*custom.resource.version));
    for (group, version) in inner.registry.group_versions().chain(customs) {
        match group {
            "" => paths.push("/api/v1".to_owned()),
            group => {
                paths.extend([format!("/apis/{group}"), VersionPath { group, version }.to_string()]);
            }
        }
    }
    for probe in PROBES {
        paths.push(probe.to_owned());
        paths.extend(checks(probe).map(|check| format!("{probe}/{check}")));
    }
    paths.sort();
    paths.dedup();
    let value = serde_json::json!({ "paths": paths });
    answer::full(StatusCode::OK, "application/json", format!("{value:#}\n"))
}
