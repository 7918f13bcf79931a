//! Delete: marks, waits for finalizers and grace, and removes.

use super::{Call, bad_options, create::current, read};
use crate::{
    admission,
    answer::{self, Body},
    definitions::CLEANUP,
    input::{self, Wanted},
    request::is_set,
    selection::Selection,
    stored::Stored,
    write::{self, Checked, Outcome},
};
use api::{
    field::{Error, ErrorList, Path},
    go, object,
    status::Status,
    time::Time,
};
use bytes::Bytes;
use http::{Response, StatusCode};
use kinds::definition::condition::{self, Condition};
use serde_json::Value;
use std::time::Duration;

const ATTEMPTS: usize = 5;
// Kubernetes: what the garbage collector acts on.
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// What a client says about how to delete.
#[derive(Debug, Default)]
struct DeleteOptions {
    grace_seconds: Option<i64>,
    propagation: Option<String>,
    /// The older way to say it.
    orphan: Option<bool>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    fn read(call: &mut Call, body: &[u8]) -> Result<DeleteOptions, Status> {
        let mut value = Value::Null;
        if !body.is_empty() {
            let types = call.types();
            let (of, _) = types
                .named("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")
                .ok_or_else(super::not_served)?;
            let encoding = input::encoding(input::media_type(&call.headers))?;
            value = match encoding {
                input::Encoding::Protobuf => {
                    let wanted = Wanted { types, of, group: "", version: "v1", kind: "DeleteOptions" };
                    wanted.decode(body, encoding, call.options.validation)?.value
                }
                // Kubernetes: it may come in any group's version.
                input::Encoding::Json => {
                    schema::decode::decode(types, of, body, call.options.validation)
                        .map_err(|error| Status::bad_request(error.to_string()))?
                        .value
                }
                input::Encoding::Yaml => {
                    schema::yaml::decode_yaml(types, of, body, call.options.validation)
                        .map_err(|error| Status::bad_request(error.to_string()))?
                        .value
                }
            };
        }
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let query = |name: &str| call.options.rest.get(name).cloned();
        let orphan = value.get("orphanDependents").and_then(Value::as_bool);
        let orphan = orphan.or_else(|| query("orphanDependents").map(|text| is_set(&text)));
        let dry_run = value.get("dryRun").and_then(Value::as_array);
        let grace = match value.get("gracePeriodSeconds").and_then(Value::as_i64) {
            None => query("gracePeriodSeconds").map(|text| go::parse_int(&text)).transpose(),
            given => Ok(given),
        };
        let options = DeleteOptions {
            grace_seconds: grace.map_err(Status::bad_request)?,
            propagation: text("/propagationPolicy").or_else(|| query("propagationPolicy")),
            orphan,
            uid: text("/preconditions/uid"),
            resource_version: text("/preconditions/resourceVersion"),
        };
        if dry_run.is_some_and(|stages| !stages.is_empty()) {
            call.options.dry_run = Some("All".to_owned());
        }
        options.check()?;
        Ok(options)
    }

    fn check(&self) -> Result<(), Status> {
        let mut errors = ErrorList::new();
        let path = Path::new("propagationPolicy");
        if let Some(policy) = self.propagation.as_deref() {
            if self.orphan.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(Error::invalid(&path, policy, detail));
            } else if !["Foreground", "Background", "Orphan"].contains(&policy) {
                let choices = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(Error::not_supported(&path, policy, choices));
            }
        }
        bad_options("DeleteOptions", errors)
    }

    /// Whether dependents are left alone, or waited for; `None` where the client does not say.
    fn policy(&self) -> Option<&str> {
        let said = || self.orphan.map(|orphan| if orphan { "Orphan" } else { "Background" });
        self.propagation.as_deref().or_else(said)
    }
}

pub(crate) async fn delete(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let mut call = call.again();
    let options = DeleteOptions::read(&mut call, &body)?;
    let (code, outcome) = delete_one(&call, &options, Asked::ToDelete).await?;
    Ok(match outcome {
        Deleted::Gone(object) => {
            let status = Status::deleted(&call.resource(), object::name(&object), object::uid(&object));
            let mut response = answer::status(&status, call.form);
            *response.status_mut() = code;
            response
        }
        Deleted::Marked(stored) => answer::object(&call, code, &stored).await?,
    })
}

/// A delete that nobody but the server asked for.
pub(crate) async fn by_server(call: &Call) -> Result<(), Status> {
    delete_one(call, &DeleteOptions::default(), Asked::ToDelete).await.map(drop)
}

/// What a delete comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    ToDelete,
    /// Admission has spoken about the eviction already, and says nothing about what it does.
    ToEvict,
}

enum Deleted {
    Gone(Value),
    /// It stays until somebody lets it go.
    Marked(Stored),
}

async fn delete_one(
    call: &Call,
    options: &DeleteOptions,
    asked: Asked,
) -> Result<(StatusCode, Deleted), Status> {
    let name = call.target.name.as_str();
    for _ in 0..ATTEMPTS {
        let (stored, live) = current(call).await?;
        check_preconditions(call, options, &live)?;
        if asked == Asked::ToDelete {
            admission::delete(call, &live).await?;
        }
        let mut marked = live.clone();
        mark(call, options, &mut marked);
        let gone = write::is_released(call, &marked);
        if !gone && marked == live {
            return Ok((StatusCode::OK, Deleted::Marked(stored)));
        }
        let outcome = if gone {
            write::remove(call, name, &stored).await?
        } else {
            bump_generation(&live, &mut marked);
            write::replace(call, Checked::by_server(marked), &stored).await?
        };
        match outcome {
            Outcome::Done(_) if gone => return Ok((StatusCode::OK, Deleted::Gone(live))),
            Outcome::Done(stored) => return Ok((StatusCode::OK, Deleted::Marked(stored))),
            Outcome::Lost => {}
        }
    }
    Err(Status::modified(&call.resource(), name))
}

fn check_preconditions(call: &Call, options: &DeleteOptions, live: &Value) -> Result<(), Status> {
    let (kind, name) = (call.served.group_kind(), call.target.name.as_str());
    if let Some(wanted) = options.uid.as_deref().filter(|wanted| *wanted != object::uid(live)) {
        return Err(Status::uid_mismatch(&kind, name, wanted, object::uid(live)));
    }
    let found = object::resource_version(live);
    if let Some(wanted) = options.resource_version.as_deref().filter(|wanted| *wanted != found) {
        return Err(Status::resource_version_mismatch(&kind, name, wanted, found));
    }
    Ok(())
}

/// Says in the object that it is to go: when, and what must happen before.
fn mark(call: &Call, options: &DeleteOptions, draft: &mut Value) {
    let mut finalizers: Vec<String> = object::finalizers(draft).map(str::to_owned).collect();
    let mut set = |finalizer: &str, wanted: bool| {
        finalizers.retain(|other| other != finalizer);
        if wanted {
            finalizers.push(finalizer.to_owned());
        }
    };
    if let Some(policy) = options.policy() {
        set(ORPHAN, policy == "Orphan");
        set(FOREGROUND, policy == "Foreground");
    }
    if call.served.is("apiextensions.k8s.io", "customresourcedefinitions") && !object::is_deleting(draft) {
        set(CLEANUP, true);
        condition::set(&mut draft["status"], &Condition::deletion_pending(), write::now(call));
    }
    object::set_finalizers(draft, finalizers.iter().map(String::as_str));
    if write::is_held_by_spec(call, draft) {
        return mark_namespace(call, draft);
    }
    let grace = call.served.strategy().grace_period(draft, options.grace_seconds).unwrap_or(0).max(0);
    let moment = call.inner.world.wall() + Duration::from_secs(grace.unsigned_abs());
    let shortened = object::deletion_grace_period_seconds(draft).is_none_or(|before| grace < before);
    if !object::is_deleting(draft) || shortened {
        object::set_deletion_timestamp(draft, Some(Time::from(moment)));
        object::set_deletion_grace_period_seconds(draft, Some(grace));
    }
}

/// A namespace waits for its contents, whoever clears them away; it knows no grace.
fn mark_namespace(call: &Call, draft: &mut Value) {
    if !object::is_deleting(draft) {
        object::set_deletion_timestamp(draft, Some(write::now(call)));
    }
    draft["status"]["phase"] = "Terminating".into();
}

fn bump_generation(live: &Value, marked: &mut Value) {
    let generation = object::generation(live);
    if generation > 0 && !object::is_deleting(live) {
        object::set_generation(marked, generation + 1);
    }
}

pub(crate) async fn delete_collection(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let mut call = call.again();
    read::check_options(&call)?;
    let selection = Selection::new(&call)?;
    let options = DeleteOptions::read(&mut call, &body)?;
    let (meta, objects) = read::collect(&call, &selection).await?;
    for stored in &objects {
        let object = stored.value();
        let mut one = call.again();
        one.target.name = object::name(&object).to_owned();
        one.target.namespace = object::namespace(&object).to_owned();
        match delete_one(&one, &options, Asked::ToDelete).await {
            Ok(_) => {}
            Err(status) if status.code == 404 => {}
            Err(status) => return Err(status),
        }
    }
    answer::list(&call, &meta, &objects).await
}

/// `pods/eviction`: a delete that disruption budgets have a say in, once somebody keeps them.
pub(super) async fn evict(call: &Call, body: Bytes) -> Result<Response<Body>, Status> {
    let types = call.types();
    let (of, _) = types.kind("policy", "v1", "Eviction").ok_or_else(super::not_served)?;
    let wanted = Wanted { types, of, group: "policy", version: "v1", kind: "Eviction" };
    let encoding = input::encoding(input::media_type(&call.headers))?;
    let eviction = wanted.decode(&body, encoding, call.options.validation)?.value;
    let eviction = admission::subresource(call, eviction).await?;
    let text = |pointer: &str| eviction.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let options = DeleteOptions {
        grace_seconds: eviction.pointer("/deleteOptions/gracePeriodSeconds").and_then(Value::as_i64),
        propagation: text("/deleteOptions/propagationPolicy"),
        orphan: None,
        uid: text("/deleteOptions/preconditions/uid"),
        resource_version: text("/deleteOptions/preconditions/resourceVersion"),
    };
    let mut plain = call.again();
    plain.target.subresource = String::new();
    delete_one(&plain, &options, Asked::ToEvict).await?;
    let mut status = Status::success();
    status.code = 201;
    Ok(answer::status(&status, call.form))
}
