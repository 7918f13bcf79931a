//! Ranges of IP addresses, as in `10.96.0.0/16`.

use std::{net::IpAddr, str::FromStr};

/// A range of addresses of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Prefix {
    is_v4: bool,
    /// The first address: bits after the length are zero.
    first: u128,
    length: u32,
}

impl Prefix {
    pub(crate) fn contains(self, address: IpAddr) -> bool {
        let (is_v4, bits) = bits_of(address);
        is_v4 == self.is_v4 && self.masked(bits) == self.first
    }

    pub(crate) fn contains_prefix(self, other: Prefix) -> bool {
        self.is_v4 == other.is_v4 && self.length <= other.length && self.masked(other.first) == self.first
    }

    pub(crate) fn overlaps(self, other: Prefix) -> bool {
        self.contains_prefix(other) || other.contains_prefix(self)
    }

    fn masked(self, bits: u128) -> u128 {
        let rest = width(self.is_v4) - self.length;
        bits.checked_shr(rest).unwrap_or(0).checked_shl(rest).unwrap_or(0)
    }
}

fn width(is_v4: bool) -> u32 {
    if is_v4 { 32 } else { 128 }
}

fn bits_of(address: IpAddr) -> (bool, u128) {
    match address {
        IpAddr::V4(address) => (true, address.to_bits().into()),
        IpAddr::V6(address) => (false, address.to_bits()),
    }
}

impl FromStr for Prefix {
    type Err = ();

    fn from_str(text: &str) -> Result<Prefix, ()> {
        let (address, length) = text.split_once('/').ok_or(())?;
        let (is_v4, bits) = bits_of(address.parse().map_err(drop)?);
        let length = length.parse().map_err(drop)?;
        if length > width(is_v4) {
            return Err(());
        }
        let prefix = Prefix { is_v4, first: bits, length };
        Ok(Prefix { first: prefix.masked(bits), ..prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_contain_addresses_and_ranges_of_their_family() {
        let prefix = |text: &str| text.parse::<Prefix>().unwrap();
        for (range, address, expected) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.1.2.3/32", "10.1.2.3", true),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("::/0", "1.2.3.4", false),
            ("fd00::/64", "fd00::1", true),
            ("fd00::/64", "fd00:0:0:1::", false),
        ] {
            assert_eq!(prefix(range).contains(address.parse().unwrap()), expected, "{range} {address}");
        }
        for (one, other, contains, overlaps) in [
            ("10.0.0.0/8", "10.1.0.0/16", true, true),
            ("10.1.0.0/16", "10.0.0.0/8", false, true),
            ("10.1.0.0/16", "10.1.0.0/16", true, true),
            ("10.1.0.0/16", "10.2.0.0/16", false, false),
        ] {
            assert_eq!(prefix(one).contains_prefix(prefix(other)), contains, "{one} {other}");
            assert_eq!(prefix(one).overlaps(prefix(other)), overlaps, "{one} {other}");
        }
        assert!(
            ["10.0.0.0", "10.0.0.0/33", "x/8", "fd00::/129"].iter().all(|it| it.parse::<Prefix>().is_err())
        );
    }
}
