//! Reads a kubeconfig: the server's address, its CA, and the client's credentials.

use super::trust;
use anyhow::{Context, Result, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use serde::Deserialize;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio_rustls::rustls::{ClientConfig, pki_types::ServerName};

/// A server, and everything needed to talk to it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) url: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
    authority: HeaderValue,
    authorization: Option<HeaderValue>,
    /// The prefix of all paths, for servers behind a gateway.
    base: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Kubeconfig {
    current_context: String,
    contexts: Vec<Named<Context_>>,
    clusters: Vec<Named<Cluster>>,
    users: Vec<Named<User>>,
}

/// An entry of one of the three lists; the field of its content is named after the list.
#[derive(Debug, Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    content: T,
}

#[derive(Debug, Deserialize)]
struct Context_ {
    cluster: String,
    user: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    pub(super) insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(super) struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    // Kubernetes: the only name in camel case.
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    password: Option<String>,
    exec: Option<serde_json::Value>,
    auth_provider: Option<serde_json::Value>,
}

impl Target {
    pub(crate) fn read(path: &Path) -> Result<Target> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Target::parse(&text, folder).with_context(|| format!("cannot use {}", path.display()))
    }

    /// Relative file names are resolved from `folder`.
    fn parse(text: &[u8], folder: &Path) -> Result<Target> {
        let json = schema::yaml::to_json(text).map_err(|error| anyhow::anyhow!("{error}"))?.json;
        let config: Kubeconfig = serde_json::from_slice(&json)?;
        let context = find(&config.contexts, &config.current_context, "context")?;
        let cluster = find(&config.clusters, &context.cluster, "cluster")?;
        let user = find(&config.users, &context.user, "user")?;
        let uri: Uri = cluster.server.parse().with_context(|| format!("server {:?}", cluster.server))?;
        if uri.scheme_str() != Some("https") {
            bail!("server {:?} is not https", cluster.server);
        }
        let (Some(host), Some(authority)) = (uri.host(), uri.authority()) else {
            bail!("server {:?} names no host", cluster.server);
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        let name = cluster.tls_server_name.clone().unwrap_or_else(|| host.clone());
        Ok(Target {
            url: cluster.server.clone(),
            port: uri.port_u16().unwrap_or(443),
            tls: trust::client_config(cluster, user, folder)?,
            server_name: ServerName::try_from(name.clone()).with_context(|| format!("server {name:?}"))?,
            authority: HeaderValue::from_str(authority.as_str())?,
            authorization: user.authorization(folder)?,
            base: uri.path().trim_end_matches('/').to_owned(),
            host,
        })
    }

    pub(crate) fn request(&self, method: Method, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = method;
        let path = if self.base.is_empty() { path.parse() } else { format!("{}{path}", self.base).parse() };
        *request.uri_mut() = path.expect("paths of the benchmark are well-formed");
        let headers = request.headers_mut();
        headers.insert(header::HOST, self.authority.clone());
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static("setpoint-bench"));
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        request
    }

    /// HTTP/2 has the server in the URL, not in a header.
    pub(crate) fn over_http2(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(http::uri::Scheme::HTTPS);
        parts.authority = http::uri::Authority::try_from(self.authority.as_bytes()).ok();
        *request.uri_mut() = Uri::from_parts(parts).expect("a path and an authority make a URL");
        request.headers_mut().remove(header::HOST);
        request
    }
}

impl Cluster {
    /// The CA certificates of the server, in PEM.
    pub(super) fn authority(&self, folder: &Path) -> Result<Option<Vec<u8>>> {
        content(self.certificate_authority_data.as_deref(), self.certificate_authority.as_deref(), folder)
    }
}

impl User {
    /// A certificate and its key, in PEM.
    pub(super) fn identity(&self, folder: &Path) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let certificate =
            content(self.client_certificate_data.as_deref(), self.client_certificate.as_deref(), folder)?;
        let key = content(self.client_key_data.as_deref(), self.client_key.as_deref(), folder)?;
        Ok(certificate.zip(key))
    }

    fn authorization(&self, folder: &Path) -> Result<Option<HeaderValue>> {
        if self.exec.is_some() || self.auth_provider.is_some() {
            bail!("its user logs in through another program; give one with a token or a certificate");
        }
        let token = match (&self.token, &self.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(path)) => Some(fs::read_to_string(folder.join(path)).context("tokenFile")?),
            (None, None) => None,
        };
        let text = match (token, &self.username) {
            (Some(token), _) => format!("Bearer {}", token.trim()),
            (None, Some(name)) => {
                let password = self.password.as_deref().unwrap_or_default();
                format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
            }
            (None, None) => return Ok(None),
        };
        let mut value = HeaderValue::from_str(&text)?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

fn find<'a, T>(all: &'a [Named<T>], name: &str, what: &str) -> Result<&'a T> {
    let found = all.iter().find(|named| named.name == name);
    found.map(|named| &named.content).with_context(|| format!("it has no {what} {name:?}"))
}

/// Kubernetes: inline data has precedence over a file name.
fn content(data: Option<&str>, file: Option<&Path>, folder: &Path) -> Result<Option<Vec<u8>>> {
    match (data, file) {
        (Some(data), _) if !data.is_empty() => Ok(Some(STANDARD.decode(data.trim())?)),
        (_, Some(path)) => {
            let path = folder.join(path);
            fs::read(&path).map(Some).with_context(|| format!("cannot read {}", path.display()))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cluster: &str, user: &str, expected: Result<(&str, u16, Option<&str>), &str>) {
        let text = format!(
            "clusters: [{{name: c, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n\
             contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\ncurrent-context: x\n"
        );
        let target = Target::parse(text.as_bytes(), Path::new("/nowhere"));
        let found = target.as_ref().map(|target| {
            let request = target.request(Method::GET, "/version", "");
            let authorization = request.headers().get(header::AUTHORIZATION).cloned();
            let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
            (target.host.clone(), target.port, request.uri().to_string(), authorization)
        });
        match (found, expected) {
            (Ok((host, port, uri, authorization)), Ok(expected)) => {
                assert_eq!((format!("{host}{uri}").as_str(), port, authorization.as_deref()), expected);
            }
            (Err(error), Err(expected)) => assert!(format!("{error:#}").contains(expected), "{error:#}"),
            (found, _) => panic!("{cluster} {user}: {found:?}"),
        }
    }

    #[test]
    fn kubeconfigs_are_read_as_by_kubectl() {
        const ANY: &str = "insecure-skip-tls-verify: true";
        check(
            &format!("server: 'https://a:6443', {ANY}"),
            "token: t",
            Ok(("a/version", 6443, Some("Bearer t"))),
        );
        check(&format!("server: 'https://a/k8s/', {ANY}"), "", Ok(("a/k8s/version", 443, None)));
        check(
            &format!("server: 'https://[::1]:1', {ANY}"),
            "username: name, password: p",
            Ok(("::1/version", 1, Some("Basic bmFtZTpw"))),
        );
        check(&format!("server: 'http://a', {ANY}"), "", Err("is not https"));
        check(
            &format!("server: 'https://a', {ANY}"),
            "exec: {command: login}",
            Err("through another program"),
        );
        check("server: 'https://a'", "", Err("names no certificate authority"));
        check("server: 'https://a', certificate-authority: ca.crt", "", Err("cannot read /nowhere/ca.crt"));
        let empty = Target::parse(b"current-context: x", Path::new("")).unwrap_err();
        assert_eq!(empty.to_string(), "it has no context \"x\"");
    }
}
