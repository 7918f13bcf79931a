//! Server-side apply: merges the fields that a client wants to own into the object.

use crate::{
    answer::{self, Body},
    call::Call,
    refusal::Refusal,
    stored::Stored,
    write::{self, Change, Changed, Checked, CreateRight, DraftState, Next, scale},
};
use api::object;
use http::{Response, StatusCode};
use kinds::resources::Resource;
use schema::{
    decode::FieldValidation,
    depth::{MAX_OWNED_DEPTH, depth},
    managed_fields::{self, Applied},
    patch,
    yaml::{self, FromYaml},
};
use serde_json::Value;

pub(super) async fn apply(call: &Call, body: &[u8]) -> Result<Response<Body>, Refusal> {
    // Kubernetes: an apply to a subresource of a missing object gets 404, even if its body cannot be parsed.
    let config = read(body);
    if call.target.subresource == "scale" {
        let config = config?;
        config.report_duplicates(call)?;
        return scale::update(call, scale::ScaleChange::Apply(&config.value)).await;
    }
    let changed = write::change(call, &mut Apply { config }).await?;
    let code = match changed {
        Changed::Created(_) => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    answer::object(call, code, &changed.stored(call)?).await
}

/// The applied configuration.
struct AppliedConfig {
    value: Value,
    /// Duplicate fields, as text.
    duplicates: Option<String>,
}

impl AppliedConfig {
    /// Kubernetes: duplicate fields are reported after the merge.
    fn report_duplicates(&self, call: &Call) -> Result<(), Refusal> {
        match (&self.duplicates, call.options.validation) {
            (Some(duplicates), FieldValidation::Strict) => Err(Refusal::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: {duplicates}"
            ))),
            (Some(duplicates), FieldValidation::Warn) => {
                yaml::lines(duplicates).into_iter().for_each(|warning| call.warn(warning));
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Parses the body. The merge checks it against the type.
fn read(body: &[u8]) -> Result<AppliedConfig, Refusal> {
    let bad = |problem: String| Refusal::bad_request(format!("error decoding YAML: {problem}"));
    let FromYaml { json, duplicates } =
        yaml::to_json(body).map_err(|error| bad(format!("error converting YAML to JSON: {error}")))?;
    let value = schema::decode::decode_json(&json, FieldValidation::Ignore);
    let value = value.map_err(|error| bad(error.to_string()))?.value;
    if !(value.is_object() || value.is_null()) {
        let sort = schema::decode::decode_any(&json, FieldValidation::Ignore).err();
        let sort = sort.map(|error| error.to_string()).unwrap_or_default();
        return Err(bad(format!("error unmarshaling JSON: while decoding JSON: {sort}")));
    }
    // Field owners nest deeper than the fields they own.
    if depth(&value) > MAX_OWNED_DEPTH {
        return Err(bad("exceeded max depth".to_owned()));
    }
    Ok(AppliedConfig { value, duplicates })
}

struct Apply {
    config: Result<AppliedConfig, Refusal>,
}

impl Apply {
    fn config(&self) -> Result<&AppliedConfig, Refusal> {
        self.config.as_ref().map_err(Clone::clone)
    }
}

impl Change for Apply {
    async fn next(&mut self, call: &Call, stored: &Stored, live: Value) -> Result<Next, Refusal> {
        let mut draft = merge(call, Some(&live), self.config()?).await?;
        write::check_target(call, &mut draft)?;
        let convertible = drop_malformed_metadata(call, Some(&live), &mut draft);
        write::check_version(call, &live, &draft, write::MissingVersion::AsStrategyAllows)?;
        let next = write::prepare_next(call, (stored, &live), draft, DraftState::DefaultedAndOwned).await?;
        convertible?;
        Ok(next.map_or(Next::Keep, Next::Write))
    }

    async fn absent(&mut self, call: &Call) -> Result<Option<Checked>, Refusal> {
        let name = &call.target.name;
        if !call.target.subresource.is_empty() {
            return Err(call.not_found(name));
        }
        let mut draft = merge(call, None, self.config()?).await?;
        let uid = object::uid(&draft);
        if !uid.is_empty() {
            let cause = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(Refusal::conflict(&call.resource(), name, cause));
        }
        write::check_target(call, &mut draft)?;
        let convertible = drop_malformed_metadata(call, None, &mut draft);
        let readable_version = write::seen_version(&draft);
        let draft = write::admit_new(call, draft, DraftState::DefaultedAndOwned).await?;
        // Kubernetes: it is read after mutating admission.
        readable_version?;
        let checked = write::prepare_new(call, draft, CreateRight::NotYetChecked).await?;
        convertible?;
        Ok(Some(checked))
    }
}

async fn merge(call: &Call, live: Option<&Value>, config: &AppliedConfig) -> Result<Value, Refusal> {
    let (manager, now) = (call.manager(), write::now(call).to_string());
    let merged = write::with_target(call, |target| {
        managed_fields::apply(
            target,
            live,
            &config.value,
            &manager,
            call.options.force.unwrap_or(false),
            &now,
        )
    });
    let merged = merged.await??;
    // Kubernetes: an apply that changes nothing answers with the object as read, without new defaults.
    let is_changed = matches!(merged, Applied::Changed(_));
    let mut merged = decode(call, merged.into_value(), &config.value)?;
    if is_changed {
        call.served.default(&mut merged);
    }
    config.report_duplicates(call)?;
    Ok(merged)
}

/// Decodes the merged object by its type.
fn decode(call: &Call, mut merged: Value, config: &Value) -> Result<Value, Refusal> {
    // Kubernetes: a custom object is not decoded again. A field that lost all members but not its owner is
    // null, which only some schemas allow.
    if call.served.custom().is_some() {
        return Ok(merged);
    }
    let (types, of) = (call.served.types(), call.served.of());
    let converted = patch::strategic::convert(types, of, &mut merged);
    converted.map_err(|problem| unconverted(call, config, &problem))?;
    let json = serde_json::to_vec(&merged).map_err(Refusal::internal_error)?;
    let decoded = schema::decode::decode(types, of, &json, FieldValidation::Ignore);
    Ok(decoded.map_err(|error| unconverted(call, config, &error.to_string()))?.value)
}

/// Takes timestamps that cannot be parsed out of the metadata of a custom object.
///
/// The error is for after admission and validation: Kubernetes converts the object to the storage version
/// last, and that fails.
fn drop_malformed_metadata(call: &Call, live: Option<&Value>, draft: &mut Value) -> Result<(), Refusal> {
    if call.served.custom().is_none() {
        return Ok(());
    }
    // An apply to the status takes its metadata from the stored object.
    let is_converted = call.target.subresource.is_empty()
        && call.served.stored.as_ref().is_none_or(|at| at.version != call.served.resource.version);
    let mut convertible = Ok(());
    if is_converted {
        let mut converted = draft.clone();
        // The server sets creationTimestamp.
        object::set_creation_timestamp(&mut converted, None);
        // And it keeps a deletionTimestamp that it has set.
        if let Some(deleted) = live.and_then(object::deletion_timestamp) {
            object::set_deletion_timestamp(&mut converted, Some(deleted));
        }
        convertible = schema::structural::check_metadata(&converted)
            .map_err(|error| Refusal::unclassified(error.to_string()));
    }
    schema::structural::drop_malformed_metadata(draft);
    convertible
}

/// Kubernetes: a value that fits the schema but not the Go type is found late, and answered as an internal
/// error.
fn unconverted(call: &Call, config: &Value, problem: &str) -> Refusal {
    let (namespace, name) = (object::namespace(config), object::name(config));
    let Resource { group, version, kind, .. } = &call.served.resource;
    let kind = format!("{group}/{version}, Kind={kind}");
    Refusal::unclassified(format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: unable to convert unstructured \
         object to {kind}: {problem}"
    ))
}
