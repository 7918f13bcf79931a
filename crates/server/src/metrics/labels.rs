//! The labels under which a request is counted.

use crate::{
    Inner,
    request::{Place, Target},
};
use http::{Method, Request, header};
use std::{borrow::Cow, sync::Arc};

/// In Kubernetes' words; all from closed sets.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Labelled<'a> {
    pub(super) verb: &'static str,
    dry_run: &'static str,
    pub(super) group: Cow<'a, str>,
    pub(super) version: Cow<'a, str>,
    pub(super) resource: Cow<'a, str>,
    subresource: Cow<'a, str>,
    scope: &'static str,
}

/// Paths beside resources that have their own label.
const PATHS: [&str; 8] =
    ["/healthz", "/livez", "/readyz", "/metrics", "/version", "/api", "/apis", "/openapi/v2"];

impl<'a> Labelled<'a> {
    /// As in the request, not yet checked against what is served.
    pub(super) fn of<B>(request: &'a Request<B>, place: Option<&'a Place>) -> Labelled<'a> {
        let query = request.uri().query().unwrap_or_default();
        match place {
            Some(Place::Resource(target)) => of_resource(request, target, query),
            _ => Labelled {
                verb: verb(request, query, false),
                subresource: request.uri().path().into(),
                ..Labelled::default()
            },
        }
    }

    pub(super) fn into_owned(self) -> Labelled<'static> {
        let Labelled { verb, dry_run, group, version, resource, subresource, scope } = self;
        let [group, version, resource, subresource] =
            [group, version, resource, subresource].map(|text| Cow::Owned(text.into_owned()));
        Labelled { verb, dry_run, group, version, resource, subresource, scope }
    }

    pub(super) fn all(&self) -> [(&'static str, &str); 8] {
        [
            ("component", "apiserver"),
            ("dry_run", self.dry_run),
            ("group", &self.group),
            ("resource", &self.resource),
            ("scope", self.scope),
            ("subresource", &self.subresource),
            ("verb", self.verb),
            ("version", &self.version),
        ]
    }

    pub(super) fn with_code<'s>(&'s self, code: &'s str) -> [(&'static str, &'s str); 9] {
        let [component, dry_run, group, resource, scope, subresource, verb, version] = self.all();
        [("code", code), component, dry_run, group, resource, scope, subresource, verb, version]
    }

    pub(super) fn without_dry_run(&self) -> [(&'static str, &str); 7] {
        let [component, _, group, resource, scope, subresource, verb, version] = self.all();
        [component, group, resource, scope, subresource, verb, version]
    }
}

impl Labelled<'static> {
    /// Removes values that are not served.
    pub(super) async fn keep_served(self, inner: &Arc<Inner>) -> Labelled<'static> {
        let mut labels = self;
        if labels.resource.is_empty() {
            let path = &*labels.subresource;
            if !PATHS.contains(&path) {
                labels.subresource = if path.starts_with("/openapi/v3") { "/openapi/v3" } else { "" }.into();
            }
            return labels;
        }
        let served = inner.registry.served(&*inner.store, &labels.group, &labels.version, &labels.resource);
        match served.await.ok().flatten() {
            Some(served) => {
                if served.subresource(&labels.subresource).is_none() {
                    labels.subresource = Cow::default();
                }
                labels
            }
            None => Labelled { verb: labels.verb, ..Labelled::default() },
        }
    }
}

fn of_resource<'a, B>(request: &Request<B>, target: &'a Target, query: &str) -> Labelled<'a> {
    let creates = request.method() == Method::POST;
    let scope = match (target.name.is_empty() && !creates, target.namespace.is_empty()) {
        (false, _) => "resource",
        (true, false) => "namespace",
        (true, true) => "cluster",
    };
    let verb = match target.old_watch {
        true => "WATCH",
        false => verb(request, query, scope != "resource"),
    };
    let dry_run = match parameter(query, "dryRun") {
        None | Some("") => "",
        Some("All") => "All",
        Some(_) => "invalid",
    };
    let Target { group, version, resource, subresource, .. } = target;
    let [group, version, resource, subresource] =
        [group, version, resource, subresource].map(|text| Cow::Borrowed(text.as_str()));
    Labelled { verb, dry_run, group, version, resource, subresource, scope }
}

fn verb<B>(request: &Request<B>, query: &str, is_collection: bool) -> &'static str {
    let watches =
        || parameter(query, "watch").is_some_and(|value| !matches!(value, "0" | "false" | "False" | "FALSE"));
    let applies = || {
        request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/apply-patch+yaml")
    };
    match *request.method() {
        Method::GET if watches() => "WATCH",
        Method::GET | Method::HEAD if is_collection => "LIST",
        Method::GET | Method::HEAD => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH if applies() => "APPLY",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::parse;
    use http::Uri;

    #[test]
    fn requests_have_the_labels_of_kubernetes() {
        for (method, uri, kind, expected) in [
            ("GET", "/api/v1/pods", "", "LIST   v1 pods  cluster"),
            ("GET", "/api/v1/namespaces/a/pods", "", "LIST   v1 pods  namespace"),
            ("GET", "/api/v1/namespaces/a/pods?watch=1", "", "WATCH   v1 pods  namespace"),
            ("GET", "/api/v1/watch/pods", "", "WATCH   v1 pods  cluster"),
            (
                "GET",
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "",
                "GET  apps v1 deployments scale resource",
            ),
            ("POST", "/api/v1/namespaces/a/pods?dryRun=All", "", "POST All  v1 pods  resource"),
            ("POST", "/api/v1/namespaces/a/pods?dryRun=Some", "", "POST invalid  v1 pods  resource"),
            ("PATCH", "/api/v1/nodes/a", "application/json-patch+json", "PATCH   v1 nodes  resource"),
            ("PATCH", "/api/v1/nodes/a", "application/apply-patch+yaml", "APPLY   v1 nodes  resource"),
            ("DELETE", "/api/v1/nodes", "", "DELETE   v1 nodes  cluster"),
            ("BREW", "/api/v1/nodes", "", "other   v1 nodes  cluster"),
            ("GET", "/healthz", "", "GET     /healthz "),
        ] {
            let request = Request::builder().method(method).uri(uri).header(header::CONTENT_TYPE, kind);
            let (request, place) = (request.body(()).unwrap(), parse(Uri::from_static(uri).path()));
            let Labelled { verb, dry_run, group, version, resource, subresource, scope } =
                Labelled::of(&request, place.as_ref());
            let found = format!("{verb} {dry_run} {group} {version} {resource} {subresource} {scope}");
            assert_eq!(found, expected, "{method} {uri}");
        }
    }
}
