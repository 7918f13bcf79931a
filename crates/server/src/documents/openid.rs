//! The two OpenID discovery documents, with which others verify this server's tokens.

use crate::{
    answer::{self, Body},
    authenticate::{Accounts, VerifyingKey},
    negotiate::check_produced,
    refusal::Refusal,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::json;

const KEYS: &str = "/openid/v1/jwks";

/// The document at a path, for clients that reach this server as `host`.
pub(super) fn document(
    accounts: &Accounts,
    path: &[&str],
    host: &str,
    headers: &HeaderMap,
) -> Result<Option<Response<Body>>, Refusal> {
    let (content_type, document) = match path {
        [".well-known", "openid-configuration"] => {
            let (issuer, algorithm) = (json!(accounts.issuer), accounts.key.algorithm());
            let keys = json!(format!("https://{host}{KEYS}"));
            let text = format!(
                "{{\"issuer\":{issuer},\"jwks_uri\":{keys},\"response_types_supported\":[\"id_token\"],\
                 \"subject_types_supported\":[\"public\"],\
                 \"id_token_signing_alg_values_supported\":[\"{algorithm}\"]}}"
            );
            ("application/json", text)
        }
        ["openid", "v1", "jwks"] => {
            let keys: Vec<_> = accounts.keys.iter().map(VerifyingKey::jwk).collect();
            ("application/jwk-set+json", json!({"keys": keys}).to_string())
        }
        _ => return Ok(None),
    };
    check_produced(headers, &[content_type])?;
    let mut response = answer::full(StatusCode::OK, content_type, document);
    let cached = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(header::CACHE_CONTROL, cached);
    Ok(Some(response))
}
