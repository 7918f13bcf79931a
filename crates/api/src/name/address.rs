//! IP addresses and CIDR ranges, strict for new fields and lenient as Kubernetes once was for old ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::field::{Error, ErrorList, Path};
use crate::go;

/// An address and the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Range {
    address: IpAddr,
    prefix: u8,
}

/// An address in canonical form.
pub fn ip(path: &Path<'_>, text: &str) -> ErrorList {
    match parse_ip(path, text) {
        Ok(address) => not_canonical(path, text, &address.to_string()),
        Err(errors) => errors,
    }
}

/// A field older than the strict rules: any form, but without leading zeros or IPv4 dressed as IPv6. What an
/// update does not touch may stay as bad as it was: that is for the caller to see.
pub fn legacy_ip(path: &Path<'_>, text: &str) -> ErrorList {
    parse_ip(path, text).err().unwrap_or_default()
}

/// A network in canonical form.
pub fn cidr(path: &Path<'_>, text: &str) -> ErrorList {
    match parse_cidr(path, text) {
        Ok(range) => not_canonical(path, text, &range.network().to_string()),
        Err(errors) => errors,
    }
}

/// A field older than the strict rules.
pub fn legacy_cidr(path: &Path<'_>, text: &str) -> ErrorList {
    parse_cidr(path, text).err().unwrap_or_default()
}

/// The address of one host together with its network, in canonical form.
pub fn interface_address(path: &Path<'_>, text: &str) -> ErrorList {
    match Range::parse_leniently(text) {
        Some(range) => not_canonical(path, text, &range.unmapped().to_string()),
        None => {
            let problem = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
            Error::invalid(path, text, problem).into()
        }
    }
}

/// What to say about an address that passed before the rules were strict.
pub fn ip_warning(path: &Path<'_>, text: &str) -> Option<String> {
    let address = parse_ip_leniently(text)?;
    let quoted = go::quote(text);
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(strict)) if strict.to_ipv4_mapped().is_none() => {
            (strict.to_string() != text).then(|| {
                format!("{path}: IPv6 address {quoted} should be in RFC 5952 canonical format (\"{strict}\")")
            })
        }
        Ok(IpAddr::V4(_)) => None,
        _ => {
            let better = address.to_canonical();
            Some(format!("{path}: non-standard IP address {quoted} is invalid: use \"{better}\""))
        }
    }
}

/// What to say about a range that passed before the rules were strict.
pub fn cidr_warnings(path: &Path<'_>, text: &str) -> Vec<String> {
    let Some(range) = Range::parse_leniently(text) else { return Vec::new() };
    let network = range.network();
    let quoted = go::quote(text);
    let mut warnings = Vec::new();
    if network != range {
        let (whole, single, width) = (network.unmapped(), range.address.to_canonical(), range.width());
        warnings.push(format!(
            "{path}: CIDR value {quoted} is ambiguous in this context (should be \"{whole}\" or \"{single}/{width}\"?)"
        ));
    }
    let strict = Range::parse(text).filter(|strict| !strict.is_mapped());
    match strict {
        None => {
            let better = network.unmapped();
            warnings.push(format!("{path}: non-standard CIDR value {quoted} is invalid: use \"{better}\""));
        }
        Some(strict) if warnings.is_empty() && strict.address.is_ipv6() && strict.to_string() != text => {
            warnings.push(format!(
                "{path}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format (\"{strict}\")"
            ));
        }
        Some(_) => {}
    }
    warnings
}

fn not_canonical(path: &Path<'_>, text: &str, canonical: &str) -> ErrorList {
    let problem = || format!("must be in canonical form (\"{canonical}\")");
    (text != canonical).then(|| Error::invalid(path, text, problem())).into_iter().collect()
}

fn parse_ip(path: &Path<'_>, text: &str) -> Result<IpAddr, ErrorList> {
    let problem = match (parse_ip_leniently(text), text.parse::<IpAddr>()) {
        (None, _) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        (Some(_), Err(_)) => "must not have leading 0s",
        (Some(_), Ok(address)) if address.to_canonical() != address => {
            "must not be an IPv4-mapped IPv6 address"
        }
        (Some(_), Ok(address)) => return Ok(address),
    };
    Err(Error::invalid(path, text, problem).into())
}

fn parse_cidr(path: &Path<'_>, text: &str) -> Result<Range, ErrorList> {
    let problem = match (Range::parse_leniently(text), Range::parse(text)) {
        (None, _) => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        (Some(_), None) => "must not have leading 0s in IP or prefix length",
        (Some(_), Some(range)) if range.is_mapped() => "must not have an IPv4-mapped IPv6 address",
        (Some(_), Some(range)) if range != range.network() => {
            "must not have bits set beyond the prefix length"
        }
        (Some(_), Some(range)) => return Ok(range),
    };
    Err(Error::invalid(path, text, problem).into())
}

/// As Go did before 1.17: leading zeros do not count.
pub fn parse_ip_leniently(text: &str) -> Option<IpAddr> {
    let groups = text.split_inclusive(['.', ':']);
    groups.map(without_leading_zeros).collect::<String>().parse().ok()
}

fn without_leading_zeros(group: &str) -> &str {
    let significant = group.trim_start_matches('0');
    let keep_a_zero =
        significant.len() < group.len() && !significant.starts_with(|c: char| c.is_ascii_hexdigit());
    if keep_a_zero { &group[group.len() - significant.len() - 1..] } else { significant }
}

impl Range {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let canonical = prefix == "0" || !prefix.starts_with('0');
        Range::new(address.parse().ok()?, prefix).filter(|_| canonical)
    }

    fn parse_leniently(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        Range::new(parse_ip_leniently(address)?, prefix)
    }

    fn new(address: IpAddr, prefix: &str) -> Option<Self> {
        // A sign is not part of a prefix length, though Rust would read one.
        let digits = prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse().ok().filter(|_| digits)?;
        let range = Range { address, prefix };
        (prefix <= range.width()).then_some(range)
    }

    fn width(self) -> u8 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// The range with the bits beyond its prefix cleared.
    fn network(self) -> Self {
        let host_bits = u32::from(self.width() - self.prefix);
        let address = match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        Range { address, ..self }
    }

    fn is_mapped(self) -> bool {
        self.address.to_canonical() != self.address
    }

    /// IPv4 that is dressed as IPv6 prints as what it is.
    fn unmapped(self) -> Self {
        match self.address.to_canonical() {
            address if address != self.address && self.prefix > 32 => {
                Range { address, prefix: self.prefix.saturating_sub(96) }
            }
            address => Range { address, ..self },
        }
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
