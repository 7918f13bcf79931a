//! Paths of discovery and of the API's own description in, their documents out.
//!
//! They are made when they are first asked for and kept until what is served changes; of OpenAPI's version 3 only the
//! documents of those versions that change are made again.

mod kept;
mod offer;
mod serve;

pub(crate) use kept::Documents;

use crate::{
    Inner,
    answer::{self, Body},
    authenticate,
    custom::Custom,
    discovery::{self, Listed},
    openapi::{self, CustomSchemas, Form},
    registry::Customs,
    served::Served,
};
use api::status::Status;
use http::{HeaderValue, Response, StatusCode, header, request::Parts};
use kept::Document;
use std::sync::Arc;

pub(crate) async fn answer(
    inner: &Inner,
    path: &str,
    head: &Parts,
) -> Result<Option<Response<Body>>, Status> {
    let customs = inner.registry.customs(&*inner.store).await?;
    Ok(Library { inner, customs: &customs }.find(path, head))
}

/// Everything that can be read of what is served at one moment.
struct Library<'a> {
    inner: &'a Inner,
    customs: &'a Customs,
}

impl<'a> Library<'a> {
    fn find(&self, path: &str, head: &Parts) -> Option<Response<Body>> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        match parts[..] {
            ["version"] => Some(json(discovery::version())),
            ["api" | "apis"] if discovery::is_aggregated_wanted(&text(head, header::ACCEPT)) => {
                self.aggregated(parts[0] == "api", head)
            }
            ["api"] => Some(json(discovery::core_versions(&host(head)))),
            ["apis"] => self.discovery(path, head, |all| Some(discovery::groups(all))),
            ["apis", group] => self.discovery(path, head, |all| discovery::group(all, group)),
            ["api", version] => self.discovery(path, head, |all| discovery::resources(all, "", version)),
            ["apis", group, version] => {
                self.discovery(path, head, |all| discovery::resources(all, group, version))
            }
            [".well-known", ..] | ["openid", ..] => {
                authenticate::documents(&self.inner.authenticator.accounts, &parts, &host(head))
            }
            ["openapi", "v2"] => Some(self.older(head)),
            ["openapi", "v3"] => self.index(head),
            ["openapi", "v3", "api", version] => self.description(head, "", version),
            ["openapi", "v3", "apis", group, version] => self.description(head, group, version),
            _ => None,
        }
    }

    fn listed(&self) -> Vec<Listed<'a>> {
        self.inner.registry.listed(self.customs)
    }

    /// A document that tells of everything.
    fn kept(&self, name: &str, make: impl FnOnce() -> Option<Document>) -> Option<Arc<Document>> {
        self.inner.documents.get(self.customs.generation, name, || self.stamp(None), make)
    }

    /// A document that tells of one version of a group.
    fn kept_of(
        &self,
        name: &str,
        of: (&str, &str),
        make: impl FnOnce() -> Option<Document>,
    ) -> Option<Arc<Document>> {
        self.inner.documents.get(self.customs.generation, name, || self.stamp(Some(of)), make)
    }

    /// When the definitions behind what is served last changed.
    fn stamp(&self, of: Option<(&str, &str)>) -> String {
        self.definitions(of).map(|it| format!("{}@{} ", it.definition.name, it.since)).collect()
    }

    /// The custom resources of everything, or of one version of a group.
    fn definitions(&self, of: Option<(&str, &str)>) -> impl Iterator<Item = &Custom> {
        let wanted = move |served: &&Served| {
            of.is_none_or(|(group, version)| {
                served.resource.group == group && served.resource.version == version
            })
        };
        self.customs.all().filter(wanted).filter_map(Served::custom)
    }

    /// Groups, versions and resources, each by itself.
    fn discovery(
        &self,
        path: &str,
        head: &Parts,
        make: impl FnOnce(&[Listed<'_>]) -> Option<String>,
    ) -> Option<Response<Body>> {
        let document = self.kept(path, || make(&self.listed()).map(Document::plain))?;
        Some(serve::whole(&document, head))
    }

    /// Everything at once, for clients that remember what they have seen.
    fn aggregated(&self, is_core: bool, head: &Parts) -> Option<Response<Body>> {
        let name = if is_core { "aggregated/api" } else { "aggregated/apis" };
        let make = || {
            let made = discovery::aggregated(&self.listed(), is_core);
            let document = Document::plain(made.body).of_type(discovery::AGGREGATED_MEDIA_TYPE);
            Some(document.tagged(made.etag))
        };
        let document = self.kept(name, make)?;
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
        let as_json = self.kept("openapi/v2", || {
            let schemas = self.schemas(Form::Older, None);
            let text = openapi::swagger(&self.listed(), self.inner.registry.types, &schemas);
            let tag = quoted(&discovery::fingerprint(text.as_bytes()));
            Some(Document::plain(text).tagged(tag).made_at(now))
        });
        let document = match offer.is_protobuf {
            false => as_json,
            true => as_json.and_then(|json| {
                self.kept("openapi/v2 protobuf", || {
                    let document = Document::plain(openapi::gnostic(&json.body)?).of_type(offer.answered);
                    // Kubernetes: the same tag as JSON has; `Vary` keeps them apart.
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
        let document = self.kept("openapi/v3", || {
            let all = self.listed();
            let text = openapi::index(&all, |group, version| self.fingerprint(&all, group, version));
            let tag = quoted(&discovery::fingerprint(text.as_bytes()));
            Some(Document::plain(text).tagged(tag).made_at(now))
        })?;
        Some(serve::conditional(&document, head))
    }

    /// What changes when the description of a version does; kept, since the index wants all of them.
    fn fingerprint(&self, all: &[Listed<'_>], group: &str, version: &str) -> Option<String> {
        let name = format!("fingerprint {}", openapi::path(group, version));
        let kept = self.kept_of(&name, (group, version), || {
            let schemas = self.schemas(Form::Newer, Some((group, version)));
            openapi::fingerprint(all, &schemas, group, version).map(Document::plain)
        })?;
        str::from_utf8(&kept.body).ok().map(str::to_owned)
    }

    /// The description of one version. A caller who names the right hash may keep it for ever.
    fn description(&self, head: &Parts, group: &str, version: &str) -> Option<Response<Body>> {
        let path = openapi::path(group, version);
        let now = self.inner.world.wall();
        let document = self.kept_of(&path, (group, version), || {
            let (all, types) = (self.listed(), self.inner.registry.types);
            let schemas = self.schemas(Form::Newer, Some((group, version)));
            let text = openapi::document(&all, types, &schemas, group, version)?;
            let tag = quoted(&self.fingerprint(&all, group, version)?);
            Some(Document::plain(text).tagged(tag).made_at(now))
        })?;
        if offer::choose(&text(head, header::ACCEPT), &offer::NEWER).is_none() {
            return Some(not_acceptable());
        }
        let hash = document.etag.trim_matches('"');
        let asked = hash_of(head).filter(|asked| !asked.is_empty());
        if asked.is_some_and(|asked| asked != hash) {
            return Some(vary(serve::moved(&document, &format!("{path}?hash={hash}"))));
        }
        let mut response = vary(serve::conditional(&document, head));
        if asked.is_some() {
            serve::keep_for_ever(&mut response, now);
        }
        Some(response)
    }

    /// What definitions say of their custom resources.
    fn schemas(&self, form: Form, of: Option<(&str, &str)>) -> CustomSchemas {
        let all = self.definitions(of);
        all.flat_map(|it| openapi::schemas_of(&it.definition, it.version(), form)).collect()
    }
}

fn json(text: String) -> Response<Body> {
    answer::full(StatusCode::OK, "application/json", text)
}

// Kubernetes: it says nothing else.
fn not_acceptable() -> Response<Body> {
    let mut response = vary(answer::full(StatusCode::NOT_ACCEPTABLE, "", ""));
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
