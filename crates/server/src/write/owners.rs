//! Who owns which field after a write.

use crate::{call::Call, convert, refusal::Refusal, served::Kind};
use api::object;
pub(super) use schema::managed_fields::keep_times;
use schema::{
    managed_fields::{self, Target, Unconvertible},
    types::{TypeId, Types},
};
use serde_json::Value;
use std::cell::RefCell;

/// Versions that one object's owners can have written it in, at most; more are taken for versions that are gone.
const MAX_CONVERSIONS: usize = 32;

/// What the write replaces.
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
        // Nobody has to be asked for another version.
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

/// Hands on what the record of owners needs to know about the resource.
///
/// `act` is pure and may ask for objects in other versions, which can take a webhook: what it asked for in vain is
/// made ready, and it is asked again.
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

/// Runs `act` on what is ready; answers with what else it wanted, too.
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

/// An object in another version, made ready.
struct Conversion {
    from: Value,
    to: String,
    made: Value,
}

/// An object that is wanted, in the version that it is wanted in.
type Missing = RefCell<Option<(Value, String)>>;

fn in_version<'a>(
    call: &'a Call,
    ready: &[Conversion],
    missing: &Missing,
    object: &Value,
    to: &str,
) -> Result<(Value, &'a Types, TypeId), Unconvertible> {
    let (group, version) = to.rsplit_once('/').unwrap_or(("", to));
    let resource = &call.served.resource;
    match &call.served.kind {
        Kind::BuiltIn { types, .. } => {
            let (of, _) = types.kind(group, version, &resource.kind).ok_or(Unconvertible::NoSuchVersion)?;
            // It may have been converted before; one that does not say its version has that of the request.
            let from = match object::api_version(object) {
                "" => (&*resource.group, &*resource.version),
                given => given.rsplit_once('/').unwrap_or(("", given)),
            };
            let mut made = kinds::convert::convert(object.clone(), from, (group, version), &resource.kind);
            // Kubernetes: a conversion goes through Go's types, which hold some members always.
            schema::encode::normalize(types, of, &mut made);
            Ok((made, types, of))
        }
        Kind::Custom(custom) => {
            let compiled = custom.compiled_as(version).filter(|_| group == resource.group);
            // Kubernetes: unlike a version of a built-in kind, one that a definition has dropped is not just skipped.
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
    // Kubernetes: as it is, so that what does not fit that version comes to light.
    let made = convert::retold(&call.inner, custom, vec![object], &to).await?;
    Ok(Conversion { from, to, made: made.into_iter().next().unwrap_or_default() })
}
