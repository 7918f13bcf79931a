//! `scale`: the number of replicas of whatever has one, in the same form for all.

use super::{Outcome, Record, prepare_next, replace};
use crate::{
    answer::{self, Body},
    input::Wanted,
    stored::Stored,
    verbs::{Call, not_served},
};
use api::{kind::GroupKind, object, status::Status};
use http::{Response, StatusCode};
use serde_json::{Value, json};

const ATTEMPTS: usize = 5;

pub(crate) fn wanted<'a>(call: &Call<'a>) -> Wanted<'a> {
    let types = call.types();
    let of = types.kind("autoscaling", "v1", "Scale").map_or(call.served.of, |(of, _)| of);
    Wanted { types, of, group: "autoscaling", version: "v1", kind: "Scale" }
}

/// The scale of an object at rest.
pub(crate) fn of(call: &Call<'_>, stored: &Stored) -> Result<Value, Status> {
    let object = call.served.in_version(stored.value());
    if object.get("spec").is_none() {
        return Err(not_served());
    }
    Ok(view(&object))
}

fn view(object: &Value) -> Value {
    let mut metadata = serde_json::Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let selector = object["spec"].get("selector").cloned().unwrap_or_default();
    let labels = match selector.get("matchLabels").or_else(|| selector.get("matchExpressions")) {
        Some(_) => serde_json::from_value::<api::label_selector::LabelSelector>(selector.clone())
            .ok()
            .and_then(|selector| selector.to_selector().ok())
            .map(|selector| selector.to_string())
            .unwrap_or_default(),
        None => plain_labels(&selector),
    };
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": object["spec"].get("replicas").cloned().unwrap_or(json!(0))},
        "status": {
            "replicas": object["status"].get("replicas").cloned().unwrap_or(json!(0)),
            "selector": labels,
        },
    })
}

/// A replication controller selects by labels alone.
fn plain_labels(selector: &Value) -> String {
    let labels = selector.as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    labels.collect::<Vec<_>>().join(",")
}

/// Writes the number of replicas that `produce` makes of the current scale.
pub(crate) async fn update(
    call: &Call<'_>,
    produce: impl Fn(&Value) -> Result<Value, Status>,
) -> Result<Response<Body>, Status> {
    let name = call.target.name.as_str();
    for _ in 0..ATTEMPTS {
        let stored = crate::verbs::read::find(call, name).await?;
        let mut live = call.served.in_version(stored.value());
        schema::encode::normalize(call.types(), call.served.of, &mut live);
        let scale = produce(&view(&live))?;
        let version = object::resource_version(&scale);
        if !version.is_empty() && version != object::resource_version(&live) {
            return Err(Status::modified(&call.resource(), name));
        }
        let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        let errors = kinds::validate::create("autoscaling", "v1", "Scale", &scale);
        let kind = GroupKind::new("autoscaling", "Scale");
        errors.into_result().map_err(|errors| Status::invalid(&kind, name, &errors))?;
        let mut draft = live.clone();
        draft["spec"]["replicas"] = replicas.into();
        let Some(checked) = prepare_next(call, &live, draft, Record::Now)? else {
            return Ok(answer(call, &stored));
        };
        match replace(call, checked, &stored).await? {
            Outcome::Done(stored) => return Ok(answer(call, &stored)),
            Outcome::Lost if version.is_empty() => {}
            Outcome::Lost => break,
        }
    }
    Err(Status::modified(&call.resource(), name))
}

fn answer(call: &Call<'_>, stored: &Stored) -> Response<Body> {
    let scale = view(&call.served.in_version(stored.value()));
    answer::document(StatusCode::OK, call.form, "autoscaling", "v1", "Scale", &scale)
}
