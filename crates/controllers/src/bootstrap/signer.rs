//! The ConfigMap `cluster-info` has a signature of each bootstrap token: a node that has a token trusts it.

use super::{
    token::{self, Expiry},
    tokens,
};
use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use operator::{Context, Controller, Failure, Key, Next, all, retry};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

// Kubernetes: the ConfigMap, its text, and the prefix of the keys of its signatures.
const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
const SIGNED: &str = "kubeconfig";
const SIGNATURE_PREFIX: &str = "jws-kubeconfig-";

pub(crate) fn controller() -> Controller {
    let map = all::<ConfigMap>().in_namespace(NAMESPACE).with_fields(&format!("metadata.name={NAME}"));
    Controller::new("bootstrap-signer", map)
        .watches(tokens(), |_| vec![Key::new(Some(NAMESPACE), NAME)])
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(map) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
    let (tokens, now) = (context.view::<Secret>()?.list()?, context.wall());
    if let Some(data) = signed(&map, &tokens, now) {
        let signed = ConfigMap { data: Some(data), ..ConfigMap::clone(&map) };
        match context.namespaced::<ConfigMap>(&key).replace(key.name(), &PostParams::default(), &signed).await
        {
            Err(error) if retry::is_missing(&error) => return Ok(Next::Settled),
            result => drop(result?),
        }
    }
    Ok(next_expiry(&tokens, now).map_or(Next::Settled, Next::CheckAfter))
}

/// The data with the signatures of all tokens and no others; `None` if it has them.
fn signed(map: &ConfigMap, tokens: &[Arc<Secret>], now: Timestamp) -> Option<BTreeMap<String, String>> {
    let before = map.data.as_ref()?;
    let content = before.get(SIGNED)?;
    let mut data = before.clone();
    data.retain(|key, _| !key.starts_with(SIGNATURE_PREFIX));
    for (id, secret) in tokens.iter().filter_map(|secret| token::for_signing(secret, now)) {
        data.insert(format!("{SIGNATURE_PREFIX}{id}"), signature(content, id, secret));
    }
    (data != *before).then_some(data)
}

/// A JWS (RFC 7515) without its payload.
fn signature(content: &str, id: &str, secret: &str) -> String {
    // An ID has only letters and digits.
    let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"HS256","kid":"{id}"}}"#));
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(content));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
    format!("{header}..{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
}

fn next_expiry(tokens: &[Arc<Secret>], now: Timestamp) -> Option<Duration> {
    let ends = tokens.iter().filter_map(|secret| match Expiry::of(secret) {
        Expiry::At(end) if end > now => Some(end),
        _ => None,
    });
    Duration::try_from(ends.min()?.duration_since(now)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_that_of_kubeadm() {
        // Kubernetes: content, ID, secret and signature of its own test.
        let expected =
            "eyJhbGciOiJIUzI1NiIsImtpZCI6Impvc2h1YSJ9..VShe2taLd-YTrmWuRkcL_8QTNDHYxQIEBsAYYiIj1_8";
        assert_eq!(
            signature(
                "Hello from the other side. I must have called a thousand times.",
                "joshua",
                "my voice is my passcode"
            ),
            expected
        );
    }
}
