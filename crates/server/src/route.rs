//! Checks a request against its path: verb, media types and options.

use crate::{
    input::{self, patch},
    negotiate::{self, Form},
    refusal::{self, Refusal},
    request::{Options, Target, Verb},
    served::Served,
};
use api::{
    field::{Error, ErrorList, Path},
    go,
    name::NameRule,
};
use http::{HeaderMap, Method};
use schema::managed_fields::validate_manager;

/// Whether a request is for the running thing behind an object (a node, a pod, endpoints of a service).
pub(crate) fn is_connect(served: &Served, target: &Target) -> bool {
    matches!(
        (&*served.resource.group, &*served.resource.name, target.subresource.as_str()),
        ("", "pods", "log" | "exec" | "attach" | "portforward" | "proxy")
            | ("", "services" | "nodes", "proxy")
    )
}

/// Whether a request is passed on to a pod or node as it is.
pub(crate) fn is_proxy(served: &Served, target: &Target, method: &Method) -> bool {
    is_connect(served, target) && target.subresource == "proxy" && PROXIED.contains(method)
}

/// Kubernetes: the methods of its proxies.
const PROXIED: [Method; 7] =
    [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::HEAD, Method::OPTIONS];

/// Kubernetes: rejections by a handler carry warnings, those by the router do not.
pub(crate) enum Unrouted {
    ByRouter(Refusal),
    ByHandler(Refusal),
}

/// Media types that the router of built-in resources checks.
fn check_media_types(verb: Verb, headers: &HeaderMap) -> Result<(), Refusal> {
    if verb == Verb::Patch && !patch::PATCH_TYPES.contains(&input::media_type(headers)) {
        return Err(Refusal::by_router(415, "415: Unsupported Media Type"));
    }
    negotiate::check_route(headers, verb)
}

/// Checks whether a path supports a verb; returns the form of the response.
pub(crate) fn check(
    verb: Verb,
    served: &Served,
    target: &mut Target,
    headers: &HeaderMap,
    options: &Options,
) -> Result<Form, Unrouted> {
    if is_connect(served, target) && target.subresource != "log" {
        // Its media types and options are those of the pod, service or node that answers.
        check_built_in(verb, served, target).map_err(Unrouted::ByRouter)?;
        if !options.dry_run.is_empty() {
            return Err(Unrouted::ByHandler(Refusal::bad_request("dryRun is not supported")));
        }
        check_name(&target.name).map_err(Unrouted::ByHandler)?;
        return Ok(Form::for_errors(headers));
    }
    if served.custom().is_none() {
        let routed = check_built_in(verb, served, target);
        routed.and_then(|()| check_media_types(verb, headers)).map_err(Unrouted::ByRouter)?;
    }
    check_handler(verb, served, target, headers, options).map_err(Unrouted::ByHandler)
}

/// Checks before the body is read, in kube-apiserver's order. Returns the form that the client accepts.
fn check_handler(
    verb: Verb,
    served: &Served,
    target: &mut Target,
    headers: &HeaderMap,
    options: &Options,
) -> Result<Form, Refusal> {
    let media_type = input::media_type(headers);
    let is_custom = served.custom().is_some();
    if is_custom {
        check_custom(verb, served, target)?;
    }
    if verb == Verb::Patch && is_custom && !patch::CUSTOM_PATCH_TYPES.contains(&media_type) {
        return Err(Refusal::unsupported_media_type(&patch::CUSTOM_PATCH_TYPES));
    }
    check_name(&target.name)?;
    let form = match is_custom {
        true => Form::of_custom(headers)?,
        false => Form::of_built_in(headers, served.has_table(&target.subresource))?,
    };
    // Kubernetes: an update checks it after its options.
    if verb == Verb::Create && !is_connect(served, target) {
        input::encoding_for(served, media_type)?;
    }
    check_options(verb, options, media_type)?;
    Ok(form)
}

/// Whether a built-in resource supports the verb at this path.
fn check_built_in(verb: Verb, served: &Served, target: &Target) -> Result<(), Refusal> {
    let verbs = match (target.subresource.as_str(), served.subresource(&target.subresource)) {
        ("", _) => &served.resource.verbs,
        (_, Some(subresource)) => &subresource.verbs,
        (_, None) => return Err(Refusal::not_served()),
    };
    if !is_routed(served, target) {
        return Err(Refusal::not_served());
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
        false => Err(Refusal::method_not_allowed()),
    }
}

/// Whether the path of a built-in resource supports any verb.
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

/// Whether a custom resource supports the verb. One handler serves them all, with other texts.
// Kubernetes: it ignores a name in the path of a create.
fn check_custom(verb: Verb, served: &Served, target: &mut Target) -> Result<(), Refusal> {
    if target.subresource.is_empty() {
        if verb == Verb::Create {
            target.name.clear();
        }
        // A terminating definition still allows these here; a later stage rejects them.
        return match matches!(verb, Verb::Update | Verb::Patch) && target.name.is_empty() {
            true => Err(Refusal::bad_request("name must be provided")),
            false => Ok(()),
        };
    }
    let Some(subresource) = served.subresource(&target.subresource) else {
        return Err(Refusal::not_found(&served.group_resource(), &target.name));
    };
    match subresource.verbs.iter().any(|known| known == verb.text()) {
        true => Ok(()),
        false => Err(Refusal::method_not_supported(&served.group_resource(), verb.text())),
    }
}

/// Kubernetes: names that are valid in a key.
fn check_name(name: &str) -> Result<(), Refusal> {
    let problems = NameRule::PathSegment.problems(name);
    if name.is_empty() || problems.is_empty() {
        return Ok(());
    }
    let (name, problems) = (go::quote(name), problems.join(";"));
    Err(Refusal::bad_request(format!("Name parameter invalid: {name}: {problems}")))
}

/// Validates the options of a write.
fn check_options(verb: Verb, options: &Options, media_type: &str) -> Result<(), Refusal> {
    let kind = match verb {
        Verb::Create => "CreateOptions",
        Verb::Update => "UpdateOptions",
        Verb::Patch => "PatchOptions",
        // The options of a delete are read with its body.
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
    if options.dry_run.iter().any(|value| value != "All") {
        let value = serde_json::json!(options.dry_run);
        errors.push(Error::not_supported(&Path::new("dryRun"), &value, ["All"]));
    }
    if let Some(value) = options.bad_validation.as_deref() {
        let choices = ["", "Ignore", "Strict", "Warn"];
        errors.push(Error::not_supported(&Path::new("fieldValidation"), value, choices));
    }
    refusal::check_options(kind, errors)
}

/// The error for an unsupported method. Kubernetes: the handler of custom resources names the verb, which
/// is empty.
pub(crate) fn no_verb(served: &Served, target: &Target) -> Refusal {
    let is_known = target.subresource.is_empty() || served.subresource(&target.subresource).is_some();
    match served.custom() {
        Some(_) if !is_known => Refusal::not_found(&served.group_resource(), &target.name),
        Some(_) => Refusal::method_not_supported(&served.group_resource(), ""),
        None if !is_known || !is_routed(served, target) => Refusal::not_served(),
        None => Refusal::method_not_allowed(),
    }
}
