//! Bootstrap tokens: with `ID.SECRET` from a Secret of kube-system a new node asks for its certificate.

use super::{Authenticated, Caller, account_token::read, jwt::BadToken};
use api::{
    object,
    time::{Instant, Precision},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::collections::BTreeSet;
use store::ReadStore;
use subtle::ConstantTimeEq;
use world::Timestamp;

// Kubernetes: the form of a token, and of its Secret.
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
const KEY_PREFIX: &str = "/registry/secrets/kube-system/bootstrap-token-";
const SECRET_TYPE: &str = "bootstrap.kubernetes.io/token";

// Kubernetes: the user of a token, its group, and how further groups begin.
const USER_PREFIX: &str = "system:bootstrap:";
const GROUP: &str = "system:bootstrappers";
const GROUP_PREFIX: &str = "system:bootstrappers:";
/// Kubernetes: the most letters after the prefix.
const MAX_GROUP_SUFFIX: usize = 256;

/// The user of a token. It is for this server's audiences only.
pub(super) async fn authenticate(
    store: &dyn ReadStore,
    token: &str,
    own: &[String],
    audiences: &[String],
    now: Timestamp,
) -> Result<Authenticated, BadToken> {
    let (id, key) = parts(token).ok_or(BadToken::NotOurs)?;
    let common: Vec<String> = own.iter().filter(|it| audiences.contains(it)).cloned().collect();
    let secret = read(store, format!("{KEY_PREFIX}{id}")).await?.ok_or(BadToken::NotOurs)?;
    match groups(&secret, id, key, now) {
        Ok(groups) if !common.is_empty() => {
            let caller = Caller::known(format!("{USER_PREFIX}{id}"), "", groups);
            Ok(Authenticated { caller, audiences: common })
        }
        Ok(_) => Err(BadToken::NotOurs),
        // The log learns why; who guesses tokens does not.
        Err(problem) => {
            tracing::debug!(id, problem, "bootstrap token rejected");
            Err(BadToken::NotOurs)
        }
    }
}

/// The ID and the secret of a token.
fn parts(token: &str) -> Option<(&str, &str)> {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let (id, key) = token.split_once('.')?;
    let is_token = id.len() == ID_LENGTH && key.len() == SECRET_LENGTH && is_plain(id) && is_plain(key);
    is_token.then_some((id, key))
}

/// The groups that the Secret of this ID gives to who knows its key, or why it gives none.
fn groups(secret: &Value, id: &str, key: &str, now: Timestamp) -> Result<Vec<String>, &'static str> {
    if object::is_deleting(secret) {
        return Err("its secret is being deleted");
    }
    if secret["type"] != SECRET_TYPE {
        return Err("its secret has another type");
    }
    if !bool::from(data(secret, "token-secret").ct_eq(key.as_bytes())) {
        return Err("the key is wrong");
    }
    if data(secret, "token-id") != id.as_bytes() {
        return Err("token-id is that of another token");
    }
    if has_expired(&data(secret, "expiration"), now) {
        return Err("it has expired");
    }
    if data(secret, "usage-bootstrap-authentication") != b"true" {
        return Err("it is not for authentication");
    }
    extra_groups(&data(secret, "auth-extra-groups"))
        .ok_or("auth-extra-groups names a group that is not allowed")
}

/// The bytes of a key; none if it is missing.
fn data(secret: &Value, key: &str) -> Vec<u8> {
    STANDARD.decode(secret["data"][key].as_str().unwrap_or_default()).unwrap_or_default()
}

/// Kubernetes: a time that cannot be read is one that has passed; without one, a token lives on.
fn has_expired(expiration: &[u8], now: Timestamp) -> bool {
    if expiration.is_empty() {
        return false;
    }
    let end = std::str::from_utf8(expiration).ok();
    let end = end.and_then(|text| Instant::parse(text, Precision::Seconds).ok());
    let now = (now.as_second(), u32::try_from(now.subsec_nanosecond()).unwrap_or_default());
    end.is_none_or(|end| (end.seconds, end.nanos) <= now)
}

/// The group of all bootstrap tokens and those of this one, sorted; none if one is not allowed.
fn extra_groups(listed: &[u8]) -> Option<Vec<String>> {
    let mut groups = BTreeSet::from([GROUP]);
    if !listed.is_empty() {
        for group in std::str::from_utf8(listed).ok()?.split(',') {
            groups.insert(Some(group).filter(|group| is_allowed(group))?);
        }
    }
    Some(groups.into_iter().map(str::to_owned).collect())
}

/// Whether a token may put its user into this group: none outside of the bootstrappers'.
fn is_allowed(group: &str) -> bool {
    let Some(suffix) = group.strip_prefix(GROUP_PREFIX) else { return false };
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = suffix.as_bytes();
    (1..=MAX_GROUP_SUFFIX).contains(&bytes.len())
        && bytes.iter().all(|&byte| is_plain(byte) || matches!(byte, b':' | b'-'))
        && bytes.last().is_some_and(|&last| is_plain(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_token_is_six_and_sixteen_small_letters_and_digits() {
        assert_eq!(parts("abcdef.0123456789abcdef"), Some(("abcdef", "0123456789abcdef")));
        for odd in [
            "",
            ".",
            "abcdef.",
            ".0123456789abcdef",
            "abcdef0123456789abcdef",
            "abcde.0123456789abcdef",
            "abcdefg.0123456789abcdef",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdef0",
            "Abcdef.0123456789abcdef",
            "abcdef.0123456789abcdeF",
            "abcdef.01234567.9abcdef",
            "../..x.0123456789abcdef",
            "abcdef.0123456789abcdef\n",
            " abcdef.0123456789abcdef",
            "äbcde.0123456789abcdef",
            "ab-def.0123456789abcdef",
        ] {
            assert_eq!(parts(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn groups_are_those_of_bootstrappers_only() {
        let all = |listed: &str| extra_groups(listed.as_bytes());
        let of = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let longest = format!("system:bootstrappers:{}", "a".repeat(256));
        assert_eq!(all(""), of(&["system:bootstrappers"]));
        assert_eq!(
            all("system:bootstrappers:b,system:bootstrappers:a:-1,system:bootstrappers:b"),
            of(&["system:bootstrappers", "system:bootstrappers:a:-1", "system:bootstrappers:b"])
        );
        assert_eq!(all(&longest), of(&["system:bootstrappers", &longest]));
        for odd in [
            "system:masters",
            "system:bootstrappers",
            "system:bootstrappers:",
            "system:bootstrappers:a-",
            "system:bootstrappers:a:",
            "system:bootstrappers:A",
            "system:bootstrappers:a,",
            ",system:bootstrappers:a",
            "system:bootstrappers:a, system:bootstrappers:b",
            "system:bootstrappers:a,system:masters",
            "system:bootstrappers:a\n",
            "xsystem:bootstrappers:a",
            "system:bootstrappers:a\0b",
            &format!("{longest}a"),
        ] {
            assert_eq!(all(odd), None, "{odd:?}");
        }
        assert_eq!(extra_groups(b"system:bootstrappers:\xff"), None);
    }

    #[test]
    fn a_token_ends_at_its_expiration() {
        let now: Timestamp = "2026-01-01T00:00:00.5Z".parse().unwrap();
        for (text, expected) in [
            ("", false),
            ("2026-01-01T00:00:01Z", false),
            ("2026-01-01T00:00:00.500000001Z", false),
            ("2026-01-01T00:00:00.5Z", true),
            ("2026-01-01T01:00:00+02:00", true),
            ("9999-12-31T23:59:59Z", false),
            ("2027-01-01 00:00:00Z", true),
            ("2027-01-01T00:00Z", true),
            ("2027-01-01", true),
            ("1798761600", true),
            ("never", true),
            (" ", true),
        ] {
            assert_eq!(has_expired(text.as_bytes(), now), expected, "{text:?}");
        }
        assert!(has_expired(b"\xff", now));
    }

    #[test]
    fn a_secret_without_a_key_is_no_token() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let secret = json!({"type": SECRET_TYPE, "data": {}});
        assert_eq!(groups(&secret, "abcdef", "", now), Err("token-id is that of another token"));
        assert_eq!(groups(&secret, "abcdef", "0123456789abcdef", now), Err("the key is wrong"));
        assert_eq!(groups(&json!({}), "abcdef", "", now), Err("its secret has another type"));
    }
}
