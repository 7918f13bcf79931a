//! FlowSchema: which requests belong to which priority level.

use api::field::{Error, ErrorList};
use api::name::Format;
use api::object;
use serde_json::Value;

use super::{GROUP, check_conditions, check_status, fixed_spec};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::{NONE, Row, condition, text};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::builder::SPEC;
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::At;
use crate::validate::internal;
use crate::validate::validation::{UpdateChecks, Validation};

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const MAX_PRECEDENCE: i64 = 10_000;

pub(crate) static FLOW_SCHEMA: BuiltIn = BuiltIn::new(GROUP, "FlowSchema", "flowschemas")
    .older_versions(&["v1beta1", "v1beta2", "v1beta3"])
    .strategy(Strategy::PLAIN.counts_generation_of(SPEC).status().status_metadata(StatusMetadata::Nothing))
    .validation(
        Validation::new(check)
            .update(UpdateChecks::ONLY_AS_NEW)
            .subresources(&[("status", check_status)])
            .without_metadata_of_status(),
    )
    .defaults(&[TypeDefaults::of("flowcontrol.v1.FlowSchemaSpec")
        .values(&[("matchingPrecedence", DefaultValue::Number(1000))])])
    .columns(&[
        NAME,
        string("PriorityLevel", Cell::Text("/spec/priorityLevelConfiguration/name")),
        string("MatchingPrecedence", Cell::Number("/spec/matchingPrecedence")),
        string("DistinguisherMethod", Cell::Computed(|it| distinguisher(it).into())),
        AGE,
        string("MissingPL", Cell::Computed(|it| missing_level(it).into())),
    ])
    .row_order(|one, other| precedence(one).cmp(&precedence(other)));

fn check(schema: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = schema.field("spec");
    let precedence = spec.field("matchingPrecedence");
    if precedence.int() <= 0 {
        precedence.invalid_int(errors, "must be a positive value");
    }
    if precedence.int() > MAX_PRECEDENCE {
        precedence.invalid_int(errors, format!("must not be greater than {MAX_PRECEDENCE}"));
    }
    if precedence.int() == 1 && api::object::name(schema.value()) != "exempt" {
        let problem = "only the schema named 'exempt' may have matchingPrecedence 1";
        precedence.invalid_int(errors, problem);
    }
    let method = spec.field("distinguisherMethod");
    if method.is_set() && !matches!(method.text_of("type"), "ByNamespace" | "ByUser") {
        let shown = internal::shown("io.k8s.api.flowcontrol.v1.FlowDistinguisherMethod", method.value());
        errors.push(Error::not_supported(method.field("type").path(), shown, ["ByNamespace", "ByUser"]));
    }
    let level = spec.field("priorityLevelConfiguration");
    let level = level.field("name");
    if level.text().is_empty() {
        level.required(errors, "must reference a priority level");
    } else {
        level.is_format(errors, Format::Dns1123Subdomain);
    }
    let rules = spec.field("rules");
    for it in rules.items() {
        check_rule(&it, errors);
    }
    let name = api::object::name(schema.value());
    if fixed_spec("FlowSchema", name).is_some_and(|fixed| fixed != *spec.value()) {
        let shown = internal::shown("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", spec.value());
        errors.push(Error::invalid(
            spec.path(),
            shown,
            format!("spec of '{name}' must equal the fixed value"),
        ));
    }
    check_conditions(schema, errors);
}

fn check_rule(rule: &At<'_, '_>, errors: &mut ErrorList) {
    let subjects = rule.field("subjects");
    if subjects.is_empty() {
        subjects.required(errors, "subjects must contain at least one value");
    }
    for it in subjects.items() {
        check_subject(&it, errors);
    }
    let (resources, paths) = (rule.field("resourceRules"), rule.field("nonResourceRules"));
    if resources.is_empty() && paths.is_empty() {
        rule.required(errors, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for it in resources.items() {
        check_resource_rule(&it, errors);
    }
    for it in paths.items() {
        check_verbs(&it.field("verbs"), errors);
        let urls = it.field("nonResourceURLs");
        if urls.is_empty() {
            urls.required(errors, "nonResourceURLs must contain at least one value");
        }
        if !check_wildcard(&urls, "non-resource URLs", errors) {
            for url in urls.items() {
                check_path(&url, errors);
            }
        }
    }
}

fn check_subject(subject: &At<'_, '_>, errors: &mut ErrorList) {
    const FIELDS: [(&str, &str); 3] =
        [("serviceAccount", "ServiceAccount"), ("user", "User"), ("group", "Group")];
    let kind = subject.field("kind");
    let Some((field, name)) = FIELDS.iter().find(|(_, name)| *name == kind.text()) else {
        return kind.unsupported(errors, &["Group", "ServiceAccount", "User"]);
    };
    let given = subject.field(field);
    if !given.is_set() {
        given.required(errors, &format!("{field} is required when subject kind is '{name}'"));
    } else if given.text_of("name").is_empty() {
        given.field("name").required(errors, "");
    } else if *field == "serviceAccount" && given.text_of("name") != "*" {
        given.field("name").is_format(errors, Format::Dns1123Subdomain);
    }
    if given.is_set() && *field == "serviceAccount" {
        let namespace = given.field("namespace");
        if namespace.text().is_empty() {
            namespace.required(errors, "must specify namespace for service account");
        } else {
            namespace.is_format(errors, Format::Dns1123Label);
        }
    }
    for (other, kind) in FIELDS.iter().filter(|(other, _)| other != field && subject.has(other)) {
        let problem = format!("{other} is forbidden when subject kind is not '{kind}'");
        subject.field(other).forbidden(errors, problem);
    }
}

fn check_resource_rule(rule: &At<'_, '_>, errors: &mut ErrorList) {
    check_verbs(&rule.field("verbs"), errors);
    for (field, one, many) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        let list = rule.field(field);
        if list.is_empty() {
            list.required(errors, &format!("resource rules must supply at least one {one}"));
        }
        check_wildcard(&list, many, errors);
    }
    let namespaces = rule.field("namespaces");
    if namespaces.is_empty() && !rule.flag_of("clusterScope") {
        let problem = "resource rules that are not cluster scoped must supply at least one namespace";
        namespaces.required(errors, problem);
    } else if !check_wildcard(&namespaces, "namespaces", errors) {
        for namespace in namespaces.items() {
            for problem in Format::Dns1123Label.problems(namespace.text()) {
                let lead = "each member of this list must be '*' or a DNS-1123 label; ";
                namespace.invalid_text(errors, format!("{lead}{problem}"));
            }
        }
    }
}

fn check_verbs(verbs: &At<'_, '_>, errors: &mut ErrorList) {
    if verbs.is_empty() {
        verbs.required(errors, "verbs must contain at least one value");
    } else if !check_wildcard(verbs, "verbs", errors)
        && verbs.items().any(|verb| !VERBS.contains(&verb.text()))
    {
        errors.push(Error::not_supported(verbs.path(), verbs.value(), VERBS));
    }
}

/// Whether there is one. It stands alone.
fn check_wildcard(list: &At<'_, '_>, what: &str, errors: &mut ErrorList) -> bool {
    let has = list.items().any(|item| item.text() == "*");
    if has && list.list().len() > 1 {
        list.invalid(errors, format!("if '*' is present, must not specify other {what}"));
    }
    has
}

fn check_path(path: &At<'_, '_>, errors: &mut ErrorList) {
    let text = path.text();
    let stars = text.matches('*').count();
    let problem = match text {
        "" => "must not be empty",
        "/" => return,
        _ if !text.starts_with('/') => "must start with slash",
        _ if text.contains(' ') => "must not contain white-space",
        _ if text.contains("//") => "must not contain double slash",
        _ if stars > 1 || (stars == 1 && !text.ends_with("/*")) => "wildcard can only do suffix matching",
        _ => return,
    };
    path.invalid_text(errors, problem);
}

/// The order in which schemas are tried.
fn precedence(schema: &Value) -> (Option<i64>, &str) {
    (schema["spec"]["matchingPrecedence"].as_i64(), object::name(schema))
}

fn distinguisher<'a>(schema: &Row<'a>) -> &'a str {
    match schema.at("/spec/distinguisherMethod") {
        Value::Null => NONE,
        method => text(&method["type"]),
    }
}

fn missing_level<'a>(schema: &Row<'a>) -> &'a str {
    condition(schema.at("/status/conditions"), "Dangling").map_or("?", |it| text(&it["status"]))
}
