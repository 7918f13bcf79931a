//! FlowSchemas and priority levels: who waits in which queue.

use api::field::{Error, ErrorList};
use api::name::Format;
use serde_json::Value;

use super::at::At;
use super::internal;
use super::taken::Taken;

const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const MAX_PRECEDENCE: i64 = 10_000;
const MAX_QUEUES: i64 = 10_000_000;
/// Kubernetes: more would make some queues likelier than others.
const MAX_HASH_BITS: f64 = 60.0;
const GROUP: &str = "flowcontrol.apiserver.k8s.io";

pub(super) fn schema(schema: &At<'_, '_>, errors: &mut ErrorList) {
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
        rule(&it, errors);
    }
    let name = api::object::name(schema.value());
    if fixed("FlowSchema", name).is_some_and(|fixed| fixed != *spec.value()) {
        let shown = internal::shown("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", spec.value());
        errors.push(Error::invalid(
            spec.path(),
            shown,
            format!("spec of '{name}' must equal the fixed value"),
        ));
    }
    conditions(schema, errors);
}

/// What an object that every cluster has must say, of which nothing may be changed.
fn fixed(kind: &str, name: &str) -> Option<Value> {
    const FIXED: [&str; 2] = ["catch-all", "exempt"];
    FIXED.contains(&name).then_some(())?;
    let objects = crate::bootstrap().filter(|(path, _)| path.contains(GROUP));
    let mut objects = objects.filter_map(|(_, object)| serde_json::from_str::<Value>(object).ok());
    let mut found = objects.find(|object| object["kind"] == kind && api::object::name(object) == name)?;
    crate::defaults::default(GROUP, "v1", kind, &mut found);
    found.get_mut("spec").map(Value::take)
}

fn rule(rule: &At<'_, '_>, errors: &mut ErrorList) {
    let subjects = rule.field("subjects");
    if subjects.is_empty() {
        subjects.required(errors, "subjects must contain at least one value");
    }
    for it in subjects.items() {
        subject(&it, errors);
    }
    let (resources, paths) = (rule.field("resourceRules"), rule.field("nonResourceRules"));
    if resources.is_empty() && paths.is_empty() {
        rule.required(errors, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for it in resources.items() {
        resource_rule(&it, errors);
    }
    for it in paths.items() {
        verbs(&it.field("verbs"), errors);
        let urls = it.field("nonResourceURLs");
        if urls.is_empty() {
            urls.required(errors, "nonResourceURLs must contain at least one value");
        }
        if !wildcard(&urls, "non-resource URLs", errors) {
            for url in urls.items() {
                path(&url, errors);
            }
        }
    }
}

fn subject(subject: &At<'_, '_>, errors: &mut ErrorList) {
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

fn resource_rule(rule: &At<'_, '_>, errors: &mut ErrorList) {
    verbs(&rule.field("verbs"), errors);
    for (field, one, many) in
        [("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")]
    {
        let list = rule.field(field);
        if list.is_empty() {
            list.required(errors, &format!("resource rules must supply at least one {one}"));
        }
        wildcard(&list, many, errors);
    }
    let namespaces = rule.field("namespaces");
    if namespaces.is_empty() && !rule.flag_of("clusterScope") {
        let problem = "resource rules that are not cluster scoped must supply at least one namespace";
        namespaces.required(errors, problem);
    } else if !wildcard(&namespaces, "namespaces", errors) {
        for namespace in namespaces.items() {
            for problem in Format::Dns1123Label.problems(namespace.text()) {
                let lead = "each member of this list must be '*' or a DNS-1123 label; ";
                namespace.invalid_text(errors, format!("{lead}{problem}"));
            }
        }
    }
}

fn verbs(verbs: &At<'_, '_>, errors: &mut ErrorList) {
    if verbs.is_empty() {
        verbs.required(errors, "verbs must contain at least one value");
    } else if !wildcard(verbs, "verbs", errors) && verbs.items().any(|verb| !VERBS.contains(&verb.text())) {
        errors.push(Error::not_supported(verbs.path(), verbs.value(), VERBS));
    }
}

/// Whether there is one. It stands alone.
fn wildcard(list: &At<'_, '_>, what: &str, errors: &mut ErrorList) -> bool {
    let has = list.items().any(|item| item.text() == "*");
    if has && list.list().len() > 1 {
        list.invalid(errors, format!("if '*' is present, must not specify other {what}"));
    }
    has
}

fn path(path: &At<'_, '_>, errors: &mut ErrorList) {
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

pub(super) fn level(level: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = level.field("spec");
    let (sort, limited, exempt) = (spec.field("type"), spec.field("limited"), spec.field("exempt"));
    if (api::object::name(level.value()) == "exempt") != (sort.text() == "Exempt") {
        sort.invalid_text(errors, "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match sort.text() {
        "Exempt" => {
            if limited.is_set() {
                limited.forbidden(errors, "must be nil if the type is not Limited");
            }
            shares(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                exempt.forbidden(errors, "must be nil if the type is Limited");
            }
            if limited.is_set() {
                shares(&limited, errors);
                response(&limited.field("limitResponse"), errors);
            } else {
                limited.required(errors, "must not be empty when type is Limited");
            }
        }
        _ => sort.required_one_of(errors, &["Exempt", "Limited"]),
    }
    fixed_level(level, errors);
    conditions(level, errors);
}

fn fixed_level(level: &At<'_, '_>, errors: &mut ErrorList) {
    let (name, spec) = (api::object::name(level.value()), level.field("spec"));
    let Some(mut fixed) = fixed("PriorityLevelConfiguration", name) else { return };
    let mut given = spec.value().clone();
    let except = if name == "exempt" { " except the 'spec.exempt' field" } else { "" };
    if name == "exempt" {
        for spec in [&mut fixed, &mut given] {
            spec.as_object_mut().map(|spec| spec.remove("exempt"));
        }
    }
    if given != fixed {
        let shown = internal::shown("io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec", spec.value());
        let problem = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(Error::invalid(spec.path(), shown, problem));
    }
}

fn shares(at: &At<'_, '_>, errors: &mut ErrorList) {
    let shares = at.field("nominalConcurrencyShares");
    if shares.int() < 0 {
        shares.invalid_int(errors, "must be a non-negative integer");
    }
    let lendable = at.field("lendablePercent");
    if !(0..=100).contains(&lendable.int()) {
        lendable.invalid_int(errors, "must be between 0 and 100, inclusive");
    }
    let borrowing = at.field("borrowingLimitPercent");
    if borrowing.int() < 0 {
        borrowing.invalid_int(errors, "if specified, must be a non-negative integer");
    }
}

fn response(response: &At<'_, '_>, errors: &mut ErrorList) {
    let (sort, queuing) = (response.field("type"), response.field("queuing"));
    match sort.text() {
        "Reject" if queuing.is_set() => {
            queuing.forbidden(errors, "must be nil if limited.limitResponse.type is not Limited");
        }
        "Queue" if !queuing.is_set() => {
            queuing.required(errors, "must not be empty if limited.limitResponse.type is Limited");
        }
        "Queue" => queues(&queuing, errors),
        _ => sort.required_one_of(errors, &["Queue", "Reject"]),
    }
}

fn queues(queuing: &At<'_, '_>, errors: &mut ErrorList) {
    for field in ["queueLengthLimit", "queues", "handSize"] {
        if queuing.int_of(field) <= 0 {
            queuing.field(field).invalid_int(errors, "must be positive");
        }
    }
    let (queues, hand) = (queuing.field("queues"), queuing.field("handSize"));
    if queues.int() > MAX_QUEUES {
        queues.invalid_int(errors, format!("must not be greater than {MAX_QUEUES}"));
    }
    if hand.int() > 0 && hand.int() > queues.int() {
        hand.invalid_int(errors, format!("should not be greater than queues ({})", queues.int()));
    } else if hand.int() > 0 && entropy(queues.int(), hand.int()) > MAX_HASH_BITS {
        let (deck, hand_size) = (queues.int(), hand.int());
        let problem = format!(
            "required entropy bits of deckSize {deck} and handSize {hand_size} should not be greater than {MAX_HASH_BITS}"
        );
        hand.invalid_int(errors, problem);
    }
}

/// How many bits of a hash it takes to deal a hand.
#[expect(clippy::cast_precision_loss, reason = "numbers of queues and hands are far below 2^52")]
fn entropy(queues: i64, hand: i64) -> f64 {
    ((queues as f64).log2() * hand as f64).ceil()
}

pub(super) fn status(new: &At<'_, '_>, _: &At<'_, '_>, errors: &mut ErrorList) {
    conditions(new, errors);
}

fn conditions(object: &At<'_, '_>, errors: &mut ErrorList) {
    let status = object.field("status");
    let conditions = status.field("conditions");
    let mut taken = Taken::default();
    for condition in conditions.items() {
        let sort = condition.field("type");
        if taken.contains(&sort.text()) {
            sort.duplicate(errors);
        }
        taken.push(sort.text());
        if sort.text().is_empty() {
            sort.required(errors, "");
        }
    }
}
