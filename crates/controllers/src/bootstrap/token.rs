//! Reads a bootstrap token from its secret.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;

/// Kubernetes: the name of a token's secret is this and its ID.
const NAME_PREFIX: &str = "bootstrap-token-";
const ID_LENGTH: usize = 6;

/// When a token ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    Never,
    At(Timestamp),
    /// Kubernetes: a time that cannot be read is one that has passed.
    Unreadable,
}

impl Expiry {
    pub(super) fn of(secret: &Secret) -> Expiry {
        match data(secret, "expiration") {
            "" => Expiry::Never,
            text => text.parse().map_or(Expiry::Unreadable, Expiry::At),
        }
    }

    pub(super) fn is_past(self, now: Timestamp) -> bool {
        match self {
            Expiry::Never => false,
            Expiry::At(end) => end <= now,
            Expiry::Unreadable => true,
        }
    }
}

/// The ID and the secret of a token that may sign now.
pub(super) fn for_signing(secret: &Secret, now: Timestamp) -> Option<(&str, &str)> {
    let name = secret.metadata.name.as_deref().unwrap_or_default();
    let id = name.strip_prefix(NAME_PREFIX).filter(|id| is_id(id))?;
    let (named, key) = (data(secret, "token-id"), data(secret, "token-secret"));
    let may_sign = data(secret, "usage-bootstrap-signing") == "true";
    (may_sign && named == id && !key.is_empty() && !Expiry::of(secret).is_past(now)).then_some((id, key))
}

fn is_id(text: &str) -> bool {
    text.len() == ID_LENGTH && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// The text of a key; empty if there is none.
fn data<'a>(secret: &'a Secret, key: &str) -> &'a str {
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    bytes.and_then(|bytes| std::str::from_utf8(&bytes.0).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::ByteString;
    use serde_json::{Map, json};

    #[test]
    fn only_valid_tokens_for_signing_sign() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let whole = [("token-id", "abcdef"), ("token-secret", "x"), ("usage-bootstrap-signing", "true")];
        for (name, change, expected) in [
            ("bootstrap-token-abcdef", ("", ""), true),
            ("bootstrap-token-abcdeX", ("", ""), false),
            ("bootstrap-token-abcdef", ("token-id", "abcdeg"), false),
            ("bootstrap-token-abcdef", ("token-secret", ""), false),
            ("bootstrap-token-abcdef", ("usage-bootstrap-signing", "yes"), false),
            ("bootstrap-token-abcdef", ("expiration", "2026-01-01T00:00:01Z"), true),
            ("bootstrap-token-abcdef", ("expiration", "2026-01-01T01:00:00+02:00"), false),
            ("bootstrap-token-abcdef", ("expiration", "2026-01-01T00:00:00Z"), false),
            ("bootstrap-token-abcdef", ("expiration", "soon"), false),
        ] {
            let entries = whole.into_iter().chain([change]);
            let data: Map<_, _> = entries
                .map(|(key, value)| (key.to_owned(), json!(ByteString(value.as_bytes().to_vec()))))
                .collect();
            let secret = json!({"metadata": {"name": name}, "data": data});
            let secret: Secret = serde_json::from_value(secret).unwrap();
            let expected = expected.then_some(("abcdef", "x"));
            assert_eq!(for_signing(&secret, now), expected, "{name} {change:?}");
        }
    }
}
