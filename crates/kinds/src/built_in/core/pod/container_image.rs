//! Whether an image is pulled each time: yes where its tag is `latest`, said or not.

use crate::defaults::member::{self, Members};

/// What a name may be at most, without tag and digest.
const NAME_LIMIT: usize = 255;
const TAG_LIMIT: usize = 128;

pub(super) fn default_of_container(container: &mut Members) {
    let policy = pull_policy(member::text(container, "image"));
    member::default_to(container, "imagePullPolicy", policy);
}

pub(super) fn default_of_volume(volume: &mut Members) {
    let policy = pull_policy(member::text(volume, "reference"));
    member::default_to(volume, "pullPolicy", policy);
}

fn pull_policy(image: &str) -> &'static str {
    match tag(image) {
        Some("latest") => "Always",
        _ => "IfNotPresent",
    }
}

/// The tag of an image: `latest` where there is neither tag nor digest, nothing where the reference is not one.
fn tag(image: &str) -> Option<&str> {
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if !digest.is_none_or(is_digest) {
        return None;
    }
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    if !is_name(name) || !tag.is_none_or(is_tag) {
        return None;
    }
    tag.or_else(|| digest.is_none().then_some("latest"))
}

fn is_name(name: &str) -> bool {
    // Docker takes this for the id of an image, not for a name.
    let is_id = name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let (domain, path) = match name.split_once('/') {
        Some((first, rest)) if is_domain_like(first) => (Some(first), rest),
        _ => (None, name),
    };
    !is_id
        && name.len() <= NAME_LIMIT
        && domain.is_none_or(is_domain)
        && path.split('/').all(is_path_component)
}

fn is_domain_like(first: &str) -> bool {
    first.contains(['.', ':']) || first == "localhost" || first.bytes().any(|b| b.is_ascii_uppercase())
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let is_host = match host.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => !inner.is_empty() && inner.bytes().all(|b| b.is_ascii_hexdigit() || b == b':'),
        None => host.split('.').all(is_label),
    };
    is_host && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// Lower-case words with `.`, `_`, `__` or dashes between them.
fn is_path_component(component: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = component.as_bytes();
    let ends_well = |end: Option<&u8>| end.is_some_and(|b| is_word(*b));
    ends_well(bytes.first())
        && ends_well(bytes.last())
        && component
            .split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            .all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|b| b == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= TAG_LIMIT
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|b| is_word(b) || matches!(b, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        // Docker refuses digests that it cannot check.
        _ => return false,
    };
    hex.len() == length && hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_latest_unless_something_else_is_said() {
        let digest = format!("sha256:{}", "a1".repeat(32));
        for (image, expected) in [
            ("nginx", Some("latest")),
            ("nginx:1.27", Some("1.27")),
            ("nginx:latest", Some("latest")),
            ("localhost:5000/team/app", Some("latest")),
            ("localhost:5000/team/app:v1", Some("v1")),
            ("Registry.example.com/app", Some("latest")),
            ("registry.k8s.io/a__b/c--d.e_f", Some("latest")),
            ("[::1]:5000/app", Some("latest")),
            (&format!("nginx@{digest}"), None),
            (&format!("nginx:latest@{digest}"), Some("latest")),
            ("nginx@sha256:abc", None),
            ("", None),
            ("Nginx", None),
            ("a b", None),
            ("nginx:", None),
            ("a..b", None),
            (&"ab".repeat(32), None),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }
}
