//! Conversion webhooks: convert custom objects from one version to another.

use super::WebhookTarget;
use crate::{Inner, refusal::Refusal, served::join};
use api::object;
use kinds::definition::{ConversionWebhook, Definition};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Kubernetes: the timeout of its client.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A conversion answers with a whole list.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Has the definition's webhook convert the objects that are not in the wanted version yet.
pub(crate) async fn convert(
    inner: &Inner,
    definition: &Definition,
    webhook: &ConversionWebhook,
    mut objects: Vec<Value>,
    to: &str,
) -> Result<Vec<Value>, Refusal> {
    let wanted = join(&definition.group, to);
    let others: Vec<usize> =
        (0..objects.len()).filter(|at| object::api_version(&objects[*at]) != wanted).collect();
    let Some(first) = others.first() else { return Ok(objects) };
    let (group, version) = object::api_version(&objects[*first]).split_once('/').unwrap_or_default();
    let whose = format!("{group}/{version}, Kind={}", definition.names.kind);
    let sent: Vec<Value> = others.iter().map(|at| objects[*at].clone()).collect();
    let failed =
        |problem: String| Refusal::unclassified(format!("conversion webhook for {whose} failed: {problem}"));
    let converted = review(inner, webhook, &sent, &wanted).await.map_err(failed)?;
    if converted.len() != sent.len() {
        return Err(Refusal::unclassified(format!(
            "conversion webhook for {whose} returned {} objects, expected {}",
            converted.len(),
            sent.len()
        )));
    }
    for (index, (at, made)) in others.into_iter().zip(converted).enumerate() {
        objects[at] = check(&objects[at], made, &wanted).map_err(|problem| {
            Refusal::unclassified(format!(
                "conversion webhook for {whose} returned invalid converted object at index {index}: {problem}"
            ))
        })?;
    }
    Ok(objects)
}

/// Sends a ConversionReview and checks the answer.
async fn review(
    inner: &Inner,
    webhook: &ConversionWebhook,
    objects: &[Value],
    wanted: &str,
) -> Result<Vec<Value>, String> {
    let known = |version: &&String| matches!(version.as_str(), "v1" | "v1beta1");
    let spoken =
        webhook.review_versions.iter().find(known).ok_or("no supported conversion review versions")?;
    let uid = inner.world.uid();
    let review = json!({
        "kind": "ConversionReview", "apiVersion": format!("apiextensions.k8s.io/{spoken}"),
        "request": {"uid": uid, "desiredAPIVersion": wanted, "objects": objects},
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    });
    let hook = WebhookTarget {
        address: &webhook.address,
        ca_bundle: &webhook.ca_bundle,
        timeout: TIMEOUT,
        max_answer: MAX_ANSWER_BYTES,
    };
    let mut answer = super::call(inner, hook, &review).await?;
    let (version, kind) = (object::api_version(&answer), object::kind(&answer));
    if spoken == "v1" && (version, kind) != ("apiextensions.k8s.io/v1", "ConversionReview") {
        return Err(format!(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got {version}, Kind={kind}"
        ));
    }
    let response = answer.get_mut("response").filter(|it| it.is_object()).ok_or("no response provided")?;
    let answered = response["uid"].as_str().unwrap_or_default();
    if spoken == "v1" && answered != uid {
        return Err(format!("expected response.uid={uid:?}, got {answered:?}"));
    }
    let status = response["result"]["status"].as_str().unwrap_or_default();
    if status != "Success" {
        return Err(match response["result"]["message"].as_str() {
            Some(message) if !message.is_empty() => message.to_owned(),
            _ => format!("response.result.status was '{status}', not 'Success'"),
        });
    }
    match response["convertedObjects"].take() {
        Value::Array(objects) => Ok(objects),
        _ => Ok(Vec::new()),
    }
}

/// A conversion must not change which object it is: of the metadata only labels and annotations may change.
fn check(before: &Value, mut made: Value, wanted: &str) -> Result<Value, String> {
    let received = object::api_version(&made);
    if received != wanted {
        return Err(format!("invalid groupVersion (expected {wanted}, received {received})"));
    }
    if object::kind(before) != object::kind(&made) {
        let (expected, received) = (object::kind(before), object::kind(&made));
        return Err(format!("invalid kind (expected {expected}, received {received})"));
    }
    for (what, of) in
        [("name", object::name as fn(&Value) -> &str), ("namespace", object::namespace), ("UID", object::uid)]
    {
        let (expected, received) = (of(before), of(&made));
        if expected != received {
            return Err(format!("must have the same {what}: {expected} != {received}"));
        }
    }
    let received = made.get("metadata").ok_or("missing metadata in converted object")?;
    let received = received.as_object().ok_or("invalid metadata in converted object")?;
    let mut metadata = before.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        match received.get(field) {
            None | Some(Value::Null) => drop(metadata.remove(field)),
            Some(Value::Object(texts)) => restore(field, texts, &mut metadata)?,
            Some(_) => return Err(format!("invalid metadata.{field} in converted object")),
        }
    }
    made["metadata"] = Value::Object(metadata);
    Ok(made)
}

fn restore(field: &str, texts: &Map<String, Value>, metadata: &mut Map<String, Value>) -> Result<(), String> {
    if let Some((key, _)) = texts.iter().find(|(_, text)| !text.is_string()) {
        return Err(format!("metadata.{field}[{key}] must be a string in converted object"));
    }
    metadata.insert(field.to_owned(), Value::Object(texts.clone()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversion_may_change_labels_annotations_and_content_only() {
        let before = json!({"apiVersion": "g/v1", "kind": "K",
            "metadata": {"name": "a", "uid": "u", "labels": {"a": "b"}, "finalizers": ["f"]}, "spec": 1});
        let made =
            |metadata: Value| json!({"apiVersion": "g/v2", "kind": "K", "metadata": metadata, "spec": 2});
        let good = made(json!({"name": "a", "uid": "u", "labels": {"a": "c"}, "finalizers": []}));
        let expected = json!({"name": "a", "uid": "u", "labels": {"a": "c"}, "finalizers": ["f"]});
        assert_eq!(check(&before, good, "g/v2").unwrap(), made(expected));
        for (metadata, problem) in [
            (json!({"name": "b", "uid": "u"}), "must have the same name: a != b"),
            (json!({"name": "a"}), "must have the same UID: u != "),
            (json!({"name": "a", "uid": "u", "labels": {"a": 1}}), "metadata.labels[a] must be a string"),
        ] {
            let refused = check(&before, made(metadata), "g/v2").unwrap_err();
            assert!(refused.starts_with(problem), "{refused}");
        }
        let refused = check(&before, before.clone(), "g/v2").unwrap_err();
        assert_eq!(refused, "invalid groupVersion (expected g/v2, received g/v1)");
    }
}
