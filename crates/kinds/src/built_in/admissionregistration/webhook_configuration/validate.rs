//! Webhook configurations, and the rules about requests that they share with admission policies.

use api::field::{Error, ErrorList};
use api::name::{self, Format};

use crate::policy::{Names, Offer, Wanted};
use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::taken::Taken;

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const REVIEW_VERSIONS: &[&str] = &["v1", "v1beta1"];
const MAX_CONDITIONS: usize = 64;

pub(super) fn check(configuration: &At<'_, '_>, errors: &mut ErrorList) {
    let hooks = configuration.field("webhooks");
    let mut taken = Taken::default();
    for hook in hooks.items() {
        let name = hook.field("name");
        errors.extend(name::fully_qualified_name(name.path(), name.text()));
        let rules = hook.field("rules");
        for it in rules.items() {
            rule(&it, errors);
        }
        hook.field("failurePolicy").optional_one_of(errors, &["Fail", "Ignore"]);
        hook.field("matchPolicy").optional_one_of(errors, &["Equivalent", "Exact"]);
        let effects = hook.field("sideEffects");
        if effects.is_set() {
            effects.one_of(errors, &["None", "NoneOnDryRun"]);
        } else {
            effects.required(errors, "must specify one of None, NoneOnDryRun");
        }
        let timeout = hook.field("timeoutSeconds");
        if timeout.is_set() && !(1..=30).contains(&timeout.int()) {
            timeout.invalid_int(errors, "the timeout value must be between 1 and 30 seconds");
        }
        for field in ["namespaceSelector", "objectSelector"] {
            selector::check(&hook.field(field), errors);
        }
        hook.field("reinvocationPolicy").optional_one_of(errors, &["IfNeeded", "Never"]);
        client(&hook.field("clientConfig"), errors);
        conditions(&hook.field("matchConditions"), false, errors);
        review_versions(&hook.field("admissionReviewVersions"), errors);
        if !name.text().is_empty() && taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
    }
}

/// Each version of a webhook's reviews is a label, and listed once.
pub(crate) fn each_version_once(versions: &At<'_, '_>, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for version in versions.items() {
        if !taken.add(version.value()) {
            version.invalid_text(errors, "duplicate version");
        } else {
            version.is_format(errors, Format::Dns1035Label);
        }
    }
}

fn review_versions(versions: &At<'_, '_>, errors: &mut ErrorList) {
    if versions.is_empty() {
        versions.required(errors, &format!("must specify one of {}", REVIEW_VERSIONS.join(", ")));
        return;
    }
    each_version_once(versions, errors);
    if !versions.items().any(|version| REVIEW_VERSIONS.contains(&version.text())) {
        let problem = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        versions.invalid(errors, problem);
    }
}

/// Where a webhook is: a URL, or a service of the cluster.
pub(crate) fn client(client: &At<'_, '_>, errors: &mut ErrorList) {
    let (url, service) = (client.field("url"), client.field("service"));
    match (url.is_set(), service.is_set()) {
        (true, false) => check_url(&url, errors),
        (false, true) => check_service(&service, errors),
        _ => client.required(errors, "exactly one of url or service is required"),
    }
}

fn check_url(url: &At<'_, '_>, errors: &mut ErrorList) {
    const FORM: &str = "; desired format: https://host[/path]";
    if url.text().starts_with(':') {
        let problem = format!("parse {}: missing protocol scheme", api::go::quote(url.text()));
        return url.required(errors, &format!("url must be a valid URL: {problem}{FORM}"));
    }
    let (scheme, rest) = url.text().split_once("://").unwrap_or(("", url.text()));
    if scheme != "https" {
        url.invalid_as(errors, scheme, format!("'https' is the only allowed URL scheme{FORM}"));
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = if scheme.is_empty() { "" } else { rest.split('/').next().unwrap_or_default() };
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    if host.is_empty() {
        url.invalid_as(errors, host, format!("host must be specified{FORM}"));
    }
    if let Some(user) = user {
        url.invalid_as(errors, user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        url.invalid_as(errors, fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        url.invalid_as(errors, query, "query parameters are not permitted in the URL");
    }
}

fn check_service(service: &At<'_, '_>, errors: &mut ErrorList) {
    // Kubernetes: it looks at one and names the other.
    for (given, named) in [("namespace", "name"), ("name", "namespace")] {
        if service.text_of(given).is_empty() {
            service.field(named).required(errors, "");
        }
    }
    let port = service.field("port");
    let problems = name::port_number_problems(port.int());
    if !problems.is_empty() {
        port.invalid_int(errors, format!("port is not valid: {}", problems.join(", ")));
    }
    let path = service.field("path");
    match path.text() {
        "" | "/" => return,
        "//" => return path.invalid_text(errors, "segment[0] may not be empty"),
        text if !text.starts_with('/') => path.invalid_text(errors, "must start with a '/'"),
        _ => {}
    }
    let inner = path.text().get(1..).unwrap_or_default();
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    for (index, step) in inner.split('/').enumerate() {
        if step.is_empty() {
            path.invalid_text(errors, format!("segment[{index}] may not be empty"));
            continue;
        }
        for problem in Format::Dns1123Subdomain.problems(step) {
            path.invalid_text(errors, format!("segment[{index}]: {problem}"));
        }
    }
}

pub(crate) fn conditions(conditions: &At<'_, '_>, has_params: bool, errors: &mut ErrorList) {
    if conditions.list().len() > MAX_CONDITIONS {
        errors.push(Error::too_many(conditions.path(), conditions.list().len(), MAX_CONDITIONS));
    }
    let mut taken = Taken::default();
    for condition in conditions.items() {
        let (name, expression) = (condition.field("name"), condition.field("expression"));
        if expression.text().trim().is_empty() {
            expression.required(errors, "");
        } else {
            let names = Names::new(Offer { params: has_params, authorizer: true, patches: false });
            compiles(&names, &expression, Wanted::Bool, errors);
        }
        name.required_format(errors, Format::QualifiedName);
        if !name.text().is_empty() && taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
    }
}

/// Whether an expression can be run at all.
pub(crate) fn compiles(names: &Names, expression: &At<'_, '_>, wanted: Wanted, errors: &mut ErrorList) {
    if let Err(problem) = names.compile(expression.text(), wanted) {
        expression.invalid_text(errors, problem);
    }
}

/// Operations on resources.
pub(crate) fn rule(rule: &At<'_, '_>, errors: &mut ErrorList) {
    wildcard(&rule.field("operations"), "operations", errors);
    let operations = rule.field("operations");
    for operation in operations.items() {
        operation.one_of(errors, OPERATIONS);
    }
    wildcard(&rule.field("apiGroups"), "API groups", errors);
    let versions = rule.field("apiVersions");
    wildcard(&versions, "API versions", errors);
    for version in versions.items().filter(|version| version.text().is_empty()) {
        version.required(errors, "");
    }
    resources(&rule.field("resources"), errors);
    rule.field("scope").optional_one_of(errors, &["*", "Cluster", "Namespaced"]);
}

fn wildcard(list: &At<'_, '_>, what: &str, errors: &mut ErrorList) {
    if list.is_empty() {
        list.required(errors, "");
    }
    if list.list().len() > 1 && list.items().any(|item| item.text() == "*") {
        list.invalid(errors, format!("if '*' is present, must not specify other {what}"));
    }
}

fn resources(resources: &At<'_, '_>, errors: &mut ErrorList) {
    if resources.is_empty() {
        resources.required(errors, "");
    }
    let (mut all_of, mut in_all) = (Taken::default(), Taken::default());
    let mut is_plain = false;
    for resource in resources.items() {
        let text = resource.text();
        let Some((name, sub)) = text.split_once('/') else {
            if text.is_empty() {
                resource.required(errors, "");
            } else {
                is_plain = text != "*";
            }
            continue;
        };
        if all_of.contains(&name) {
            resource.invalid_text(errors, format!("if '{name}/*' is present, must not specify {text}"));
        }
        if in_all.contains(&sub) {
            resource.invalid_text(errors, format!("if '*/{sub}' is present, must not specify {text}"));
        }
        if sub == "*" {
            all_of.push(name);
        }
        if name == "*" {
            in_all.push(sub);
        }
    }
    let has = |wanted: &str| resources.items().any(|resource| resource.text() == wanted);
    if resources.list().len() > 1 && has("*/*") {
        resources.invalid(errors, "if '*/*' is present, must not specify other resources");
    }
    if has("*") && is_plain {
        let problem = "if '*' is present, must not specify other resources without subresources";
        resources.invalid(errors, problem);
    }
}
