//! A URI, or the path of one, as Go's `url.ParseRequestURI` parses it.

pub(super) fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    if !rest.starts_with('/') {
        // After a scheme Go accepts anything.
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(authority) && has_good_escapes(path)
        }
        None => has_good_escapes(rest),
    }
}

/// The scheme, if there is one, and the text after it.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return None,
            ':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(authority: &str) -> bool {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    user.chars().all(is_user) && has_good_escapes(user) && is_host(host)
}

fn is_host(host: &str) -> bool {
    let is_port = |port: &str| {
        port.is_empty()
            || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if let Some(bracketed) = host.strip_prefix('[') {
        let Some((address, port)) = bracketed.rsplit_once(']') else { return false };
        let (address, zone) = address.split_once("%25").unwrap_or((address, ""));
        return address.parse::<std::net::Ipv6Addr>().is_ok() && has_good_escapes(zone) && is_port(port);
    }
    let (name, port) = host.split_at(host.rfind(':').unwrap_or(host.len()));
    let is_name =
        |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:[]<>\"%".contains(c) || !c.is_ascii();
    // Go unescapes non-ASCII characters only.
    let ascii_escape = name.split('%').skip(1).any(|escape| matches!(escape.as_bytes(), [b'0'..=b'7', ..]));
    is_port(port) && name.chars().all(is_name) && !ascii_escape && has_good_escapes(name)
}

fn has_good_escapes(text: &str) -> bool {
    let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
    text.split('%').skip(1).all(|escape| {
        let digits = escape.as_bytes();
        is_hex(digits.first()) && is_hex(digits.get(1))
    })
}
