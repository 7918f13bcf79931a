//! One compare-and-set: a checked object in, a stored one out.

use super::{
    Checked,
    claims::{self, Filled},
};
use crate::{
    admission::resource_quota::{self, Charge},
    convert,
    stored::{Stored, at_rest},
    verbs::{Call, store_failed},
};
use api::{kind::GroupResource, object, status::Status};
use bytes::Bytes;
use serde_json::Value;
use std::collections::BTreeSet;
use store::{Batch, Revision};

/// How often other addresses are tried when the chosen ones are taken, and quotas asked again when they were charged
/// by others.
const CHOICES: u64 = 64;

/// How a conditional write ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done(Stored),
    /// Somebody else was faster.
    Lost,
}

/// Stores a new object. A dry run ends before that.
pub(crate) async fn create(call: &Call, checked: Checked) -> Result<Outcome, Status> {
    let name = object::name(checked.object()).to_owned();
    let key = call.key(&name);
    if call.options.dry_run.is_some() {
        let read = call.inner.store.get(key.clone(), None).await.map_err(|error| store_failed(&error))?;
        if read.entry.is_some() {
            return Ok(Outcome::Lost);
        }
    }
    let outcome = put(call, checked, None, |batch, json| batch.create(key.clone(), json)).await?;
    if matches!(outcome, Outcome::Done(_)) {
        drop(call.made.set(name));
    }
    Ok(outcome)
}

/// Replaces an object that is still as it was read.
pub(crate) async fn replace(call: &Call, checked: Checked, current: &Stored) -> Result<Outcome, Status> {
    let key = call.key(object::name(checked.object()));
    let revision = current.revision;
    put(call, checked, Some(current), |batch, json| batch.replace(key.clone(), json, revision)).await
}

/// Removes an object that is still as it was read.
pub(crate) async fn remove(call: &Call, name: &str, current: &Stored) -> Result<Outcome, Status> {
    if call.options.dry_run.is_some() {
        return Ok(Outcome::Done(current.clone()));
    }
    let turn = resource_quota::turn(call).await?;
    let counted = (claims::concern(call) || turn.is_some()).then(|| current.value());
    for _ in 0..CHOICES {
        let charge = match &turn {
            Some(turn) => turn.charge(counted.as_ref(), None).await?,
            None => Charge::default(),
        };
        let mut batch = Batch::new().delete_at(call.key(name), current.revision);
        if let Some(service) = counted.as_ref().filter(|_| claims::concern(call)) {
            batch = claims::of(service).into_iter().fold(batch, |batch, claim| batch.delete(claim));
        }
        match call.inner.store.commit(charge.add_to(batch)).await {
            Ok(revision) => return Ok(Outcome::Done(Stored::new(current.json.clone(), revision))),
            Err(store::Error::Conflict(conflict)) if charge.is_about(&conflict.key) => {}
            Err(store::Error::Conflict(_)) => return Ok(Outcome::Lost),
            Err(error) => return Err(store_failed(&error)),
        }
    }
    Ok(Outcome::Lost)
}

async fn put(
    call: &Call,
    checked: Checked,
    current: Option<&Stored>,
    write: impl Fn(Batch, Bytes) -> Batch,
) -> Result<Outcome, Status> {
    let object = checked.into_object();
    let old = current.filter(|_| claims::concern(call)).map(Stored::value);
    for round in 0..CHOICES {
        let Filled { service: object, chosen } = match claims::concern(call) {
            true => claims::fill(call, object.clone(), old.as_ref(), round)?,
            false => Filled { service: object.clone(), chosen: BTreeSet::new() },
        };
        // Before it is our turn: a conversion may ask somebody far away.
        let json = encode(call, object.clone()).await?;
        let turn = resource_quota::turn(call).await?;
        let charge = match &turn {
            Some(turn) => turn.charge(current.map(Stored::value).as_ref(), Some(&object)).await?,
            None => Charge::default(),
        };
        if call.options.dry_run.is_some() {
            return Ok(Outcome::Done(Stored::new(
                json,
                current.map_or(Revision(0), |current| current.revision),
            )));
        }
        let mut batch = write(Batch::new(), json.clone());
        if claims::concern(call) {
            batch = claim(batch, &object, old.as_ref());
        }
        match call.inner.store.commit(charge.add_to(batch)).await {
            Ok(revision) => return Ok(Outcome::Done(Stored::new(json, revision))),
            Err(store::Error::Conflict(conflict)) if charge.is_about(&conflict.key) => {}
            Err(store::Error::Conflict(conflict)) if conflict.index == 0 => return Ok(Outcome::Lost),
            Err(store::Error::Conflict(conflict)) => {
                let key = String::from_utf8_lossy(&conflict.key).into_owned();
                if !chosen.contains(&key) {
                    return Err(claims::taken(call, &object, &key));
                }
            }
            Err(error) => return Err(store_failed(&error)),
        }
    }
    Err(match claims::concern(call) {
        true => {
            Status::internal_error("failed to allocate a service address or port: the range is (almost) full")
        }
        false => Status::modified(&GroupResource::new("", "resourcequotas"), object::name(&object)),
    })
}

/// Takes what the service newly has, and gives back what it has no longer.
fn claim(batch: Batch, service: &Value, old: Option<&Value>) -> Batch {
    let (has, had) = (claims::of(service), old.map(claims::of).unwrap_or_default());
    let batch = has.difference(&had).fold(batch, |batch, claim| batch.create(claim.clone(), ""));
    had.difference(&has).fold(batch, |batch, claim| batch.delete(claim.clone()))
}

/// An object as it is kept.
pub(crate) async fn encode(call: &Call, object: Value) -> Result<Bytes, Status> {
    let object = convert::as_stored(&call.inner, &call.served, object).await?;
    Ok(at_rest(&call.served, object))
}
