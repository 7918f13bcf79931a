//! Discovery and OpenAPI documents by path.
//!
//! They are made at their first request and cached until the served resources change; of OpenAPI v3, only
//! the documents of changed versions are made again.

mod form;
mod kept;
mod offer;
mod openid;
mod serve;

pub(crate) use kept::Documents;

use crate::{
    Inner,
    answer::{self, Body},
    custom::Custom,
    discovery::{self, Listed},
    input::MEDIA_TYPES,
    negotiate::{self, check_produced},
    openapi::{self, CustomSchemas, OpenApiVersion},
    refusal::Refusal,
    registry::Customs,
    served::Served,
};
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use kept::Document;
use kinds::resources::Resource;
use std::sync::Arc;

pub(crate) async fn answer(
    inner: &Inner,
    path: &str,
    head: &Parts,
) -> Result<Option<Response<Body>>, Refusal> {
    let customs = inner.registry.customs(&*inner.store).await?;
    Library { inner, customs: &customs }.find(path, head)
}

/// The part of the served resources that a document covers.
#[derive(Clone, Copy, Debug)]
enum Extent<'e> {
    Everything,
    Group(&'e str),
    Version(&'e str, &'e str),
}

impl Extent<'_> {
    fn has(self, resource: &Resource) -> bool {
        match self {
            Extent::Everything => true,
            Extent::Group(group) => resource.group == group,
            Extent::Version(group, version) => resource.group == group && resource.version == version,
        }
    }
}

/// The served resources at one moment, and the documents about them.
struct Library<'a> {
    inner: &'a Inner,
    customs: &'a Customs,
}

impl<'a> Library<'a> {
    fn find(&self, path: &str, head: &Parts) -> Result<Option<Response<Body>>, Refusal> {
        let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let parts = match parts[..] {
            // Kubernetes: the router ignores a trailing slash, except below /openapi.
            [ref rest @ .., ""] if parts[0] != "openapi" => rest,
            ref all => all,
        };
        match parts {
            ["version"] => {
                check_produced(&head.headers, &["application/json"])?;
                Ok(Some(json(discovery::version())))
            }
            ["api" | "apis", ..] => self.discover(parts, head),
            [".well-known", ..] | ["openid", ..] => {
                let accounts = &self.inner.authenticator.accounts;
                openid::document(accounts, parts, &host(head), &head.headers)
            }
            _ => Ok(self.describe(parts, head)),
        }
    }

    /// A discovery document, in the encoding that the client accepts.
    fn discover(&self, parts: &[&str], head: &Parts) -> Result<Option<Response<Body>>, Refusal> {
        let name = parts.join("/");
        let found = match parts {
            ["api" | "apis"] if discovery::is_aggregated_wanted(negotiate::accept(&head.headers)) => {
                return Ok(self.aggregated(parts[0] == "api", head));
            }
            ["api"] => Some(Arc::new(Document::plain(discovery::core_versions(&host(head))))),
            ["apis"] => self.discovery(&name, Extent::Everything, |all| Some(discovery::groups(all))),
            ["apis", group] => {
                self.discovery(&name, Extent::Group(group), |all| discovery::group(all, group))
            }
            ["api", version] => self.resources(&name, "", version),
            ["apis", group, version] => self.resources(&name, group, version),
            _ => None,
        };
        let Some(document) = found else { return Ok(None) };
        // Kubernetes: the router checks Accept first, but not for lists of groups and for custom resources.
        if parts[0] == "api" || (parts.len() == 3 && self.inner.registry.has_group(parts[1])) {
            check_produced(&head.headers, &MEDIA_TYPES)?;
        }
        let form = negotiate::Form::plain(&head.headers)?;
        Ok(Some(form::shown(&document, form, head)))
    }

    /// An OpenAPI document.
    fn describe(&self, parts: &[&str], head: &Parts) -> Option<Response<Body>> {
        match parts {
            ["openapi", "v2"] => Some(self.older(head)),
            ["openapi", "v3"] => self.index(head),
            ["openapi", "v3", rest @ ..] => {
                let found = match rest {
                    ["api", version] => self.description(head, "", version),
                    ["apis", group, version] => self.description(head, group, version),
                    _ => None,
                };
                found.or_else(|| Some(silent(StatusCode::NOT_FOUND)))
            }
            _ => None,
        }
    }

    fn listed(&self, extent: Extent<'_>) -> Vec<Listed<'a>> {
        let registry = &self.inner.registry;
        let is_listed = |it: &&Resource| extent.has(it) && !registry.is_hidden(&it.group, &it.version);
        let built_in = kinds::resources().iter().filter(is_listed).map(Listed::from);
        built_in.chain(self.served(extent).map(Listed::custom)).collect()
    }

    /// The custom resources.
    fn served(&self, extent: Extent<'_>) -> impl Iterator<Item = &'a Served> + use<'a> {
        let (group, version) = match extent {
            Extent::Everything => ("", ""),
            Extent::Group(group) => (group, ""),
            Extent::Version(group, version) => (group, version),
        };
        self.customs.of(group, version)
    }

    fn definitions(&self, extent: Extent<'_>) -> impl Iterator<Item = &'a Custom> + use<'a> {
        self.served(extent).filter_map(Served::custom)
    }

    fn kept(
        &self,
        name: &str,
        extent: Extent<'_>,
        make: impl FnOnce() -> Option<Document>,
    ) -> Option<Arc<Document>> {
        self.inner.documents.get(self.customs.generation, name, || self.stamp(extent), make)
    }

    /// The revisions of the definitions behind the served resources, and whether they are terminating: then
    /// they serve less.
    fn stamp(&self, extent: Extent<'_>) -> String {
        let stamp_of = |it: &Custom| {
            let (definition, going) =
                (&it.definition, if it.definition.state.terminating { "-" } else { "" });
            format!("{}@{}{going} ", definition.name, it.since)
        };
        self.definitions(extent).map(stamp_of).collect()
    }

    /// Groups, versions and resources in separate documents.
    fn discovery(
        &self,
        name: &str,
        extent: Extent<'_>,
        make: impl FnOnce(&[Listed<'_>]) -> Option<String>,
    ) -> Option<Arc<Document>> {
        self.kept(name, extent, || make(&self.listed(extent)).map(Document::plain))
    }

    fn resources(&self, name: &str, group: &str, version: &str) -> Option<Arc<Document>> {
        let extent = Extent::Version(group, version);
        self.discovery(name, extent, |all| discovery::resources(all, group, version))
    }

    /// Aggregated discovery, with an ETag.
    fn aggregated(&self, is_core: bool, head: &Parts) -> Option<Response<Body>> {
        let name = if is_core { "aggregated/api" } else { "aggregated/apis" };
        let make = || {
            let made = discovery::aggregated(&self.listed(Extent::Everything), is_core);
            let document = Document::plain(made.body).of_type(discovery::AGGREGATED_MEDIA_TYPE);
            Some(document.tagged(made.etag))
        };
        let document = self.kept(name, Extent::Everything, make)?;
        let mut response = serve::conditional(&document, head);
        let headers = response.headers_mut();
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        Some(response)
    }

    /// `/openapi/v2`, as JSON or as protobuf.
    fn older(&self, head: &Parts) -> Response<Body> {
        let Some(offer) = offer::choose(&text(head, header::ACCEPT), &offer::OLDER) else {
            return not_acceptable();
        };
        let now = self.inner.world.wall();
        let as_json = self.kept("openapi/v2", Extent::Everything, || {
            let schemas = self.schemas(OpenApiVersion::V2, Extent::Everything);
            let text =
                openapi::swagger(&self.listed(Extent::Everything), self.inner.registry.types, &schemas);
            let tag = quoted(&discovery::fingerprint(text.as_bytes()));
            Some(Document::plain(text).tagged(tag).made_at(now))
        });
        let document = match offer.is_protobuf {
            false => as_json,
            true => as_json.and_then(|json| {
                self.kept("openapi/v2 protobuf", Extent::Everything, || {
                    let document = Document::plain(openapi::gnostic(&json.body)?).of_type(offer.answered);
                    // Kubernetes: the ETag of the JSON form; `Vary` tells them apart.
                    Some(document.tagged(json.etag.clone()).made_at(now))
                })
            }),
        };
        let Some(document) = document else { return not_acceptable() };
        vary(serve::conditional(&document, head))
    }

    /// `/openapi/v3`.
    fn index(&self, head: &Parts) -> Option<Response<Body>> {
        let now = self.inner.world.wall();
        let document = self.kept("openapi/v3", Extent::Everything, || {
            let all = self.listed(Extent::Everything);
            let text = openapi::index(&all, |group, version| self.fingerprint(group, version));
            let tag = quoted(&discovery::fingerprint(text.as_bytes()));
            // Kubernetes: it sets no Content-Type, so Go detects this one.
            let document = Document::plain(text).of_type("text/plain; charset=utf-8");
            Some(document.tagged(tag).made_at(now))
        })?;
        Some(serve::conditional(&document, head))
    }

    /// The hash of a version's document; cached, since the index needs all of them.
    fn fingerprint(&self, group: &str, version: &str) -> Option<String> {
        let name = format!("fingerprint {}", openapi::path(group, version));
        let extent = Extent::Version(group, version);
        let kept = self.kept(&name, extent, || {
            let customs: String = self.definitions(extent).map(identity_of).collect();
            let all = self.listed(extent);
            openapi::fingerprint(&all, &customs, group, version).map(Document::plain)
        })?;
        str::from_utf8(&kept.body).ok().map(str::to_owned)
    }

    /// The document of one version. With the right hash in the URL, clients may cache it for ever.
    fn description(&self, head: &Parts, group: &str, version: &str) -> Option<Response<Body>> {
        let path = openapi::path(group, version);
        let now = self.inner.world.wall();
        let extent = Extent::Version(group, version);
        let document = self.kept(&path, extent, || {
            let (all, types) = (self.listed(extent), self.inner.registry.types);
            let schemas = self.schemas(OpenApiVersion::V3, extent);
            let text = openapi::document(&all, types, &schemas, group, version)?;
            let tag = quoted(&self.fingerprint(group, version)?);
            Some(Document::plain(text).tagged(tag).made_at(now))
        })?;
        if offer::choose(&text(head, header::ACCEPT), &offer::NEWER).is_none() {
            return Some(not_acceptable());
        }
        let hash = document.etag.trim_matches('"');
        let given_hash = hash_of(head).filter(|given_hash| !given_hash.is_empty());
        if given_hash.is_some_and(|given_hash| given_hash != hash) {
            return Some(vary(serve::moved(&document, &format!("{path}?hash={hash}"))));
        }
        let mut response = vary(serve::conditional(&document, head));
        if given_hash.is_some() {
            serve::keep_for_ever(&mut response, now);
        }
        Some(response)
    }

    /// The OpenAPI schemas of custom resources.
    fn schemas(&self, openapi: OpenApiVersion, extent: Extent<'_>) -> CustomSchemas {
        let all = self.definitions(extent);
        all.flat_map(|it| openapi::schemas_of(&it.definition, it.version(), openapi)).collect()
    }
}

/// Everything that the OpenAPI document of a custom resource depends on, beside discovery. Does not read
/// its schema.
fn identity_of(custom: &Custom) -> String {
    let definition = &custom.definition;
    format!("{} {}@{} ", definition.names.list_kind, definition.uid, definition.generation)
}

fn json(text: String) -> Response<Body> {
    answer::full(StatusCode::OK, "application/json", text)
}

fn not_acceptable() -> Response<Body> {
    vary(silent(StatusCode::NOT_ACCEPTABLE))
}

// Kubernetes: errors of OpenAPI have no body.
fn silent(code: StatusCode) -> Response<Body> {
    let mut response = answer::full(code, "", "");
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

fn vary(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    response
}

fn quoted(fingerprint: &str) -> String {
    format!("\"{fingerprint}\"")
}

fn hash_of(head: &Parts) -> Option<&str> {
    head.uri.query()?.split('&').find_map(|pair| pair.strip_prefix("hash="))
}

fn text(head: &Parts, name: header::HeaderName) -> String {
    let values = head.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

fn host(head: &Parts) -> String {
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str)).unwrap_or_default().to_owned()
}
