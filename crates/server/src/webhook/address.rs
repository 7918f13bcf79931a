//! Resolves the address of a webhook to host and port.

use crate::{Inner, lookup};
use kinds::definition::WebhookAddress;
use serde_json::Value;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// `host:port` of the socket.
    pub(super) connect: String,
    /// The name that the certificate must have.
    pub(super) server_name: String,
}

impl Destination {
    pub(super) async fn find(inner: &Inner, address: &WebhookAddress) -> Result<Destination, String> {
        match address {
            WebhookAddress::Url(url) => Destination::of_url(url),
            WebhookAddress::Service { namespace, name, port, .. } => {
                let connect = endpoint(inner, namespace, name, *port).await?;
                Ok(Destination { connect, server_name: name_of_service(namespace, name) })
            }
        }
    }

    fn of_url(url: &str) -> Result<Destination, String> {
        let parsed: http::Uri = url.parse().map_err(|error| format!("{url:?} is no URL: {error}"))?;
        if parsed.scheme_str() != Some("https") {
            return Err(format!("{url:?} does not begin with https"));
        }
        let host = parsed.host().ok_or_else(|| format!("{url:?} names no host"))?;
        let connect = format!("{host}:{}", parsed.port_u16().unwrap_or(443));
        let server_name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Destination { connect, server_name })
    }
}

/// The URL of a call: the webhook's own with a clean path, and the timeout.
pub(super) fn url(address: &WebhookAddress, timeout: Duration) -> String {
    let (authority, path) = match address {
        WebhookAddress::Url(url) => {
            let rest = url.strip_prefix("https://").unwrap_or(url);
            let rest = rest.split(['?', '#']).next().unwrap_or_default();
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            (authority.to_owned(), path)
        }
        WebhookAddress::Service { namespace, name, path, port } => {
            (format!("{}:{port}", name_of_service(namespace, name)), path.as_str())
        }
    };
    format!("https://{authority}{}?timeout={}s", clean_path(path), timeout.as_secs())
}

/// Kubernetes: Go's `path.Join("/", path)`. Go's mux redirects other paths, and a redirect loses the body.
fn clean_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

/// Kubernetes: the name in certificates of services.
fn name_of_service(namespace: &str, name: &str) -> String {
    format!("{name}.{namespace}.svc")
}

/// The address of one endpoint of a service.
async fn endpoint(inner: &Inner, namespace: &str, name: &str, port: u16) -> Result<String, String> {
    let service = lookup::object(inner, ("", "v1", "services"), namespace, name)
        .await
        .map_err(|refusal| refusal.to_string())?;
    let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
    if service["spec"]["type"] == "ExternalName" {
        let host = service["spec"]["externalName"].as_str().unwrap_or_default();
        return Ok(format!("{host}:{port}"));
    }
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let wanted = ports.into_iter().find(|it| it["port"] == port);
    let wanted = wanted.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?;
    let port_name = wanted["name"].as_str().unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    for slice in slices(inner, namespace, name).await? {
        let ports = slice["ports"].as_array().into_iter().flatten();
        let at = ports.into_iter().find(|it| it["name"].as_str().unwrap_or_default() == port_name);
        let Some(at) = at.and_then(|it| it["port"].as_u64()) else { continue };
        let endpoints = slice["endpoints"].as_array().into_iter().flatten();
        let ready = endpoints.filter(|it| it["conditions"]["ready"] != false);
        let addresses = ready.flat_map(|it| it["addresses"].as_array().into_iter().flatten());
        found.extend(addresses.filter_map(Value::as_str).map(|address| match address.contains(':') {
            true => format!("[{address}]:{at}"),
            false => format!("{address}:{at}"),
        }));
    }
    let chosen = inner.world.pick(0..found.len() as u64) as usize;
    found.get(chosen).cloned().ok_or_else(|| format!("no endpoints available for service {name:?}"))
}

async fn slices(inner: &Inner, namespace: &str, service: &str) -> Result<Vec<Value>, String> {
    let slices = lookup::objects(inner, ("discovery.k8s.io", "v1", "endpointslices"), namespace).await;
    let slices = slices.map_err(|refusal| refusal.to_string())?.into_iter();
    Ok(slices.filter(|it| it["metadata"]["labels"]["kubernetes.io/service-name"] == service).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_resolve_to_host_port_and_path() {
        for (url, connect, name) in [
            ("https://hooks.example.com/convert", "hooks.example.com:443", "hooks.example.com"),
            ("https://127.0.0.1:8443/x?a=b", "127.0.0.1:8443", "127.0.0.1"),
            ("https://[::1]:9443", "[::1]:9443", "::1"),
        ] {
            let found = Destination::of_url(url).unwrap();
            assert_eq!((&*found.connect, &*found.server_name), (connect, name));
        }
        for url in ["http://a.example.com", "a.example.com", "https://"] {
            assert!(Destination::of_url(url).is_err(), "{url}");
        }
        let (namespace, name, path) = ("n".to_owned(), "s".to_owned(), "/p".to_owned());
        let of_url = |url: &str| WebhookAddress::Url(url.to_owned());
        for (address, expected) in [
            (of_url("https://a/x"), "https://a/x?timeout=10s"),
            (of_url("https://127.0.0.1:9443//validate"), "https://127.0.0.1:9443/validate?timeout=10s"),
            (of_url("https://a//x/./y/../z//"), "https://a/x/z?timeout=10s"),
            (of_url("https://a/../.."), "https://a/?timeout=10s"),
            (of_url("https://a"), "https://a/?timeout=10s"),
            (
                WebhookAddress::Service { namespace, name, path, port: 443 },
                "https://s.n.svc:443/p?timeout=10s",
            ),
        ] {
            assert_eq!(url(&address, Duration::from_secs(10)), expected);
        }
    }
}
