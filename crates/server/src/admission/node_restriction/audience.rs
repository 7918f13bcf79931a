//! Tokens that a kubelet may request: bound to a pod on its node, for an audience that the pod uses.

use super::super::{Operation, Review};
use crate::{
    authorize::{self, Attributes, OnResource},
    lookup,
    refusal::Refusal,
};
use api::{go, object};
use serde_json::Value;

const VERB: &str = "request-serviceaccounts-token-audience";

pub(super) async fn check(review: &Review<'_>, node: &str) -> Result<(), Refusal> {
    if review.operation != Operation::Create {
        return Ok(());
    }
    let reference = &review.object["spec"]["boundObjectRef"];
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    let (name, uid) = (text("name"), text("uid"));
    if text("apiVersion") != "v1" || text("kind") != "Pod" || name.is_empty() {
        return Err(review.forbidden("node requested token not bound to a pod"));
    }
    if uid.is_empty() {
        return Err(review.forbidden("node requested token with a pod binding without a uid"));
    }
    let pod = super::pod(review, name).await?;
    if uid != object::uid(&pod) {
        return Err(review.forbidden(format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
             been deleted and then recreated"
        )));
    }
    if pod["spec"]["nodeName"] != node {
        return Err(review.forbidden("node requested token bound to a pod scheduled on a different node"));
    }
    check_audience(review, &pod).await
}

async fn check_audience(review: &Review<'_>, pod: &Value) -> Result<(), Refusal> {
    let audiences = review.object["spec"]["audiences"].as_array().map(Vec::as_slice).unwrap_or_default();
    let audience = match audiences {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Err(review.forbidden("node may only request 0 or 1 audiences")),
    };
    let quoted = go::quote(audience);
    match wants(review, pod, audience).await? {
        AudienceUse::Yes => return Ok(()),
        AudienceUse::No => {}
        AudienceUse::Unknown(why) => {
            return Err(review.forbidden(format!("error validating audience {quoted}: {why}")));
        }
    }
    let caller = review.call.caller();
    let wanted = OnResource {
        verb: VERB,
        resource: audience,
        namespace: review.namespace(),
        name: review.name(),
        ..OnResource::default()
    };
    if authorize::allows(&review.call.inner, caller, &Attributes::Resource(wanted)).await?.is_allowed {
        return Ok(());
    }
    let user = &caller.name;
    Err(review.forbidden(format!(
        "audience {quoted} not found in pod spec volume, {user} is not authorized to request tokens for this audience"
    )))
}

enum AudienceUse {
    Yes,
    No,
    Unknown(String),
}

/// Whether a pod projects a token for the audience, or a CSI driver of its volumes requests one.
async fn wants(review: &Review<'_>, pod: &Value, audience: &str) -> Result<AudienceUse, Refusal> {
    let mut problems = Vec::new();
    for volume in pod["spec"]["volumes"].as_array().into_iter().flatten() {
        let mut sources = volume["projected"]["sources"].as_array().into_iter().flatten();
        let is_it = |source: &Value| {
            let token = &source["serviceAccountToken"];
            token.is_object() && token["audience"].as_str().unwrap_or_default() == audience
        };
        if sources.any(is_it) {
            return Ok(AudienceUse::Yes);
        }
        let driver = match driver(review, pod, volume).await? {
            Ok(driver) if driver.is_empty() => continue,
            Ok(driver) => driver,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let kind = ("storage.k8s.io", "v1", "csidrivers");
        let Some(found) = lookup::object(&review.call.inner, kind, "", &driver).await? else {
            problems.push(format!("csidriver.storage.k8s.io {} not found", go::quote(&driver)));
            continue;
        };
        let mut requests = found["spec"]["tokenRequests"].as_array().into_iter().flatten();
        if requests.any(|request| request["audience"].as_str().unwrap_or_default() == audience) {
            return Ok(AudienceUse::Yes);
        }
    }
    Ok(match &problems[..] {
        [] => AudienceUse::No,
        [one] => AudienceUse::Unknown(one.clone()),
        several => AudienceUse::Unknown(format!("[{}]", several.join(", "))),
    })
}

/// The CSI driver of a volume; empty where it has none.
async fn driver(review: &Review<'_>, pod: &Value, volume: &Value) -> Result<Result<String, String>, Refusal> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let claim = if volume["ephemeral"]["volumeClaimTemplate"].is_object() {
        format!("{}-{}", object::name(pod), text(&volume["name"]))
    } else if volume["persistentVolumeClaim"].is_object() {
        text(&volume["persistentVolumeClaim"]["claimName"])
    } else {
        return Ok(Ok(text(&volume["csi"]["driver"])));
    };
    let inner = &review.call.inner;
    let kind = ("", "v1", "persistentvolumeclaims");
    let Some(found) = lookup::object(inner, kind, review.namespace(), &claim).await? else {
        return Ok(Err(format!("persistentvolumeclaim {} not found", go::quote(&claim))));
    };
    let name = text(&found["spec"]["volumeName"]);
    let Some(found) = lookup::object(inner, ("", "v1", "persistentvolumes"), "", &name).await? else {
        return Ok(Err(format!("persistentvolume {} not found", go::quote(&name))));
    };
    Ok(Ok(text(&found["spec"]["csi"]["driver"])))
}
