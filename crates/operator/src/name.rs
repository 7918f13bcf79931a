//! Names for the children of an owner, always the same for the same owner and part.
//!
//! A name is `owner-part` if that is unambiguous, and ends in a hash if it was cut or another pair could have
//! the same name (`a` and `b-c`, `a-b` and `c`).

/// The longest DNS label: for services, host names of pods, and label values.
pub const LABEL: usize = 63;
/// The longest name of any object.
pub const SUBDOMAIN: usize = 253;

/// 27^11 is more than 2^52: among a million children, two share a hash with a probability below 1 in 8,000.
const HASH_LENGTH: usize = 11;
/// No vowels, so that there are no words, and no characters that look alike.
const HASH_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A DNS label that is unique to `owner` and `part`.
///
/// ```
/// use operator::name::child;
///
/// assert_eq!(child("web", "config"), "web-config");
/// assert_eq!(child("shop.example.com", "tls"), "shop-example-com-tls-vfwlfw72jl2");
/// assert_eq!(child("web", "config"), child("web", "config"));
/// assert_ne!(child("a-b", "c"), child("a", "b-c"));
/// ```
pub fn child(owner: &str, part: &str) -> String {
    child_within(owner, part, LABEL)
}

/// [`child`] with another limit, such as [`SUBDOMAIN`]. The limit must be at least 11, for the hash.
pub fn child_within(owner: &str, part: &str, limit: usize) -> String {
    let plain = format!("{owner}-{part}");
    if plain.len() <= limit && is_label(owner) && is_unambiguous(part) {
        return plain;
    }
    let suffix = hash(owner, part);
    let room = limit.saturating_sub(HASH_LENGTH + 1);
    let stem = stem(owner, part, room);
    if stem.is_empty() { suffix } else { format!("{stem}-{suffix}") }
}

/// Whether the text is a DNS label, apart from its length.
fn is_label(text: &str) -> bool {
    let within = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let (bytes, dash) = (text.as_bytes(), |b: &u8| *b == b'-');
    bytes.first().is_some_and(within)
        && bytes.last().is_some_and(within)
        && bytes.iter().all(|b| within(b) || dash(b))
}

/// Whether a part without dashes could not be taken for a hash.
fn is_unambiguous(part: &str) -> bool {
    let is_hash = part.len() == HASH_LENGTH && part.bytes().all(|b| HASH_LETTERS.contains(&b));
    is_label(part) && !part.contains('-') && !is_hash
}

/// As much of both as fits, for people: the owner is cut before the part.
fn stem(owner: &str, part: &str, room: usize) -> String {
    let mut part = spell(part);
    part.truncate(room / 2);
    let mut owner = spell(owner);
    owner.truncate(room.saturating_sub(part.len() + 1));
    [owner.trim_matches('-'), part.trim_matches('-')]
        .into_iter()
        .filter(|half| !half.is_empty())
        .collect::<Vec<_>>()
        .join("-")
}

fn spell(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}

/// Must never change: the names of existing children depend on it.
fn hash(owner: &str, part: &str) -> String {
    // FNV-1a, which is simple and stable.
    let bytes = owner.bytes().chain([0]).chain(part.bytes());
    let sum = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // Its low bits are weak: finish as murmur does.
    let sum = (sum ^ (sum >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let mut sum = (sum ^ (sum >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    sum ^= sum >> 33;
    let mut text = String::with_capacity(HASH_LENGTH);
    for _ in 0..HASH_LENGTH {
        let letters = HASH_LETTERS.len() as u64;
        text.push(char::from(HASH_LETTERS[(sum % letters) as usize]));
        sum /= letters;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::name::NameRule;
    use proptest::prelude::*;

    #[test]
    fn names_have_a_hash_only_where_needed() {
        let long = "a".repeat(70);
        let cases = [
            ("web", "config", "web-config"),
            ("web-1", "config", "web-1-config"),
            ("web", "tls-key", "web-tls-key-"),
            ("Web", "config", "web-config-"),
            ("a.b", "c", "a-b-c-"),
            ("web", "bcdfghjklmn", "web-bcdfghjklmn-"),
            (&long, "config", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-config-"),
            ("web", &long, "web-aaaaaaaaaaaaaaaaaaaaaaaaa-"),
            ("-", "", ""),
        ];
        for (owner, part, expected) in cases {
            let name = child(owner, part);
            match expected.ends_with('-') || expected.is_empty() {
                true => assert_eq!(name.len(), expected.len() + HASH_LENGTH, "{name}"),
                false => assert_eq!(name.len(), expected.len(), "{name}"),
            }
            assert!(name.starts_with(expected), "{name} does not start with {expected}");
        }
    }

    #[test]
    fn hashes_never_change() {
        assert_eq!(child("a", "b-c"), "a-b-c-bvxptcpr5pg");
        assert_eq!(child("shop.example.com", "tls"), "shop-example-com-tls-vfwlfw72jl2");
    }

    proptest! {
        #[test]
        fn names_are_labels(owner in "\\PC{0,80}", part in "\\PC{0,80}", limit in 12_usize..=LABEL) {
            let name = child_within(&owner, &part, limit);
            prop_assert!(name.len() <= limit);
            prop_assert_eq!(NameRule::DnsLabel.problems(&name), Vec::<String>::new());
        }

        #[test]
        fn pairs_do_not_share_a_name(one in ("[ab.-]{1,6}", "[ab-]{1,6}"), other in ("[ab.-]{1,6}", "[ab-]{1,6}")) {
            let [name, another] = [&one, &other].map(|(owner, part)| child(owner, part));
            prop_assert_eq!(one == other, name == another);
        }
    }
}
