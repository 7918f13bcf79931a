//! Key usages by the names of the API, as X.509 writes them.

/// The usages of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usages {
    /// Bits of the `KeyUsage` extension: the first is the highest.
    pub(super) bits: u16,
    /// For the `ExtendedKeyUsage` extension, in the order of [`EXTENDED`].
    pub(super) extended: Vec<&'static [u64]>,
}

// Kubernetes: usages that are bits of `KeyUsage`.
const BITS: [(&str, u32); 10] = [
    ("signing", 0),
    ("digital signature", 0),
    ("content commitment", 1),
    ("key encipherment", 2),
    ("data encipherment", 3),
    ("key agreement", 4),
    ("cert sign", 5),
    ("crl sign", 6),
    ("encipher only", 7),
    ("decipher only", 8),
];
// Kubernetes: usages that are object identifiers, in the order in which they are signed.
const EXTENDED: [(&str, &[u64]); 13] = [
    ("any", &[2, 5, 29, 37, 0]),
    ("server auth", &[1, 3, 6, 1, 5, 5, 7, 3, 1]),
    ("client auth", &[1, 3, 6, 1, 5, 5, 7, 3, 2]),
    ("code signing", &[1, 3, 6, 1, 5, 5, 7, 3, 3]),
    ("email protection", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("s/mime", &[1, 3, 6, 1, 5, 5, 7, 3, 4]),
    ("ipsec end system", &[1, 3, 6, 1, 5, 5, 7, 3, 5]),
    ("ipsec tunnel", &[1, 3, 6, 1, 5, 5, 7, 3, 6]),
    ("ipsec user", &[1, 3, 6, 1, 5, 5, 7, 3, 7]),
    ("timestamping", &[1, 3, 6, 1, 5, 5, 7, 3, 8]),
    ("ocsp signing", &[1, 3, 6, 1, 5, 5, 7, 3, 9]),
    ("microsoft sgc", &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
    ("netscape sgc", &[2, 16, 840, 1, 113_730, 4, 1]),
];

/// The server has refused names that are not known.
pub(super) fn parse(names: &[String]) -> Usages {
    let has = |name: &str| names.iter().any(|it| it == name);
    let mut extended: Vec<_> = EXTENDED.iter().filter(|(name, _)| has(name)).map(|(_, oid)| *oid).collect();
    extended.dedup();
    let bits = BITS.iter().filter(|(name, _)| has(name));
    Usages { bits: bits.fold(0, |bits, (_, bit)| bits | (1 << (u16::BITS - 1 - bit))), extended }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usages_are_bits_and_identifiers_each_once() {
        let parsed = |names: &[&str]| parse(&names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(parsed(&[]), Usages::default());
        let usages = parsed(&[
            "s/mime",
            "client auth",
            "email protection",
            "signing",
            "digital signature",
            "decipher only",
        ]);
        assert_eq!(usages.bits, 0b1000_0000_1000_0000);
        assert_eq!(usages.extended, [EXTENDED[2].1, EXTENDED[4].1]);
    }
}
