//! Signs and verifies JSON Web Tokens. Claims are used only after the signature is verified.

use super::keys::{SigningKey, VerifyingKey};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Far more than the longest token that is issued: longer ones are rejected unread.
pub(super) const MAX_TOKEN_BYTES: usize = 16 * 1024;
/// Tolerated difference between clocks.
// Kubernetes: the value of its library.
pub(crate) const LEEWAY_SECONDS: i64 = 60;

/// The claims of a token. A duplicate claim makes it invalid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    #[serde(default, deserialize_with = "audiences")]
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    #[serde(default)]
    pub(crate) iat: i64,
    pub(crate) iss: String,
    #[serde(default)]
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: Kubernetes,
    #[serde(default)]
    pub(crate) nbf: i64,
    pub(crate) sub: String,
}

/// The account of the token, and the objects that it is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kubernetes {
    pub(crate) namespace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<BoundObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<BoundObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<BoundObject>,
    pub(crate) serviceaccount: BoundObject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BoundObject {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: String,
    /// Extensions that a verifier must understand: none are supported.
    #[serde(default, skip_serializing)]
    crit: Option<serde_json::Value>,
}

/// Why a token is rejected. After `NotOurs` other authenticators are tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadToken {
    #[error("invalid bearer token")]
    NotOurs,
    #[error("invalid signature, no keys found")]
    UnknownKey,
    // Kubernetes: the text of its library.
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    BadSignature,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error("service account token is issued in the future")]
    FromTheFuture,
    /// About an object that the token is bound to.
    #[error("{0}")]
    Invalidated(String),
}

/// One audience or several.
fn audiences<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(audience) => vec![audience],
        OneOrMany::Many(audiences) => audiences,
    })
}

pub(crate) fn sign(key: &SigningKey, claims: &impl Serialize) -> Option<String> {
    let header = Header { alg: key.algorithm().to_owned(), kid: key.id().to_owned(), crit: None };
    let encode = |json: Vec<u8>| URL_SAFE_NO_PAD.encode(json);
    let header = encode(serde_json::to_vec(&header).ok()?);
    let claims = encode(serde_json::to_vec(claims).ok()?);
    let signed = format!("{header}.{claims}");
    let signature = key.sign(signed.as_bytes())?;
    Some(format!("{signed}.{}", encode(signature)))
}

/// Claims with an issuer.
pub(super) trait Issued: DeserializeOwned {
    fn issuer(&self) -> &str;
}

impl Issued for Claims {
    fn issuer(&self) -> &str {
        &self.iss
    }
}

/// The claims of a token that one of these keys has signed. Times are checked separately.
pub(super) fn verify<C: Issued>(
    keys: &[VerifyingKey],
    issuers: &[impl AsRef<str>],
    token: &str,
) -> Result<C, BadToken> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(BadToken::NotOurs);
    }
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, signature] = parts[..] else { return Err(BadToken::NotOurs) };
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| BadToken::NotOurs);
    let decoded = decode(payload)?;
    let claims: C = serde_json::from_slice(&decoded).map_err(|_| BadToken::NotOurs)?;
    let token_header: Header = serde_json::from_slice(&decode(header)?).map_err(|_| BadToken::NotOurs)?;
    let is_accepted = issuers.iter().any(|issuer| issuer.as_ref() == claims.issuer());
    if !is_accepted || token_header.crit.is_some() {
        return Err(BadToken::NotOurs);
    }
    let mut named =
        keys.iter().filter(|key| token_header.kid.is_empty() || key.id() == token_header.kid).peekable();
    if named.peek().is_none() {
        return Err(BadToken::UnknownKey);
    }
    // The algorithm comes from the key, not from the token: otherwise `none`, or HS256 with the public key,
    // would pass.
    let signed = token.rsplit_once('.').map_or("", |(signed, _)| signed);
    let signature = decode(signature)?;
    let has_signed = |key: &VerifyingKey| {
        token_header.alg == key.algorithm() && key.has_signed(signed.as_bytes(), &signature)
    };
    if named.any(has_signed) { Ok(claims) } else { Err(BadToken::BadSignature) }
}

impl Claims {
    /// Checks expiry and not-before at this second.
    pub(crate) fn check_times(&self, now: i64) -> Result<(), BadToken> {
        match self {
            _ if now.saturating_sub(LEEWAY_SECONDS) > self.exp => Err(BadToken::Expired),
            _ if now.saturating_add(LEEWAY_SECONDS) < self.nbf => Err(BadToken::NotYet),
            _ if now.saturating_add(LEEWAY_SECONDS) < self.iat => Err(BadToken::FromTheFuture),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ISSUER: &str = "https://kubernetes.default.svc";

    fn claims() -> Value {
        json!({
            "aud": [ISSUER], "exp": 2000, "iat": 1000, "nbf": 1000, "iss": ISSUER, "jti": "j",
            "sub": "system:serviceaccount:ns:sa",
            "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "sa", "uid": "u"}},
        })
    }

    /// A token with exactly these parts.
    fn forge(key: &SigningKey, header: &str, payload: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(payload));
        let signature = key.sign(signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn verify_at(key: &SigningKey, token: &str, now: i64) -> Result<Claims, BadToken> {
        let keys = [key.verifying_key().clone()];
        let claims: Claims = verify(&keys, &[ISSUER], token)?;
        claims.check_times(now).map(|()| claims)
    }

    #[test]
    fn a_signed_token_verifies() {
        let (key, _) = SigningKey::make().unwrap();
        let claims: Claims = serde_json::from_value(claims()).unwrap();
        let token = sign(&key, &claims).unwrap();
        assert_eq!(verify_at(&key, &token, 1500), Ok(claims));
    }

    #[test]
    fn any_of_several_keys_and_issuers_is_accepted() {
        let [old, new, other] = [(); 3].map(|()| SigningKey::make().unwrap().0);
        let keys = [&new, &old].map(|key| key.verifying_key().clone());
        let named: Claims = serde_json::from_value(claims()).unwrap();
        let anonymous = |key: &SigningKey| forge(key, r#"{"alg":"ES256"}"#, &claims().to_string());
        for key in [&old, &new] {
            for token in [sign(key, &named).unwrap(), anonymous(key)] {
                assert_eq!(verify::<Claims>(&keys, &["https://another", ISSUER], &token), Ok(named.clone()));
                assert_eq!(verify::<Claims>(&keys, &["https://another"], &token), Err(BadToken::NotOurs));
            }
        }
        let unknown = verify::<Claims>(&keys, &[ISSUER], &sign(&other, &named).unwrap());
        assert_eq!(unknown, Err(BadToken::UnknownKey));
        assert_eq!(verify::<Claims>(&keys, &[ISSUER], &anonymous(&other)), Err(BadToken::BadSignature));
    }

    #[test]
    fn forged_tokens_are_rejected() {
        let (key, _) = SigningKey::make().unwrap();
        let (other, _) = SigningKey::make().unwrap();
        let with = |member: &str, value: Value| {
            let mut claims = claims();
            claims[member] = value;
            claims.to_string()
        };
        let good = claims().to_string();
        let kid = format!(r#"{{"alg":"ES256","kid":"{}"}}"#, key.id());
        let hmac = aws_lc_rs::hmac::Key::new(
            aws_lc_rs::hmac::HMAC_SHA256,
            key.verifying_key().jwk().to_string().as_bytes(),
        );
        let signed =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256"}"#), URL_SAFE_NO_PAD.encode(&good));
        let hs256 =
            format!("{signed}.{}", URL_SAFE_NO_PAD.encode(aws_lc_rs::hmac::sign(&hmac, signed.as_bytes())));
        let twice = good.replacen("\"exp\":2000", "\"exp\":2000,\"exp\":9999999999", 1);
        let nested =
            good.replacen("\"namespace\":\"ns\"", "\"namespace\":\"ns\",\"namespace\":\"kube-system\"", 1);
        let unsigned = forge(&key, r#"{"alg":"none"}"#, &good);
        let unsigned = format!("{}.", unsigned.rsplit_once('.').unwrap().0);
        let whole = forge(&key, &kid, &good);
        for (trick, token, expected) in [
            ("none", unsigned, BadToken::BadSignature),
            ("none with a signature", forge(&key, r#"{"alg":"none"}"#, &good), BadToken::BadSignature),
            ("the public key as a password", hs256, BadToken::BadSignature),
            ("another algorithm", forge(&key, r#"{"alg":"RS256"}"#, &good), BadToken::BadSignature),
            ("another key", forge(&other, r#"{"alg":"ES256"}"#, &good), BadToken::BadSignature),
            ("another key under our name", forge(&other, &kid, &good), BadToken::BadSignature),
            ("an unknown name", forge(&key, r#"{"alg":"ES256","kid":"x"}"#, &good), BadToken::UnknownKey),
            (
                "a critical extension",
                forge(&key, r#"{"alg":"ES256","crit":["b64"]}"#, &good),
                BadToken::NotOurs,
            ),
            ("two algorithms", forge(&key, r#"{"alg":"none","alg":"ES256"}"#, &good), BadToken::NotOurs),
            ("two expiries", forge(&key, &kid, &twice), BadToken::NotOurs),
            ("two namespaces", forge(&key, &kid, &nested), BadToken::NotOurs),
            ("another issuer", forge(&key, &kid, &with("iss", "https://evil".into())), BadToken::NotOurs),
            ("no expiry", forge(&key, &kid, &with("exp", Value::Null)), BadToken::NotOurs),
            ("expired", forge(&key, &kid, &with("exp", 1400.into())), BadToken::Expired),
            ("not yet", forge(&key, &kid, &with("nbf", 1600.into())), BadToken::NotYet),
            ("from the future", forge(&key, &kid, &with("iat", 1600.into())), BadToken::FromTheFuture),
            ("a fourth part", format!("{whole}.x"), BadToken::NotOurs),
            ("padding", format!("{whole}=="), BadToken::NotOurs),
            ("nothing", String::new(), BadToken::NotOurs),
            ("dots", "..".to_owned(), BadToken::NotOurs),
        ] {
            assert_eq!(verify_at(&key, &token, 1500), Err(expected), "{trick}");
        }
        assert!(
            verify_at(&key, &forge(&key, &kid, &with("exp", 1450.into())), 1500).is_ok(),
            "clocks differ"
        );
    }
}
