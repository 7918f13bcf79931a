//! SelfSubjectReview and TokenReview.

use crate::{authenticate::BadToken, call::Call, refusal::Refusal, write};
use serde_json::{Value, json};

pub(super) fn of_caller(call: &Call) -> Result<Value, Refusal> {
    Ok(json!({
        "kind": call.served.resource.kind, "apiVersion": call.served.api_version(),
        "metadata": {"creationTimestamp": write::now(call).to_string()},
        "status": {"userInfo": call.caller().info()},
    }))
}

pub(super) async fn of_token(call: &Call, mut review: Value) -> Result<Value, Refusal> {
    let token = review["spec"]["token"].as_str().unwrap_or_default().to_owned();
    if token.is_empty() {
        return Err(Refusal::bad_request("token is required for TokenReview in authentication"));
    }
    let authenticator = &call.inner.authenticator;
    let audiences = review["spec"]["audiences"].as_array().into_iter().flatten();
    let audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
    let audiences = if audiences.is_empty() { &authenticator.accounts.audiences } else { &audiences };
    review["status"] = match authenticator.token(&call.inner, &token, audiences).await {
        Ok(found) => {
            json!({"authenticated": true, "user": found.caller.info(), "audiences": found.audiences})
        }
        Err(problem) => json!({"user": {}, "error": problem_text(&problem)}),
    };
    Ok(review)
}

/// Kubernetes: the loopback client's token is tried first, and its error is part of the text.
fn problem_text(problem: &BadToken) -> String {
    match problem {
        BadToken::NotOurs => problem.to_string(),
        other => format!("[{}, {other}]", BadToken::NotOurs),
    }
}
