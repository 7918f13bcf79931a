//! What can be done with a resource, one file for each verb.

mod apply;
mod bind;
pub(crate) mod connect;
pub(crate) mod create;
pub(crate) mod delete;
mod evict;
pub(crate) mod read;
mod review;
mod token;
pub(crate) mod update;
pub(crate) mod watch;

pub(crate) use apply::applied;

use crate::{
    Inner, RequestContext,
    audit::Trail,
    authorize::Permit,
    input::{self, patch},
    negotiate::{self, Form},
    request::{Options, Place, Target, Verb},
    served::Served,
};
use api::{
    field::{Error, ErrorList, Path},
    go,
    kind::{GroupKind, GroupResource},
    name::NameRule,
    status::Status,
    time::Time,
};
use bytes::Bytes;
use http::{HeaderMap, header};
use schema::{managed_fields::validate_manager, types::Types};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Warnings of one answer; each is a header.
const MAX_WARNINGS: usize = 64;

/// A request that may be carried out.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) inner: Arc<Inner>,
    pub(crate) permit: Permit,
    pub(crate) target: Target,
    pub(crate) served: Arc<Served>,
    pub(crate) options: Options,
    pub(crate) headers: HeaderMap,
    pub(crate) form: Form,
    notes: Arc<CallNotes>,
    /// The time that what it writes bears, where that is not now.
    pub(crate) time: Option<Time>,
    /// Where it leaves notes for auditors.
    pub(crate) trail: Trail,
}

/// What comes of a call beside its answer.
#[derive(Debug, Default)]
struct CallNotes {
    /// What the caller should hear, from wherever it comes up.
    warnings: Mutex<Vec<String>>,
    /// What the object is called that was created; its name may have been generated.
    made: OnceLock<String>,
}

impl Call {
    /// Finds out whether what is served knows the verb.
    pub(crate) fn new(
        inner: &Arc<Inner>,
        permit: Permit,
        verb: Verb,
        served: Arc<Served>,
        context: Box<RequestContext>,
    ) -> Result<Call, Refused> {
        let RequestContext { head, place, options, .. } = *context;
        let Place::Resource(mut target) = place else { return Err(Refused::ByRouter(not_served())) };
        if served.custom().is_none() {
            let routed = check_built_in(verb, &served, &target);
            let routed = routed.and_then(|()| check_media_types(verb, &head.headers));
            routed.map_err(Refused::ByRouter)?;
        }
        let form = check(verb, &served, &mut target, &head.headers, &options).map_err(Refused::ByHandler)?;
        let trail = Trail::of(&head).clone();
        Ok(Call {
            inner: Arc::clone(inner),
            permit,
            target,
            served,
            options,
            headers: head.headers,
            form,
            notes: Arc::default(),
            time: None,
            trail,
        })
    }

    /// What the server does of its own accord.
    pub(crate) fn by_server(
        inner: &Arc<Inner>,
        permit: Permit,
        served: &Arc<Served>,
        target: Target,
        options: Options,
    ) -> Call {
        Call {
            inner: Arc::clone(inner),
            permit,
            target,
            served: Arc::clone(served),
            options,
            headers: HeaderMap::new(),
            form: Form::default(),
            notes: Arc::default(),
            time: None,
            trail: Trail::default(),
        }
    }

    /// The same request once more, for a part that changes some of it.
    pub(crate) fn again(&self) -> Call {
        Call {
            inner: Arc::clone(&self.inner),
            permit: self.permit.again(),
            target: self.target.clone(),
            served: Arc::clone(&self.served),
            options: self.options.clone(),
            headers: self.headers.clone(),
            form: self.form,
            notes: Arc::clone(&self.notes),
            time: self.time,
            trail: self.trail.clone(),
        }
    }

    /// Reads the body, and notes what was sent.
    pub(crate) async fn take<B>(&self, body: B) -> Result<Bytes, Status>
    where
        B: http_body::Body,
        B::Error: std::error::Error + Send + Sync + 'static,
    {
        let bytes = input::read(body).await?;
        self.trail.sent(&bytes, input::media_type(&self.headers));
        Ok(bytes)
    }

    /// The table of the built-in types.
    pub(crate) fn types(&self) -> &'static Types {
        self.inner.registry.types
    }

    pub(crate) fn resource(&self) -> GroupResource {
        self.served.group_resource()
    }

    pub(crate) fn key(&self, name: &str) -> Bytes {
        self.served.key(&self.target.namespace, name).into()
    }

    /// Who writes, for the record of field owners.
    pub(crate) fn manager(&self) -> String {
        let agent = self.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        schema::managed_fields::manager_of(&self.options.field_manager, agent.unwrap_or_default())
    }

    /// Tells the caller something beside the answer. Of too many, the first are told.
    pub(crate) fn warn(&self, text: impl Into<String>) {
        let (text, mut warnings) =
            (text.into(), self.notes.warnings.lock().unwrap_or_else(PoisonError::into_inner));
        if warnings.len() < MAX_WARNINGS && !text.is_empty() && !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.notes.warnings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the object is called that the call has created, once it has.
    pub(crate) fn made(&self) -> &OnceLock<String> {
        &self.notes.made
    }

    /// The name of the object: the generated one where the call has created it, otherwise the one in the path.
    pub(crate) fn name(&self) -> &str {
        self.made().get().unwrap_or(&self.target.name)
    }

    pub(crate) fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.resource(), name)
    }
}

/// Kubernetes: warnings go with what a handler says, not with what the router in front of it says.
pub(crate) enum Refused {
    ByRouter(Status),
    ByHandler(Status),
}

/// What the router of built-in resources looks at beside the path.
fn check_media_types(verb: Verb, headers: &HeaderMap) -> Result<(), Status> {
    if verb == Verb::Patch && !patch::PATCH_TYPES.contains(&input::media_type(headers)) {
        return Err(bare(415, "415: Unsupported Media Type"));
    }
    negotiate::check_route(headers, verb)
}

/// What every handler looks at before it reads the body, in the order of the real server. Answers with the form that
/// the caller wants.
fn check(
    verb: Verb,
    served: &Served,
    target: &mut Target,
    headers: &HeaderMap,
    options: &Options,
) -> Result<Form, Status> {
    let media_type = input::media_type(headers);
    let is_custom = served.custom().is_some();
    if is_custom {
        check_custom(verb, served, target)?;
    }
    if verb == Verb::Patch && is_custom && !patch::CUSTOM_PATCH_TYPES.contains(&media_type) {
        return Err(Status::unsupported_media_type(&patch::CUSTOM_PATCH_TYPES));
    }
    check_name(&target.name)?;
    let form = match is_custom {
        true => Form::of_custom(headers)?,
        false => Form::of_built_in(headers, served.has_table(&target.subresource))?,
    };
    // Kubernetes: an update looks at it after its options.
    if verb == Verb::Create && !connect::is_meant(served, target) {
        input::encoding_for(served, media_type)?;
    }
    check_options(verb, options, media_type)?;
    Ok(form)
}

/// Whether a built-in resource has the verb at this place: its router knows.
fn check_built_in(verb: Verb, served: &Served, target: &Target) -> Result<(), Status> {
    let verbs = match (target.subresource.as_str(), served.subresource(&target.subresource)) {
        ("", _) => &served.resource.verbs,
        (_, Some(subresource)) => &subresource.verbs,
        (_, None) => return Err(not_served()),
    };
    if !is_routed(served, target) {
        return Err(not_served());
    }
    let needs_name = matches!(verb, Verb::Update | Verb::Patch) && target.name.is_empty();
    let is_everywhere = served.is_namespaced() && target.namespace.is_empty();
    let wrong_place = match verb {
        Verb::Create => target.subresource.is_empty() && (!target.name.is_empty() || is_everywhere),
        Verb::DeleteCollection => is_everywhere,
        _ => false,
    };
    let is_known = verbs.iter().any(|known| known == verb.text());
    match is_known && !wrong_place && !needs_name {
        true => Ok(()),
        false => Err(method_not_allowed()),
    }
}

/// Whether anything can be done at a path that names a built-in resource.
fn is_routed(served: &Served, target: &Target) -> bool {
    let is_everywhere = served.is_namespaced() && target.namespace.is_empty();
    if is_everywhere && !target.name.is_empty() {
        return false;
    }
    let wanted: &[&str] = match (target.old_watch, target.name.is_empty()) {
        _ if !target.subresource.is_empty() => return true,
        (true, _) => &["watch"],
        (false, true) if is_everywhere => &["list"],
        (false, true) => &["list", "create", "deletecollection"],
        (false, false) => &["get", "update", "patch", "delete"],
    };
    served.resource.verbs.iter().any(|verb| wanted.contains(&&**verb))
}

/// The same of a custom resource, all of which one handler answers, in other words.
// Kubernetes: so a create does not care for a name in its path.
fn check_custom(verb: Verb, served: &Served, target: &mut Target) -> Result<(), Status> {
    if target.subresource.is_empty() {
        if verb == Verb::Create {
            target.name.clear();
        }
        // Discovery leaves out what a definition that is going refuses later.
        return match matches!(verb, Verb::Update | Verb::Patch) && target.name.is_empty() {
            true => Err(Status::bad_request("name must be provided")),
            false => Ok(()),
        };
    }
    let Some(subresource) = served.subresource(&target.subresource) else {
        return Err(Status::not_found(&served.group_resource(), &target.name));
    };
    match subresource.verbs.iter().any(|known| known == verb.text()) {
        true => Ok(()),
        false => Err(Status::method_not_supported(&served.group_resource(), verb.text())),
    }
}

/// Kubernetes: what the key of an object can hold.
fn check_name(name: &str) -> Result<(), Status> {
    let problems = NameRule::PathSegment.problems(name);
    if name.is_empty() || problems.is_empty() {
        return Ok(());
    }
    let (name, problems) = (go::quote(name), problems.join(";"));
    Err(Status::bad_request(format!("Name parameter invalid: {name}: {problems}")))
}

/// Whether the options of a write are some.
fn check_options(verb: Verb, options: &Options, media_type: &str) -> Result<(), Status> {
    let kind = match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // Those of a delete are read with its body.
        Verb::Get | Verb::List | Verb::Watch | Verb::Delete | Verb::DeleteCollection => return Ok(()),
    };
    let mut errors = ErrorList::new();
    if verb == Verb::Patch && media_type != patch::APPLY && options.force.is_some() {
        errors.push(Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch"));
    }
    if verb == Verb::Patch && media_type == patch::APPLY && options.field_manager.is_empty() {
        errors.push(Error::required(&Path::new("fieldManager"), "is required for apply patch"));
    }
    errors.extend(validate_manager(&options.field_manager, &Path::new("fieldManager")));
    if options.dry_run.iter().any(|asked| asked != "All") {
        let asked = serde_json::json!(options.dry_run);
        errors.push(Error::not_supported(&Path::new("dryRun"), &asked, ["All"]));
    }
    if let Some(asked) = options.bad_validation.as_deref() {
        let choices = ["", "Ignore", "Strict", "Warn"];
        errors.push(Error::not_supported(&Path::new("fieldValidation"), asked, choices));
    }
    bad_options(kind, errors)
}

/// An answer of the router, which knows no more than the code.
pub(crate) fn bare(code: u16, message: &str) -> Status {
    let mut status = Status::generic(code, "", &GroupResource::none(), "", "");
    status.message = message.to_owned();
    status.details = Some(Box::default());
    status
}

/// Nothing is served at this path.
pub(crate) fn not_served() -> Status {
    bare(404, "the server could not find the requested resource")
}

pub(crate) fn method_not_allowed() -> Status {
    bare(405, "the server does not allow this method on the requested resource")
}

/// The method means nothing here. Kubernetes: the handler of custom resources names the verb, and there is none.
pub(crate) fn no_verb(served: &Served, target: &Target) -> Status {
    let is_known = target.subresource.is_empty() || served.subresource(&target.subresource).is_some();
    match served.custom() {
        Some(_) if !is_known => Status::not_found(&served.group_resource(), &target.name),
        Some(_) => Status::method_not_supported(&served.group_resource(), ""),
        None if !is_known || !is_routed(served, target) => not_served(),
        None => method_not_allowed(),
    }
}

/// What options of a request do not go together.
pub(crate) fn bad_options(kind: &str, errors: ErrorList) -> Result<(), Status> {
    errors.into_result().map_err(|errors| Status::invalid(&GroupKind::new("meta.k8s.io", kind), "", &errors))
}

/// A failure of the store, in words for callers.
pub(crate) fn store_failed(error: &store::Error) -> Status {
    use store::Error::{Broken, Corrupt, Full, InUse, Io, QuotaExceeded};
    if matches!(error, Full { .. } | Broken(_) | Corrupt(_) | InUse { .. } | Io { .. } | QuotaExceeded { .. })
    {
        tracing::error!(error = error as &dyn std::error::Error, "the store refuses a request");
    }
    match error {
        store::Error::Unavailable(problem) => Status::service_unavailable(problem.clone()),
        store::Error::OutcomeUnknown(_) => Status::timeout("etcdserver: request timed out", 0),
        store::Error::TooLarge { .. } => Status::request_entity_too_large("etcdserver: request is too large"),
        // Kubernetes: etcd's own words, with no reason.
        store::Error::QuotaExceeded { .. } => {
            Status::unclassified("etcdserver: mvcc: database space exceeded")
        }
        // These name files of this machine, which are no business of callers.
        store::Error::Full { .. } => Status::internal_error("the store has no room to write"),
        store::Error::Broken(_)
        | store::Error::Corrupt(_)
        | store::Error::InUse { .. }
        | store::Error::Io { .. } => Status::internal_error("the store cannot write"),
        other => Status::internal_error(other),
    }
}
