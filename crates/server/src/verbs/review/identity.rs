//! Who am I, and whom does this token stand for?

use crate::{authenticate::BadToken, call::Call, refusal::Refusal, write};
use serde_json::{Value, json};

pub(super) fn own(call: &Call) -> Result<Value, Refusal> {
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
    let asked = review["spec"]["audiences"].as_array().into_iter().flatten();
    let asked: Vec<String> = asked.filter_map(Value::as_str).map(str::to_owned).collect();
    let audiences = if asked.is_empty() { &authenticator.accounts.audiences } else { &asked };
    review["status"] = match authenticator.token(&call.inner, &token, audiences).await {
        Ok(found) => {
            json!({"authenticated": true, "user": found.caller.info(), "audiences": found.audiences})
        }
        Err(problem) => json!({"user": {}, "error": told(&problem)}),
    };
    Ok(review)
}

/// Kubernetes: the token of the server's own client is tried first, and what is said of it is told as well.
fn told(problem: &BadToken) -> String {
    match problem {
        BadToken::NotOurs => problem.to_string(),
        other => format!("[{}, {other}]", BadToken::NotOurs),
    }
}
