//! Formats of network addresses, host names and Kubernetes names.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use api::name::Format;
use regex::Regex;

/// An address with dots. Kubernetes: leading zeros are accepted, and so are dots inside IPv6.
pub(super) fn is_ipv4(text: &str) -> bool {
    text.contains('.') && (sloppy_ipv4(text).is_some() || text.parse::<Ipv6Addr>().is_ok())
}

pub(super) fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

pub(super) fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match (sloppy_ipv4(address), address.parse::<Ipv6Addr>()) {
        (Some(_), _) => 32,
        (None, Ok(_)) => 128,
        (None, Err(_)) => return false,
    };
    let plain = bits.len() <= 4 && bits.bytes().all(|byte| byte.is_ascii_digit());
    plain && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

fn sloppy_ipv4(text: &str) -> Option<Ipv4Addr> {
    let part = |part: &str| {
        let plain = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u8>().ok().filter(|_| plain)
    };
    let parts = text.split('.').map(part).collect::<Option<Vec<_>>>()?;
    <[u8; 4]>::try_from(parts).ok().map(Ipv4Addr::from)
}

/// 6, 8 or 20 bytes in hex: by two with colons or dashes, or by four with dots.
pub(super) fn is_mac(text: &str) -> bool {
    let separated = |separator: char, width: usize| {
        let groups: Vec<_> = text.split(separator).collect();
        let hex = |group: &&str| group.len() == width && group.bytes().all(|byte| byte.is_ascii_hexdigit());
        matches!(groups.len() * width / 2, 6 | 8 | 20) && groups.iter().all(hex)
    };
    separated(':', 2) || separated('-', 2) || separated('.', 4)
}

pub(super) fn is_short_name(text: &str) -> bool {
    Format::Dns1123Label.fits(text)
}

pub(super) fn is_long_name(text: &str) -> bool {
    Format::Dns1123Subdomain.fits(text)
}

/// One label, in which a dash may only be the second character; or several and a top level of letters.
/// Symbols and letters of all scripts count.
pub(super) fn is_host_name(text: &str) -> bool {
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    match text.rsplit_once('.') {
        None => {
            let mut rest = text.chars();
            let first = rest.next();
            let tail = rest.as_str().strip_prefix('-').unwrap_or(rest.as_str());
            first.is_some_and(is_host_char) && tail.chars().count() <= 62 && tail.chars().all(is_host_char)
        }
        Some((labels, top)) => {
            let is_top = (2..=63).contains(&top.chars().count()) && top.chars().all(is_letter);
            is_top && labels.split('.').all(is_host_label)
        }
    }
}

fn is_host_label(label: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(is_host_char);
    edge(label.chars().next())
        && edge(label.chars().next_back())
        && label.chars().all(|c| c == '-' || is_host_char(c))
}

fn is_letter(c: char) -> bool {
    static LETTER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\p{L}$").expect("the pattern is valid"));
    c.is_ascii_alphabetic() || (!c.is_ascii() && LETTER.is_match(c.encode_utf8(&mut [0; 4])))
}

fn is_host_char(c: char) -> bool {
    static SYMBOL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^\p{S}$").expect("the pattern is valid"));
    c.is_ascii_digit() || is_letter(c) || SYMBOL.is_match(c.encode_utf8(&mut [0; 4]))
}
