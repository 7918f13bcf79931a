//! IP addresses and prefixes, parsed as Go's `net/netip` does, with its error texts.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use api::go::quote;

/// An address and the length of its network part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub address: IpAddr,
    pub bits: u8,
}

/// An address, and whether it had a zone.
#[derive(Debug)]
pub(super) struct Zoned {
    pub address: IpAddr,
    pub zone: bool,
}

impl Prefix {
    /// The same network with the bits after its prefix cleared.
    pub(super) fn masked(self) -> Prefix {
        let (width, bits) = (width(self.address), u32::from(self.bits));
        let mask = if bits == 0 { 0 } else { u128::MAX << (u32::from(width) - bits) };
        let address = match self.address {
            IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & mask as u32).into(),
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & mask).into(),
        };
        Prefix { address, bits: self.bits }
    }

    pub(super) fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && {
            let other = Prefix { address, bits: self.bits };
            self.masked().address == other.masked().address
        }
    }

    pub(super) fn contains_prefix(self, other: Prefix) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// How many bits an address has.
pub(super) fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

pub(super) fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some())
}

pub(super) fn parse_prefix(text: &str) -> Result<Prefix, String> {
    let refuse = |problem: &str| Err(format!("netip.ParsePrefix({}): {problem}", quote(text)));
    let Some((address, bits)) = text.rsplit_once('/') else { return refuse("no '/'") };
    let address = match parse(address) {
        Ok(Zoned { zone: true, .. }) => return refuse("IPv6 zones cannot be present in a prefix"),
        Ok(Zoned { address, .. }) => address,
        Err(problem) => return refuse(&problem),
    };
    let padded = bits.len() > 1 && !matches!(bits.as_bytes()[0], b'1'..=b'9');
    let number: Option<i64> = bits.parse().ok().filter(|_| !padded);
    let Some(number) = number else {
        return refuse(&format!("bad bits after slash: {}", quote(bits)));
    };
    match u8::try_from(number) {
        Ok(bits) if bits <= width(address) => Ok(Prefix { address, bits }),
        _ => refuse("prefix length out of range"),
    }
}

/// Go: the first dot or colon decides the type of the address.
pub(super) fn parse(text: &str) -> Result<Zoned, String> {
    match text.bytes().find(|b| matches!(b, b'.' | b':' | b'%')) {
        Some(b'.') => Ok(Zoned { address: Ipv4Addr::from(octets(text, text)?).into(), zone: false }),
        Some(b':') => parse_v6(text),
        Some(_) => Err(refuse(text, "missing IPv6 address")),
        None => Err(refuse(text, "unable to parse IP")),
    }
}

fn refuse(whole: &str, problem: &str) -> String {
    format!("ParseAddr({}): {problem}", quote(whole))
}

fn refuse_at(whole: &str, problem: &str, rest: &str) -> String {
    if rest.is_empty() {
        return refuse(whole, problem);
    }
    format!("ParseAddr({}): {problem} (at {})", quote(whole), quote(rest))
}

/// The four numbers of an IPv4 address, which may be the end of an IPv6 address.
fn octets(whole: &str, text: &str) -> Result<[u8; 4], String> {
    let mut octets = [0; 4];
    let (mut field, mut value, mut digits) = (0, 0u32, 0);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(refuse(whole, "IPv4 field has octet with leading zero"));
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(refuse(whole, "IPv4 field has value >255"));
                }
            }
            b'.' => {
                if digits == 0 || at == bytes.len() - 1 {
                    return Err(refuse_at(whole, "IPv4 field must have at least one digit", &text[at..]));
                }
                if field == 3 {
                    return Err(refuse(whole, "IPv4 address too long"));
                }
                octets[field] = value as u8;
                (field, value, digits) = (field + 1, 0, 0);
            }
            _ => return Err(refuse_at(whole, "unexpected character", &text[at..])),
        }
    }
    if field < 3 {
        return Err(refuse(whole, "IPv4 address too short"));
    }
    octets[3] = value as u8;
    Ok(octets)
}

fn parse_v6(whole: &str) -> Result<Zoned, String> {
    let (text, zone) = match whole.split_once('%') {
        Some((_, "")) => return Err(refuse(whole, "zone must be a non-empty string")),
        Some((text, _)) => (text, true),
        None => (whole, false),
    };
    let address = Ipv6Addr::from(Hextets::default().read(whole, text)?).into();
    Ok(Zoned { address, zone })
}

/// A partly parsed IPv6 address.
#[derive(Default)]
struct Hextets {
    bytes: [u8; 16],
    filled: usize,
    /// The position of `::`.
    gap: Option<usize>,
}

impl Hextets {
    fn read(mut self, whole: &str, text: &str) -> Result<[u8; 16], String> {
        let mut rest = text;
        if let Some(after) = text.strip_prefix("::") {
            self.gap = Some(0);
            rest = after;
            if rest.is_empty() {
                return Ok(self.bytes);
            }
        }
        while self.filled < 16 {
            let digits = group(whole, rest)?;
            if rest[digits..].starts_with('.') {
                self.embed(whole, rest)?;
                rest = "";
                break;
            }
            let value = u16::from_str_radix(&rest[..digits], 16).expect("up to four hexadecimal digits");
            self.bytes[self.filled..][..2].copy_from_slice(&value.to_be_bytes());
            self.filled += 2;
            rest = &rest[digits..];
            if rest.is_empty() {
                break;
            }
            rest = self.separator(whole, rest)?;
            if rest.is_empty() {
                break;
            }
        }
        if !rest.is_empty() {
            return Err(refuse_at(whole, "trailing garbage after address", rest));
        }
        self.close(whole)
    }

    /// `:` or `::`
    fn separator<'t>(&mut self, whole: &str, rest: &'t str) -> Result<&'t str, String> {
        let Some(after) = rest.strip_prefix(':') else {
            return Err(refuse_at(whole, "unexpected character, want colon", rest));
        };
        if after.is_empty() {
            return Err(refuse_at(whole, "colon must be followed by more characters", rest));
        }
        let Some(behind) = after.strip_prefix(':') else { return Ok(after) };
        if self.gap.is_some() {
            return Err(refuse_at(whole, "multiple :: in address", after));
        }
        self.gap = Some(self.filled);
        Ok(behind)
    }

    /// The last two groups, written as an IPv4 address.
    fn embed(&mut self, whole: &str, rest: &str) -> Result<(), String> {
        if self.gap.is_none() && self.filled != 12 {
            let problem = "embedded IPv4 address must replace the final 2 fields of the address";
            return Err(refuse_at(whole, problem, rest));
        }
        if self.filled > 12 {
            let problem = "too many hex fields to fit an embedded IPv4 at the end of the address";
            return Err(refuse_at(whole, problem, rest));
        }
        self.bytes[self.filled..][..4].copy_from_slice(&octets(whole, rest)?);
        self.filled += 4;
        Ok(())
    }

    /// Fills the gap with zeros.
    fn close(mut self, whole: &str) -> Result<[u8; 16], String> {
        match self.gap {
            None if self.filled < 16 => Err(refuse(whole, "address string too short")),
            Some(_) if self.filled == 16 => {
                Err(refuse(whole, "the :: must expand to at least one field of zeros"))
            }
            None => Ok(self.bytes),
            Some(gap) => {
                let behind = self.filled - gap;
                self.bytes.copy_within(gap..self.filled, 16 - behind);
                self.bytes[gap..16 - behind].fill(0);
                Ok(self.bytes)
            }
        }
    }
}

/// How many hexadecimal digits begin the text: one to four.
fn group(whole: &str, rest: &str) -> Result<usize, String> {
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    match digits {
        0 => {
            let problem = "each colon-separated field must have at least one digit";
            Err(refuse_at(whole, problem, rest))
        }
        1..=4 => Ok(digits),
        _ => Err(refuse_at(whole, "each group must have 4 or less digits", rest)),
    }
}
