//! Tokens in secrets that Kubernetes once made for every account are invalidated and deleted when they are not used.

use super::{ACCOUNT_NAME, ACCOUNT_UID, TOKEN_TYPE};
use jiff::{SignedDuration, Timestamp, civil::Date, tz::TimeZone};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, ServiceAccount};
use kube::{
    ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use operator::{Context, Controller, Failure, Key, Next, all, retry};
use serde_json::json;
use std::time::Duration;

// Kubernetes: labels of token secrets, with dates.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
// Kubernetes: says since when the server tracks the use of tokens.
const TRACKING_NAMESPACE: &str = "kube-system";
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// Kubernetes: a token that was not used for a year is invalidated, and deleted another year later.
const UNUSED: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Kubernetes: secrets are looked at once a day.
const INTERVAL: Duration = Duration::from_secs(24 * 3600);

pub(crate) fn controller() -> Controller {
    let tracking = all::<ConfigMap>().in_namespace(TRACKING_NAMESPACE);
    Controller::new(
        "legacy-service-account-token-cleaner",
        all::<Secret>().with_fields(&format!("type={TOKEN_TYPE}")),
    )
    .reads(all::<ServiceAccount>())
    .reads(all::<Pod>())
    .reads(tracking.with_fields(&format!("metadata.name={TRACKING}")))
    .reconcile((), reconcile)
}

/// What to do with a token's secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Keep,
    Invalidate,
    Delete,
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(secret) = context.get::<Secret>(&key)? else { return Ok(Next::Settled) };
    let today = context.wall();
    let step = match is_generated(&context, &secret)? && is_tracked_long_enough(&context, today)? {
        true => plan(&secret, today),
        false => Step::Keep,
    };
    let secrets = context.namespaced::<Secret>(&key);
    let done = match step {
        _ if is_mounted(&context, &secret)? => return Ok(Next::CheckAfter(INTERVAL)),
        Step::Keep => return Ok(Next::CheckAfter(INTERVAL)),
        Step::Invalidate => {
            let labels = json!({INVALID_SINCE: date(today).to_string()});
            let patch = json!({"metadata": {"uid": secret.uid(), "labels": labels}});
            secrets.patch(key.name(), &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
        }
        Step::Delete => {
            let preconditions = Preconditions { uid: None, resource_version: secret.resource_version() };
            let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
            secrets.delete(key.name(), &params).await.map(drop)
        }
    };
    match done {
        Err(error) if !retry::is_missing(&error) => Err(error.into()),
        _ => Ok(Next::CheckAfter(INTERVAL)),
    }
}

fn plan(secret: &Secret, now: Timestamp) -> Step {
    let keep_from = now - UNUSED;
    let meta = &secret.metadata;
    let is_young = meta.creation_timestamp.as_ref().is_none_or(|created| created.0 >= keep_from);
    if is_young || meta.deletion_timestamp.is_some() {
        return Step::Keep;
    }
    let label = |name: &str| secret.labels().get(name).map(|text| text.parse::<Date>().ok());
    match (label(LAST_USED), label(INVALID_SINCE)) {
        // Without a readable date the last use is unknown.
        (Some(None), _) => Step::Keep,
        (Some(Some(used)), _) if used >= date(keep_from) => Step::Keep,
        (_, None | Some(None)) => Step::Invalidate,
        (_, Some(Some(invalid))) if invalid >= date(keep_from) => Step::Keep,
        _ => Step::Delete,
    }
}

/// Whether its account refers to it: then Kubernetes made it, and not a user.
fn is_generated(context: &Context<()>, secret: &Secret) -> Result<bool, Failure> {
    let Some(name) = secret.annotations().get(ACCOUNT_NAME) else { return Ok(false) };
    let account = context.get::<ServiceAccount>(&Key::new(secret.namespace().as_deref(), name))?;
    let uid = secret.annotations().get(ACCOUNT_UID).filter(|uid| !uid.is_empty());
    Ok(account.is_some_and(|account| {
        let references = account.secrets.as_deref().unwrap_or_default();
        let is_listed =
            references.iter().any(|reference| reference.name.as_ref() == secret.metadata.name.as_ref());
        is_listed && uid.is_none_or(|uid| Some(uid) == account.metadata.uid.as_ref())
    }))
}

/// Whether a pod mounts it.
fn is_mounted(context: &Context<()>, secret: &Secret) -> Result<bool, Failure> {
    let pods = context.view::<Pod>()?.in_namespace(secret.namespace().as_deref().unwrap_or_default())?;
    let mounts = |pod: &Pod| {
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let names = volumes.iter().filter_map(|volume| volume.secret.as_ref()?.secret_name.as_deref());
        names.into_iter().any(|name| Some(name) == secret.metadata.name.as_deref())
    };
    Ok(pods.iter().any(|pod| mounts(pod)))
}

fn is_tracked_long_enough(context: &Context<()>, now: Timestamp) -> Result<bool, Failure> {
    let map = context.get::<ConfigMap>(&Key::new(Some(TRACKING_NAMESPACE), TRACKING))?;
    let since = map.and_then(|map| map.data.as_ref()?.get("since")?.parse::<Date>().ok());
    // Kubernetes: the first whole day.
    let since = since.and_then(|since| since.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok());
    Ok(since.is_some_and(|since| now >= since.timestamp() + UNUSED))
}

fn date(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_not_used_is_invalidated_and_a_year_later_deleted() {
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        for (created, labels, expected) in [
            ("2026-01-01", json!({}), Step::Keep),
            ("2020-01-01", json!({}), Step::Invalidate),
            ("2020-01-01", json!({LAST_USED: "2026-01-01"}), Step::Keep),
            ("2020-01-01", json!({LAST_USED: "2024-01-01"}), Step::Invalidate),
            ("2020-01-01", json!({LAST_USED: "yesterday"}), Step::Keep),
            ("2020-01-01", json!({INVALID_SINCE: "?"}), Step::Invalidate),
            ("2020-01-01", json!({INVALID_SINCE: "2025-12-01"}), Step::Keep),
            ("2020-01-01", json!({INVALID_SINCE: "2025-01-01"}), Step::Delete),
            ("2020-01-01", json!({INVALID_SINCE: "2025-01-01", LAST_USED: "2026-05-01"}), Step::Keep),
        ] {
            let metadata = json!({"creationTimestamp": format!("{created}T00:00:00Z"), "labels": labels});
            let secret: Secret = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            assert_eq!(plan(&secret, now), expected, "{created} {labels}");
        }
    }
}
