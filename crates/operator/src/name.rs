//! An owner's name and a part in, the name of the owner's child out: the same one every time.
//!
//! A name is `owner-part` where that can be read back without doubt, and ends in a hash where it was
//! cut or could also have come from another pair (`a` and `b-c` look like `a-b` and `c`).

/// The longest name of objects that are also DNS labels: services, pods' hosts, label values.
pub const LABEL: usize = 63;
/// The longest name of anything.
pub const SUBDOMAIN: usize = 253;

/// 27^11 is more than 2^52: among a million children, a clash has odds below 1 in 8,000.
const HASH_LENGTH: usize = 11;
/// No vowels, so that no word appears, and nothing that looks like something else.
const HASH_LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// A DNS label that belongs to `part` of `owner` alone.
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

/// [`child`] with another limit, such as [`SUBDOMAIN`]. Below 11 there is no room for a hash.
pub fn child_within(owner: &str, part: &str, limit: usize) -> String {
    let plain = format!("{owner}-{part}");
    if plain.len() <= limit && is_label(owner) && is_unmistakable(part) {
        return plain;
    }
    let suffix = hash(owner, part);
    let room = limit.saturating_sub(HASH_LENGTH + 1);
    let stem = stem(owner, part, room);
    if stem.is_empty() { suffix } else { format!("{stem}-{suffix}") }
}

/// Whether the text is made of what a label is made of; its length is the caller's matter.
fn is_label(text: &str) -> bool {
    let within = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let (bytes, dash) = (text.as_bytes(), |b: &u8| *b == b'-');
    bytes.first().is_some_and(within)
        && bytes.last().is_some_and(within)
        && bytes.iter().all(|b| within(b) || dash(b))
}

/// A part after the last dash of a name is read back as it was, unless it could be taken for a hash.
fn is_unmistakable(part: &str) -> bool {
    let is_hash = part.len() == HASH_LENGTH && part.bytes().all(|b| HASH_LETTERS.contains(&b));
    is_label(part) && !part.contains('-') && !is_hash
}

/// As much of both as fits, for people: the part keeps its place, the owner gives way.
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

/// Must never change: the names of children that exist hang on it.
fn hash(owner: &str, part: &str) -> String {
    // FNV-1a, which any later version of this program will still know how to compute.
    let bytes = owner.bytes().chain([0]).chain(part.bytes());
    let sum = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    // Its low bits are weak: mix as murmur does at its end.
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
    fn names_are_plain_where_they_can_be() {
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
    fn hashes_are_for_ever() {
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
