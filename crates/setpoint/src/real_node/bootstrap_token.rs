//! A bootstrap token: made here, kept by the cluster as a Secret.

use crate::client::{
    api::{Api, Call, JSON},
    failure::{ClientError, ClientResult},
};
use api::time::{Instant, Precision};
use base64::{Engine, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use world::{Timestamp, World};

/// The group of those who have a token of ours. Rights are given to it, not to all bootstrap tokens of the cluster.
pub(crate) const GROUP: &str = "system:bootstrappers:setpoint:nodes";

const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";
// Kubernetes: the form of a token.
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
/// IDs to try: one in two billion is taken.
const ATTEMPTS: usize = 3;

/// A token, and when it ends.
#[derive(Clone)]
pub(crate) struct BootstrapToken {
    id: String,
    secret: String,
    /// `None`: it does not expire.
    pub(crate) end: Option<Timestamp>,
}

impl BootstrapToken {
    /// Makes a token that the cluster accepts for so long; `None` is for ever.
    pub(crate) async fn create(
        world: &World,
        api: &Api,
        lasts: Option<Duration>,
    ) -> ClientResult<BootstrapToken> {
        let end = match lasts {
            None => None,
            Some(lasts) => {
                let end = world.wall().checked_add(lasts);
                Some(end.map_err(|_| ClientError::error("--ttl: no clock goes so far; 0 is for ever"))?)
            }
        };
        remove_expired(world.wall(), api).await?;
        let mut attempt = 1;
        loop {
            let (id, secret) = (draw(world, ID_LENGTH), draw(world, SECRET_LENGTH));
            let token = BootstrapToken { id, secret, end };
            let body = token.object().to_string().into_bytes();
            let call = Call { method: Method::POST, path: SECRETS, accept: JSON, content_type: JSON, body };
            match api.json(call).await {
                Err(error) if attempt < ATTEMPTS && is_taken(&error) => attempt += 1,
                Err(error) => return Err(error),
                Ok(_) => return Ok(token),
            }
        }
    }

    /// What a machine shows.
    pub(crate) fn text(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }

    /// The Secret.
    fn object(&self) -> Value {
        let mut secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"namespace": "kube-system", "name": format!("bootstrap-token-{}", self.id)},
            "stringData": {
                "description": "made by setpoint: lets a machine join as a node",
                "token-id": self.id, "token-secret": self.secret,
                "usage-bootstrap-authentication": "true", "auth-extra-groups": GROUP,
            },
        });
        if let Some(end) = self.end {
            secret["stringData"]["expiration"] = time(end).into();
        }
        secret
    }
}

impl std::fmt::Debug for BootstrapToken {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "bootstrap token {}", self.id)
    }
}

/// RFC 3339, to the second.
pub(crate) fn time(at: Timestamp) -> String {
    Instant { seconds: at.as_second(), nanos: 0 }.format(Precision::Seconds)
}

/// Removes tokens of ours that have expired: the loop that does so in Kubernetes runs only on request.
async fn remove_expired(now: Timestamp, api: &Api) -> ClientResult<()> {
    let list = api.get(&format!("{SECRETS}?fieldSelector=type%3Dbootstrap.kubernetes.io%2Ftoken")).await?;
    let secrets = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    for name in secrets
        .iter()
        .filter(|secret| is_expired(secret, now))
        .filter_map(|it| it["metadata"]["name"].as_str())
    {
        let path = format!("{SECRETS}/{name}");
        let call = Call { method: Method::DELETE, ..Call::get(&path, JSON) };
        match api.json(call).await {
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

fn is_expired(secret: &Value, now: Timestamp) -> bool {
    let text = |key: &str| {
        let bytes = STANDARD.decode(secret["data"][key].as_str().unwrap_or_default()).ok();
        bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    };
    let end = Instant::parse(&text("expiration"), Precision::Seconds);
    text("auth-extra-groups") == GROUP && end.is_ok_and(|end| end.seconds <= now.as_second())
}

fn is_taken(error: &ClientError) -> bool {
    error.status().is_some_and(|status| status.code == 409)
}

/// Random letters and digits, each as likely as the others.
fn draw(world: &World, length: usize) -> String {
    let letter = || LETTERS[usize::try_from(world.pick(0..LETTERS.len() as u64)).unwrap_or_default()];
    (0..length).map(|_| char::from(letter())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expired_tokens_of_ours_are_removed() {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        for (groups, end, expected) in [
            (GROUP, "2026-01-01T00:00:00Z", true),
            (GROUP, "2026-01-01T00:00:01Z", false),
            (GROUP, "", false),
            ("system:bootstrappers:kubeadm:default-node-token", "2020-01-01T00:00:00Z", false),
        ] {
            let data =
                json!({"auth-extra-groups": STANDARD.encode(groups), "expiration": STANDARD.encode(end)});
            assert_eq!(is_expired(&json!({ "data": data }), now), expected, "{groups} {end}");
        }
    }

    #[test]
    fn a_token_is_random_and_its_debug_output_hides_it() {
        world::run(|world| async move {
            let [one, other] = [(); 2].map(|()| draw(&world, SECRET_LENGTH));
            assert_ne!(one, other);
            assert!(one.len() == 16 && one.bytes().all(|byte| LETTERS.contains(&byte)), "{one}");
            let end = Some("2026-01-01T00:00:00.7Z".parse().unwrap());
            let token = BootstrapToken { id: "abcdef".to_owned(), secret: one.clone(), end };
            assert_eq!(format!("{token:?}"), "bootstrap token abcdef");
            assert_eq!(token.text(), format!("abcdef.{one}"));
            let secret = token.object();
            assert_eq!(secret["metadata"]["name"], "bootstrap-token-abcdef");
            assert_eq!(secret["stringData"]["expiration"], "2026-01-01T00:00:00Z");
        })
        .unwrap();
    }
}
