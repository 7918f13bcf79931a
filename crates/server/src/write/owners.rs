//! managedFields after a write.

use crate::{call::Call, convert, refusal::Refusal, served::Kind};
use api::object;
pub(super) use schema::managed_fields::keep_times;
use schema::{
    managed_fields::{self, Target, Unconvertible},
    types::{TypeId, Types},
};
use serde_json::Value;
use std::cell::RefCell;

/// Limit on the versions in managedFields of one object; others are treated as no longer served.
const MAX_CONVERSIONS: usize = 32;

/// The object before the write.
pub(crate) enum Previous<'a> {
    Nothing,
    Object(&'a Value),
}

/// Sets the managedFields of `draft`.
pub(super) async fn record(call: &Call, previous: Previous<'_>, draft: &mut Value) -> Result<(), Refusal> {
    let (manager, now) = (call.manager(), super::now(call).to_string());
    let act = |target: &Target<'_>, draft: &mut Value| match previous {
        Previous::Nothing => managed_fields::create(target, draft, &manager, &now),
        Previous::Object(live) => managed_fields::update(target, live, draft, &manager, &now),
    };
    let is_fresh = matches!(previous, Previous::Nothing) && draft["metadata"].get("managedFields").is_none();
    if is_fresh || call.served.custom().is_none() {
        // A create converts nothing.
        attempt(call, |target| act(target, draft), &[]);
        return Ok(());
    }
    let recorded = with_target(call, |target| {
        let mut draft = draft.clone();
        act(target, &mut draft);
        draft
    });
    *draft = Box::pin(recorded).await?;
    Ok(())
}

/// Runs `act` with the resource's types and conversions.
///
/// `act` is pure, and a conversion may need a webhook: it runs again after each conversion that it missed
/// is done.
pub(crate) async fn with_target<T>(call: &Call, act: impl Fn(&Target<'_>) -> T) -> Result<T, Refusal> {
    let mut ready: Vec<Conversion> = Vec::new();
    loop {
        match attempt(call, &act, &ready) {
            (_, Some((from, to))) if ready.len() < MAX_CONVERSIONS => {
                ready.push(prepare(call, from, to).await?);
            }
            (done, _) => return Ok(done),
        }
    }
}

/// Runs `act` with the conversions that are ready; also returns the one that it missed.
fn attempt<T>(
    call: &Call,
    act: impl FnOnce(&Target<'_>) -> T,
    ready: &[Conversion],
) -> (T, Option<(Value, String)>) {
    let served = &call.served;
    let (api_version, subresource) = (served.api_version(), call.target.subresource.as_str());
    let missing = RefCell::new(None);
    let done = act(&Target {
        types: served.types(),
        of: served.of(),
        version: &api_version,
        subresource,
        filters: &[(api_version.as_str(), served.strategy().reset_fields(subresource))],
        convert: &|object, to| in_version(call, ready, &missing, object, to),
    });
    (done, missing.into_inner())
}

/// An object converted to another version.
struct Conversion {
    from: Value,
    to: String,
    made: Value,
}

/// The object to convert, and the version to convert it to.
type MissingConversion = RefCell<Option<(Value, String)>>;

fn in_version<'a>(
    call: &'a Call,
    ready: &[Conversion],
    missing: &MissingConversion,
    object: &Value,
    to: &str,
) -> Result<(Value, &'a Types, TypeId), Unconvertible> {
    let (group, version) = to.rsplit_once('/').unwrap_or(("", to));
    let resource = &call.served.resource;
    match &call.served.kind {
        Kind::BuiltIn { types, .. } => {
            let (of, _) = types.kind(group, version, &resource.kind).ok_or(Unconvertible::NoSuchVersion)?;
            // It may have been converted before. Without an apiVersion it has the version of the request.
            let from = match object::api_version(object) {
                "" => (&*resource.group, &*resource.version),
                given => given.rsplit_once('/').unwrap_or(("", given)),
            };
            let mut made = kinds::convert::convert(object.clone(), from, (group, version), &resource.kind);
            // Kubernetes: a conversion goes through Go types, which always set some fields.
            schema::encode::normalize(types, of, &mut made);
            Ok((made, types, of))
        }
        Kind::Custom(custom) => {
            let compiled = custom.compiled_as(version).filter(|_| group == resource.group);
            // Kubernetes: a version that a definition no longer has is an error; that of a built-in kind is
            // skipped.
            let compiled = compiled.ok_or_else(|| {
                Unconvertible::Failed(format!("request to convert CR to an invalid group/version: {to}"))
            })?;
            let (types, of) = (compiled.types(), compiled.of());
            match ready.iter().find(|it| it.to == version && it.from == *object) {
                Some(found) => Ok((found.made.clone(), types, of)),
                None => {
                    missing.borrow_mut().get_or_insert_with(|| (object.clone(), version.to_owned()));
                    Ok((object.clone(), types, of))
                }
            }
        }
    }
}

async fn prepare(call: &Call, from: Value, to: String) -> Result<Conversion, Refusal> {
    let Some(custom) = call.served.custom() else { return Ok(Conversion { made: from.clone(), from, to }) };
    let mut object = from.clone();
    if object::api_version(&object).is_empty() {
        object::set_api_version(&mut object, &call.served.api_version());
    }
    // Kubernetes: not pruned, so that fields unknown to that version are reported.
    let made = convert::convert_without_pruning(&call.inner, custom, vec![object], &to).await?;
    Ok(Conversion { from, to, made: made.into_iter().next().unwrap_or_default() })
}
