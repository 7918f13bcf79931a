//! Access and identity reviews: answered, never stored.

mod access;
mod identity;
mod rules;

use crate::{
    admission,
    answer::{self, Body},
    call::Call,
    input,
    refusal::Refusal,
    write,
};
use api::{kind::GroupKind, object};
use bytes::Bytes;
use http::{Response, StatusCode};
use schema::managed_fields;
use serde_json::Value;

pub(crate) async fn review(call: &Call, body: Bytes) -> Result<Response<Body>, Refusal> {
    let kind = &*call.served.resource.kind;
    if !is_review(&call.served.resource.group) {
        return Err(Refusal::method_not_supported(&call.resource(), "create"));
    }
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let decoded = input::object(&call.served, &body, encoding, call.options.validation)?;
    decoded.warnings.into_iter().for_each(|warning| call.warn(warning));
    let mut review = decoded.value;
    write::check_target(call, &mut review)?;
    wipe(&mut review);
    call.served.normalize(&mut review);
    let review = admission::admit_review(call, with_owner(call, review).await?).await?;
    refuse_invalid(call, &review)?;
    let answered = match kind {
        "SelfSubjectReview" => identity::of_caller(call),
        "TokenReview" => identity::of_token(call, review).await,
        "SelfSubjectRulesReview" => rules::of_caller(call, &review).await,
        _ => access::decide(call, review).await,
    };
    let bytes = answer::value_bytes(call, &answered?, true);
    Ok(answer::full(StatusCode::CREATED, call.form.content_type(), bytes))
}

fn is_review(group: &str) -> bool {
    matches!(group, "authentication.k8s.io" | "authorization.k8s.io")
}

/// Removes metadata that a client sent and reviews do not have.
fn wipe(review: &mut Value) {
    let metadata = object::metadata_mut(review);
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(field);
    }
}

async fn with_owner(call: &Call, review: Value) -> Result<Value, Refusal> {
    let (manager, now) = (call.manager(), write::now(call).to_string());
    let owned = write::with_target(call, |target| {
        let mut review = review.clone();
        managed_fields::create(target, &mut review, &manager, &now);
        review
    });
    owned.await
}

/// Kubernetes: the error has no kind.
fn refuse_invalid(call: &Call, review: &Value) -> Result<(), Refusal> {
    let kind = GroupKind::new(&*call.served.resource.group, "");
    call.served.check_new(review).into_result().map_err(|errors| Refusal::invalid(&kind, "", &errors))
}
