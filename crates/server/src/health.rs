//! What is served beside resources: health, version, discovery, documents.

use crate::{
    Inner,
    answer::{self, Body},
    request::Options,
};
use api::status::Status;
use http::{Method, Response, StatusCode, request::Parts};

/// The parts whose health is told one by one.
const CHECKS: [&str; 3] = ["ping", "log", "etcd"];

/// What there is beside groups and their versions.
const PATHS: [&str; 9] =
    ["/api", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"];

pub(crate) async fn answer(
    inner: &Inner,
    path: &str,
    head: &Parts,
    options: &Options,
) -> Result<Response<Body>, Status> {
    let path = path.trim_end_matches('/');
    if head.method != Method::GET && is_only_read(inner, path) {
        return Err(crate::verbs::method_not_allowed());
    }
    match path {
        "/healthz" | "/livez" | "/readyz" => Ok(health(path, options)),
        "" => Ok(root(inner)),
        _ => match check_of(path) {
            Some(check) if CHECKS.contains(&check) => Ok(text(StatusCode::OK, "ok")),
            Some(_) => Ok(nothing_here()),
            None => {
                let found = crate::documents::answer(inner, path, head).await?;
                match found {
                    Some(found) => Ok(found),
                    None if is_of_built_in(inner, path) => Err(crate::verbs::not_served()),
                    None => Ok(nothing_here()),
                }
            }
        },
    }
}

/// Whether a path lies in a group that is built in, which tells what it has not got.
fn is_of_built_in(inner: &Inner, path: &str) -> bool {
    let group = match path.strip_prefix("/apis/") {
        Some(rest) => rest.split('/').next().unwrap_or_default(),
        None if path.starts_with("/api/") => "",
        None => return false,
    };
    inner.registry.has_group(group) && (group.is_empty() != path.starts_with("/apis/"))
}

/// Kubernetes: these have a method; everything else answers the same to every one.
fn is_only_read(inner: &Inner, path: &str) -> bool {
    let has = |group, version| inner.registry.group_versions().any(|it| it == (group, version));
    match path.split('/').collect::<Vec<_>>()[..] {
        ["", "api" | "version"] | ["", "openid", "v1", "jwks"] => true,
        ["", ".well-known", "openid-configuration"] => true,
        ["", "api", version] => has("", version),
        ["", "apis", group, version] => has(group, version),
        _ => false,
    }
}

fn check_of(path: &str) -> Option<&str> {
    ["/healthz/", "/livez/", "/readyz/"].into_iter().find_map(|prefix| path.strip_prefix(prefix))
}

fn health(path: &str, options: &Options) -> Response<Body> {
    let name = path.trim_start_matches('/');
    if !options.rest.contains_key("verbose") {
        return text(StatusCode::OK, "ok");
    }
    let mut lines: String = CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
    lines.push_str(&format!("{name} check passed\n"));
    text(StatusCode::OK, &lines)
}

/// Kubernetes: paths outside of every resource get no Status.
pub(crate) fn nothing_here() -> Response<Body> {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

fn text(code: StatusCode, body: &str) -> Response<Body> {
    let mut response = answer::full(code, "text/plain; charset=utf-8", body.to_owned());
    let nosniff = http::HeaderValue::from_static("nosniff");
    response.headers_mut().insert(http::header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}

/// The paths there are, for somebody who looks around.
fn root(inner: &Inner) -> Response<Body> {
    let mut paths: Vec<String> = inner
        .registry
        .group_versions()
        .map(|(group, version)| match group {
            "" => "/api/v1".to_owned(),
            group => format!("/apis/{group}/{version}"),
        })
        .collect();
    paths.extend(PATHS.map(str::to_owned));
    paths.sort();
    paths.dedup();
    let value = serde_json::json!({ "paths": paths });
    answer::full(StatusCode::OK, "application/json", format!("{value:#}\n"))
}
