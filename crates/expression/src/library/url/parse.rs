//! Parses a URL as Go's `net/url` does.

use api::go::quote;

use super::escape::{Part, escape, is_encoded, unescape};
use crate::library::address;

#[derive(Debug, Default)]
pub(super) struct Url {
    pub scheme: String,
    /// The text after the scheme of a URL without slashes.
    opaque: String,
    user: Option<User>,
    /// With its port, and with the brackets of an IPv6 address.
    pub host: Vec<u8>,
    path: Vec<u8>,
    /// The path as it was written, where that differs from the usual escapes.
    raw_path: Option<String>,
    raw_query: String,
    fragment: Vec<u8>,
    raw_fragment: Option<String>,
    ends_with_question_mark: bool,
    no_host: bool,
}

#[derive(Debug)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// Go: a query with more parameters is not parsed at all.
const MAX_PARAMETERS: usize = 10_000;

/// Why a text is neither an absolute URI nor an absolute path: Go's `url.ParseRequestURI`.
pub(in crate::library) fn request_uri_problem(text: &str) -> Option<String> {
    read(text, true).err().map(|problem| refusal(text, &problem))
}

fn refusal(text: &str, problem: &str) -> String {
    format!("parse {}: {problem}", quote(text))
}

impl Url {
    pub(super) fn parse(text: &str) -> Result<Url, String> {
        let (main, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = read(main, false).map_err(|problem| refusal(main, &problem))?;
        if !fragment.is_empty() {
            url.fragment = unescape(fragment, Part::Fragment).map_err(|problem| refusal(text, &problem))?;
            let usual = escape(&url.fragment, Part::Fragment) == fragment.as_bytes();
            url.raw_fragment = (!usual).then(|| fragment.to_owned());
        }
        Ok(url)
    }

    /// The host without its port and without brackets.
    pub(super) fn hostname(&self) -> &[u8] {
        let name = &self.host[..self.host.len() - self.colon_port().len()];
        name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]")).unwrap_or(name)
    }

    pub(super) fn port(&self) -> &[u8] {
        self.colon_port().strip_prefix(b":").unwrap_or_default()
    }

    /// The end of the host that looks like a port.
    fn colon_port(&self) -> &[u8] {
        let Some(colon) = self.host.iter().rposition(|byte| *byte == b':') else { return b"" };
        let port = &self.host[colon..];
        if port[1..].iter().all(u8::is_ascii_digit) { port } else { b"" }
    }

    pub(super) fn escaped_path(&self) -> Vec<u8> {
        match &self.raw_path {
            Some(raw) if is_encoded(raw.as_bytes(), Part::Path) => raw.clone().into_bytes(),
            _ if self.path == b"*" => b"*".to_vec(),
            _ => escape(&self.path, Part::Path),
        }
    }

    /// The parameters that can be read, in their order.
    pub(super) fn query(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        if self.raw_query.matches('&').count() >= MAX_PARAMETERS {
            return Vec::new();
        }
        let readable = |pair: &str| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(key, Part::Query).ok()?, unescape(value, Part::Query).ok()?))
        };
        let pairs = self.raw_query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        pairs.filter_map(readable).collect()
    }

    /// The URL as text; two URLs are compared by it.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend(self.scheme.bytes().chain(*b":"));
        }
        if self.opaque.is_empty() {
            self.write_authority(&mut out);
            let path = self.escaped_path();
            if !path.is_empty() && path[0] != b'/' && !self.host.is_empty() {
                out.push(b'/');
            }
            let first = path.split(|byte| *byte == b'/').next().unwrap_or_default();
            if out.is_empty() && first.contains(&b':') {
                out.extend(b"./");
            }
            out.extend(path);
        } else {
            out.extend(self.opaque.bytes());
        }
        if self.ends_with_question_mark || !self.raw_query.is_empty() {
            out.push(b'?');
            out.extend(self.raw_query.bytes());
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            match &self.raw_fragment {
                Some(raw) if is_encoded(raw.as_bytes(), Part::Fragment) => out.extend(raw.bytes()),
                _ => out.extend(escape(&self.fragment, Part::Fragment)),
            }
        }
        out
    }

    fn write_authority(&self, out: &mut Vec<u8>) {
        let no_authority = self.host.is_empty() && self.user.is_none();
        if no_authority && (self.scheme.is_empty() || self.no_host) {
            return;
        }
        if !no_authority || !self.path.is_empty() {
            out.extend(b"//");
        }
        if let Some(user) = &self.user {
            out.extend(escape(&user.name, Part::User));
            if let Some(password) = &user.password {
                out.push(b':');
                out.extend(escape(password, Part::User));
            }
            out.push(b'@');
        }
        out.extend(escape(&self.host, Part::Host));
    }
}

fn read(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        url.path = b"*".to_vec();
        return Ok(url);
    }
    let (scheme, mut rest) = split_scheme(text)?;
    url.scheme = scheme.to_lowercase();
    if rest.ends_with('?') && rest.matches('?').count() == 1 {
        url.ends_with_question_mark = true;
        rest = &rest[..rest.len() - 1];
    } else if let Some((before, query)) = rest.split_once('?') {
        url.raw_query = query.to_owned();
        rest = before;
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let may_have_host = !url.scheme.is_empty() || (!is_request && !rest.starts_with("///"));
    if let Some(authority) = rest.strip_prefix("//").filter(|_| may_have_host) {
        let end = authority.find('/').unwrap_or(authority.len());
        (url.user, url.host) = read_authority(&url.scheme, &authority[..end])?;
        rest = &authority[end..];
    } else {
        url.no_host = !url.scheme.is_empty() && rest.starts_with('/');
    }
    url.path = unescape(rest, Part::Path)?;
    let usual = escape(&url.path, Part::Path) == rest.as_bytes();
    url.raw_path = (!usual).then(|| rest.to_owned());
    Ok(url)
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn read_authority(scheme: &str, authority: &str) -> Result<(Option<User>, Vec<u8>), String> {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let host = read_host(scheme, host)?;
    let Some(user) = user else { return Ok((None, host)) };
    if !user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let (name, password) = match user.split_once(':') {
        Some((name, password)) => (name, Some(password)),
        None => (user, None),
    };
    let name = unescape(name, Part::User)?;
    let password = password.map(|password| unescape(password, Part::User)).transpose()?;
    Ok((Some(User { name, password }), host))
}

fn read_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    match host.rfind('[') {
        Some(0) => return read_literal(host),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    if let Some(first) = host.find(':') {
        // Go: several hosts with ports are common in the URLs of databases, so only these two are strict.
        let strict = matches!(scheme, "http" | "https");
        let colon = if strict { first } else { host.rfind(':').unwrap_or(first) };
        check_port(&host[colon..])?;
    }
    unescape(host, Part::Host)
}

/// `[::1]:80`
fn read_literal(host: &str) -> Result<Vec<u8>, String> {
    let Some(close) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
    let (name, port) = (&host[1..close], &host[close + 1..]);
    check_port(port)?;
    let port = unescape(port, Part::Host)?;
    let zone = name.find("%25").unwrap_or(name.len());
    let mut address = unescape(&name[..zone], Part::Host)?;
    address.extend(unescape(&name[zone..], Part::Zone)?);
    let parsed = address::parse(&String::from_utf8_lossy(&address));
    let parsed = parsed.map_err(|problem| format!("invalid host: {problem}"))?;
    if parsed.address.is_ipv4() {
        return Err("invalid IP-literal".to_owned());
    }
    Ok([b"[", &address[..], b"]", &port].concat())
}

fn check_port(port: &str) -> Result<(), String> {
    let digits =
        port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    if port.is_empty() || digits {
        return Ok(());
    }
    Err(format!("invalid port {} after host", quote(port)))
}
