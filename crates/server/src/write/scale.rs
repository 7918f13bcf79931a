//! `scale`: spec.replicas of any kind that has it, read and written as a Scale.

use super::{DraftState, Next, check_target, now, prepare_next};
use crate::{
    answer::{self, Body},
    call::Call,
    convert::in_request_version,
    input::{
        Encoding, ExpectedKind,
        patch::{Patch, Patched},
    },
    refusal::Refusal,
    scale_view::ScaleFields,
    stored::Stored,
    write::check_uid,
};
use api::{
    kind::{GroupKind, GroupResource},
    object,
};
use http::Response;
use schema::{
    decode::{Decoded, FieldValidation},
    encode,
    field_set::Path,
    managed_fields::{self, Owners, Target, Unconvertible, scale},
};
use serde_json::Value;

const VERSION: &str = "autoscaling/v1";

/// Kubernetes: stands for unset replicas, which a write must set.
const UNSET_REPLICAS: i64 = i32::MIN as i64;

/// The client's change to a scale.
pub(crate) enum ScaleChange<'a> {
    Replace(&'a Decoded),
    Patch(&'a Patch),
    Apply(&'a Value),
}

pub(crate) fn wanted() -> ExpectedKind<'static> {
    let types = kinds::types();
    let (of, _) = types.kind("autoscaling", "v1", "Scale").expect("a Scale is a built-in kind");
    ExpectedKind { types, of, group: "autoscaling", version: "v1", kind: "Scale" }
}

/// The scale of a stored object.
pub(crate) async fn of(call: &Call, stored: &Stored) -> Result<Value, Refusal> {
    let object = in_request_version(call, stored).await?;
    let fields = ScaleFields::of(&call.served).ok_or_else(Refusal::not_served)?;
    if fields.replicas(&object).is_none() && call.served.custom().is_some() {
        let path = api::go::quote(&dotted(&fields));
        return Err(Refusal::internal_error(format!("the spec replicas field {path} does not exist")));
    }
    Ok(fields.scale(&object))
}

/// Applies the change to the current scale, and stores its replicas in the object.
pub(crate) async fn update(call: &Call, change: ScaleChange<'_>) -> Result<Response<Body>, Refusal> {
    let mut scaling = Scaling { change, is_unconditional: true };
    let stored = super::change(call, &mut scaling).await?.stored(call)?;
    answer(call, &stored).await
}

struct Scaling<'a> {
    change: ScaleChange<'a>,
    is_unconditional: bool,
}

impl super::Change for Scaling<'_> {
    async fn next(&mut self, call: &Call, stored: &Stored, live: Value) -> Result<Next, Refusal> {
        let (mut draft, seen_version, warnings) = next(call, &live, &self.change)?;
        self.is_unconditional = seen_version.is_empty() || !matches!(self.change, ScaleChange::Replace(_));
        call.served.default(&mut draft);
        warnings.into_iter().for_each(|warning| call.warn(warning));
        let next = prepare_next(call, (stored, &live), draft, DraftState::DefaultedAndOwned).await?;
        Ok(next.map_or(Next::Keep, Next::Write))
    }

    fn is_unconditional(&self) -> bool {
        self.is_unconditional
    }
}

/// The next state of the object, the resourceVersion that the client sent, and warnings.
fn next(
    call: &Call,
    live: &Value,
    change: &ScaleChange<'_>,
) -> Result<(Value, String, Vec<String>), Refusal> {
    let name = call.target.name.as_str();
    let fields = ScaleFields::of(&call.served).ok_or_else(Refusal::not_served)?;
    let wanted = wanted();
    let version = call.served.api_version();
    let replicas = [(version.as_str(), Some(Path::of_fields(fields.replicas_path())))];
    let owners = Owners::decode(live["metadata"].get("managedFields")).unwrap_or_default();

    let mut before = fields.scale(live);
    if fields.replicas(live).is_none() {
        before["spec"]["replicas"] = UNSET_REPLICAS.into();
    }
    set_owners(&mut before, &scale::to_scale(&owners, &replicas));
    encode::normalize(wanted.types, wanted.of, &mut before);
    let Decoded { value: after, warnings } = changed(call, &before, change)?;
    if let ScaleChange::Replace(_) = change {
        check_uid(call, object::uid(&after), object::uid(live))?;
    }

    check(call, live, &fields, &after)?;
    let seen_version = object::resource_version(&after).to_owned();
    if !seen_version.is_empty() && seen_version != object::resource_version(live) {
        return Err(Refusal::modified(&call.resource(), name));
    }
    let scalers = Owners::decode(after["metadata"].get("managedFields")).unwrap_or_default();
    let mut draft = live.clone();
    fields.set_replicas(&mut draft, after["spec"]["replicas"].as_i64().unwrap_or(0));
    set_owners(&mut draft, &scale::to_object(&owners, &scalers, &replicas, &version));
    Ok((draft, seen_version, warnings))
}

/// The scale after the change, with its managedFields.
fn changed(call: &Call, before: &Value, change: &ScaleChange<'_>) -> Result<Decoded, Refusal> {
    let wanted = wanted();
    let target = Target {
        types: wanted.types,
        of: wanted.of,
        version: VERSION,
        subresource: "scale",
        filters: &[],
        convert: &|_, _| Err(Unconvertible::NoSuchVersion),
    };
    let (manager, now) = (call.manager(), now(call).to_string());
    let decode = |json: &[u8], validation| wanted.decode(json, Encoding::Json, validation);
    let mut after = match change {
        ScaleChange::Replace(decoded) => (*decoded).clone(),
        ScaleChange::Patch(patch) => {
            let json = encode::encode(wanted.types, wanted.of, before);
            patch.apply(&Patched { json: &json, of: Some((wanted.types, wanted.of)), decode })?
        }
        ScaleChange::Apply(config) => {
            let force = call.options.force.unwrap_or(false);
            let merged =
                managed_fields::apply(&target, Some(before), config, &manager, force, &now)?.into_value();
            decode(&encode::encode_any(&merged), FieldValidation::Ignore)?
        }
    };
    check_target(call, &mut after.value)?;
    if !matches!(change, ScaleChange::Apply(_)) {
        encode::normalize(wanted.types, wanted.of, &mut after.value);
        managed_fields::update(&target, before, &mut after.value, &manager, &now);
    }
    Ok(after)
}

fn check(call: &Call, live: &Value, fields: &ScaleFields, scale: &Value) -> Result<(), Refusal> {
    let name = call.target.name.as_str();
    if scale["spec"]["replicas"].as_i64() == Some(UNSET_REPLICAS) {
        let path = api::go::quote(&dotted(fields));
        return Err(Refusal::bad_request(format!("the spec replicas field {path} cannot be empty")));
    }
    let errors = match call.served.custom() {
        // Kubernetes: errors are found by validation of the object.
        Some(_) => api::field::ErrorList::new(),
        None => kinds::validate::create("autoscaling", "v1", "Scale", scale),
    };
    let kind = GroupKind::new("autoscaling", "Scale");
    errors.into_result().map_err(|errors| Refusal::invalid(&kind, name, &errors))?;
    let (wanted, found) = (object::uid(scale), object::uid(live));
    if !wanted.is_empty() && wanted != found {
        let resource = &call.served.resource;
        let resource = GroupResource::new(&*resource.group, &*format!("{}/scale", resource.name));
        let cause =
            format!("Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}");
        return Err(Refusal::conflict(&resource, name, cause));
    }
    Ok(())
}

/// Kubernetes: the path of a definition is printed with its leading dot.
fn dotted(fields: &ScaleFields) -> String {
    fields.replicas_path().map(|name| format!(".{name}")).collect()
}

fn set_owners(object: &mut Value, owners: &Owners) {
    let metadata = object::metadata_mut(object);
    match owners.encode() {
        Some(entries) => drop(metadata.insert("managedFields".to_owned(), entries)),
        None => drop(metadata.remove("managedFields")),
    }
}

async fn answer(call: &Call, stored: &Stored) -> Result<Response<Body>, Refusal> {
    let scale = of(call, stored).await?;
    answer::scale(call, &scale)
}
