//! Commit: stores a checked object with one compare-and-set.

use super::{
    Checked,
    service_allocation::{self, Filled},
};
use crate::{
    Inner,
    admission::resource_quota,
    call::Call,
    convert,
    refusal::Refusal,
    stored::{Stored, at_rest},
};
use api::{kind::GroupResource, object};
use bytes::Bytes;
use schema::depth::{MAX_DEPTH, depth};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};
use store::{Batch, Revision, Store};

/// Attempts with other addresses and ports when the chosen ones are taken, or with a quota that changed
/// meanwhile.
const CHOICES: u64 = 64;

/// The write half of the store. Only this file can use it.
#[derive(Debug)]
pub(crate) struct Writer(Arc<dyn Store>);

impl Writer {
    pub(crate) fn new(store: &Arc<dyn Store>) -> Writer {
        Writer(Arc::clone(store))
    }
}

/// Commits a batch that the server made by itself; `false` where another writer was faster.
pub(crate) async fn commit(inner: &Inner, batch: Batch) -> Result<bool, store::Error> {
    match inner.writer.0.commit(batch).await {
        Ok(_) => Ok(true),
        Err(store::Error::Conflict(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// How a conditional write ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Stored),
    /// Another writer was faster.
    Lost,
}

/// Stores a new object. A dry run stops before the commit.
pub(crate) async fn create(call: &Call, checked: Checked) -> Result<Outcome, Refusal> {
    let key = call.key(object::name(checked.object()));
    let outcome = put(call, checked, None, |batch, json| batch.create(key.clone(), json)).await?;
    if call.options.is_dry_run() {
        // A dry run checks for an existing object after quota, as the commit would.
        let read = call.inner.store.get(key, None).await?;
        if read.entry.is_some() {
            return Ok(Outcome::Lost);
        }
    }
    Ok(outcome)
}

/// Replaces an object if it has not changed since it was read.
pub(crate) async fn replace(call: &Call, checked: Checked, current: &Stored) -> Result<Outcome, Refusal> {
    let key = call.key(object::name(checked.object()));
    let revision = current.revision;
    put(call, checked, Some(current), |batch, json| batch.replace(key.clone(), json, revision)).await
}

/// Stores the next state of an object, or removes the object if it was being deleted and this write removes
/// its last finalizer. Returns the state that the write made.
// Kubernetes: the answer for a removed object has its previous resourceVersion.
pub(crate) async fn replace_or_release(
    call: &Call,
    checked: Checked,
    current: &Stored,
) -> Result<Outcome, Refusal> {
    if !super::is_released(call, checked.object()) {
        return replace(call, checked, current).await;
    }
    let name = object::name(checked.object()).to_owned();
    let mut last = checked.into_object();
    if service_allocation::is_service(call) {
        // Kubernetes: addresses and ports are allocated before the finalizers are looked at, so a service
        // with invalid ones is refused and stays.
        let before = current.value()?;
        Filled { service: last, .. } = service_allocation::fill(call, last, Some(&before), 0)?;
        Box::pin(service_allocation::check_free(call, &last, Some(&before))).await?;
    }
    // Kubernetes: the last state is answered in the version that the client wrote, not in the storage
    // version.
    let is_as_written = call.served.custom().is_some() || call.served.is_kept_in_its_version();
    let last = match is_as_written {
        true => {
            object::metadata_mut(&mut last).remove("resourceVersion");
            call.served.encode(&last).into()
        }
        false => encode(call, &mut last).await?,
    };
    Ok(match remove(call, &name, current).await? {
        Outcome::Done(_) => Outcome::Done(Stored::new(last, current.revision)),
        Outcome::Lost => Outcome::Lost,
    })
}

/// Removes an object if it has not changed since it was read.
pub(crate) async fn remove(call: &Call, name: &str, current: &Stored) -> Result<Outcome, Refusal> {
    if call.options.is_dry_run() {
        return Ok(Outcome::Done(current.clone()));
    }
    let turn = resource_quota::turn(call).await?;
    let counted =
        (service_allocation::is_service(call) || turn.is_limited()).then(|| current.value()).transpose()?;
    for _ in 0..CHOICES {
        let charge = Box::pin(turn.charge(counted.as_ref(), None)).await?;
        let mut batch = Batch::new().delete_at(call.key(name), current.revision);
        if let Some(service) = counted.as_ref().filter(|_| service_allocation::is_service(call)) {
            batch = service_allocation::claims_of(service)
                .into_iter()
                .fold(batch, |batch, claim| batch.delete(claim));
        }
        match call.inner.writer.0.commit(charge.add_to(batch)).await {
            Ok(revision) => {
                call.note_commit(name, Some(current), None);
                return Ok(Outcome::Done(Stored::new(current.json.clone(), revision)));
            }
            Err(store::Error::Conflict(conflict)) if charge.is_about(&conflict.key) => {}
            Err(store::Error::Conflict(_)) => return Ok(Outcome::Lost),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Outcome::Lost)
}

async fn put(
    call: &Call,
    checked: Checked,
    current: Option<&Stored>,
    write: impl Fn(Batch, Bytes) -> Batch,
) -> Result<Outcome, Refusal> {
    let mut object = checked.into_object();
    let requested = service_allocation::is_service(call).then(|| object.clone());
    let old = current.filter(|_| requested.is_some()).map(Stored::value).transpose()?;
    for round in 0..CHOICES {
        let mut chosen = BTreeSet::new();
        if let Some(requested) = &requested {
            Filled { service: object, chosen } =
                service_allocation::fill(call, requested.clone(), old.as_ref(), round)?;
        }
        // Before the quota lock: a conversion webhook may be slow.
        let json = encode(call, &mut object).await?;
        let turn = resource_quota::turn(call).await?;
        let before = current.filter(|_| turn.is_limited()).map(Stored::value).transpose()?;
        let charge = Box::pin(turn.charge(before.as_ref(), Some(&object))).await?;
        if call.options.is_dry_run() {
            if requested.is_some() {
                Box::pin(service_allocation::check_free(call, &object, old.as_ref())).await?;
            }
            return Ok(Outcome::Done(Stored::new(
                json,
                current.map_or(Revision(0), |current| current.revision),
            )));
        }
        let mut batch = write(Batch::new(), json.clone());
        if requested.is_some() {
            batch = claim(batch, &object, old.as_ref());
        }
        match call.inner.writer.0.commit(charge.add_to(batch)).await {
            Ok(revision) => {
                let stored = Stored::new(json, revision);
                call.note_commit(object::name(&object), current, Some(&stored));
                return Ok(Outcome::Done(stored));
            }
            Err(store::Error::Conflict(conflict)) if charge.is_about(&conflict.key) => {}
            Err(store::Error::Conflict(conflict)) if conflict.index == 0 => return Ok(Outcome::Lost),
            Err(store::Error::Conflict(conflict)) => {
                let key = String::from_utf8_lossy(&conflict.key).into_owned();
                if !chosen.contains(&key) {
                    return Err(service_allocation::taken(call, &object, &key));
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(match requested.is_some() {
        true => Refusal::internal_error(
            "failed to allocate a service address or port: the range is (almost) full",
        ),
        false => Refusal::modified(&GroupResource::new("", "resourcequotas"), object::name(&object)),
    })
}

/// Creates keys for addresses and ports that are new, and deletes those that the service no longer has.
fn claim(batch: Batch, service: &Value, old: Option<&Value>) -> Batch {
    let (has, had) =
        (service_allocation::claims_of(service), old.map(service_allocation::claims_of).unwrap_or_default());
    let batch = has.difference(&had).fold(batch, |batch, claim| batch.create(claim.clone(), ""));
    had.difference(&has).fold(batch, |batch, claim| batch.delete(claim.clone()))
}

/// The bytes to store. Takes fields that are not stored out of `object`.
pub(crate) async fn encode(call: &Call, object: &mut Value) -> Result<Bytes, Refusal> {
    if call.served.is_kept_in_its_version() {
        check_depth(object)?;
        return Ok(at_rest(&call.served, object));
    }
    let converted = Box::pin(convert::as_stored(&call.inner, &call.served, object.clone()));
    let mut converted = converted.await?;
    check_depth(&converted)?;
    Ok(at_rest(&call.served, &mut converted))
}

/// The last check before the store: patches, defaults, webhooks, policies and conversions can nest an
/// object deeper than the decoder reads back.
fn check_depth(object: &Value) -> Result<(), Refusal> {
    match depth(object) > MAX_DEPTH {
        true => {
            Err(Refusal::bad_request(format!("exceeded max depth: objects nest at most {MAX_DEPTH} levels")))
        }
        false => Ok(()),
    }
}
