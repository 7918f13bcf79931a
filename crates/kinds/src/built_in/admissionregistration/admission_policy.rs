//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: expressions that decide about a write.

use api::field::{Error, ErrorList};
use api::name::{Format, NameRule};
use serde_json::Value;

use super::webhook_configuration::validate as webhook;
use super::{GROUP, warn_of_static_name};
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, TableColumn, integer, string};
use crate::cells::row::{UNSET, text};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::policy::{Names, Offer, Wanted};
use crate::strategy::builder::SPEC;
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::At;
use crate::validate::selector;
use crate::validate::taken::Taken;
use crate::validate::validation::{Metadata, UpdateChecks, Validation};

pub(crate) static VALIDATING_ADMISSION_POLICY: BuiltIn =
    BuiltIn::new(GROUP, "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        .older_versions(&["v1alpha1", "v1beta1"])
        .strategy(
            Strategy::PLAIN
                .requires_resource_version()
                .counts_generation_of(SPEC)
                .status()
                .status_metadata(StatusMetadata::Little),
        )
        .validation(
            Validation::new(check_validating)
                .update(UpdateChecks::ONLY_AS_NEW)
                .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain))
                .without_metadata_of_status(),
        )
        .defaults(&[
            TypeDefaults::of("admissionregistration.v1.ValidatingAdmissionPolicySpec")
                .values(&[("failurePolicy", DefaultValue::Text("Fail"))]),
            TypeDefaults::of("admissionregistration.v1.MatchResources").values(&[
                ("matchPolicy", DefaultValue::Text("Equivalent")),
                ("namespaceSelector", DefaultValue::EmptyObject),
                ("objectSelector", DefaultValue::EmptyObject),
            ]),
            TypeDefaults::of("admissionregistration.v1.NamedRuleWithOperations")
                .values(&[("scope", DefaultValue::Text("*"))]),
        ])
        .warnings(warn_of_static_name)
        .columns(&[NAME, integer("Validations", Cell::Count("/spec/validations")), PARAM_KIND, AGE]);

pub(crate) static MUTATING_ADMISSION_POLICY: BuiltIn =
    BuiltIn::new(GROUP, "MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        .older_versions(&["v1alpha1", "v1beta1"])
        .strategy(Strategy::PLAIN.requires_resource_version().counts_generation_of(SPEC))
        .validation(
            Validation::new(check_mutating)
                .update(UpdateChecks::ONLY_AS_NEW)
                .metadata(Metadata::WithAnyFinalizer(NameRule::DnsSubdomain)),
        )
        .defaults(&[TypeDefaults::of("admissionregistration.v1.MutatingAdmissionPolicySpec")
            .values(&[("failurePolicy", DefaultValue::Text("Fail"))])])
        .warnings(warn_of_static_name)
        .columns(&[NAME, integer("Mutations", Cell::Count("/spec/mutations")), PARAM_KIND, AGE]);

const PARAM_KIND: TableColumn = string(
    "ParamKind",
    Cell::Computed(|it| match it.at("/spec/paramKind") {
        Value::Null => UNSET.into(),
        kind => format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"])).into(),
    }),
);

const MAX_ANNOTATIONS: usize = 20;
const MAX_ANNOTATION_BYTES: usize = 5 << 10;
const MUTATING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// Each variable is compiled knowing all before it, so that the work grows with the square of their number. The real
/// server sets no limit.
const MAX_VARIABLES: usize = 500;

/// What expressions may name.
struct Named {
    all: Names,
    /// In messages: all but who may do what.
    in_messages: Names,
}

fn check_validating(policy: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = policy.field("spec");
    let names = check_any(&spec, false, errors);
    let (validations, annotations) = (spec.field("validations"), spec.field("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        for list in [&validations, &annotations] {
            list.required(errors, "validations or auditAnnotations must contain at least one item");
        }
        return;
    }
    for it in validations.items() {
        check_validation(&it, &names, errors);
    }
    if annotations.list().len() > MAX_ANNOTATIONS {
        let problem = format!("must not have more than {MAX_ANNOTATIONS} auditAnnotations");
        annotations.invalid(errors, problem);
    }
    let mut taken = Taken::default();
    for annotation in annotations.items() {
        let (key, value) = (annotation.field("key"), annotation.field("valueExpression"));
        let qualified = format!("{}/{}", api::object::name(policy.value()), key.text());
        errors.extend(Format::QualifiedName.check(key.path(), &qualified));
        if value.text().trim().is_empty() {
            value.required(errors, "valueExpression is not specified");
        } else if value.text().trim().len() > MAX_ANNOTATION_BYTES {
            value.required(errors, &format!("must not exceed {MAX_ANNOTATION_BYTES} bytes in length"));
        } else if let Err(problem) = names.all.compile(value.text().trim(), Wanted::TextOrNull) {
            value.invalid_text(errors, problem);
        }
        if taken.contains(&key.text()) {
            key.duplicate(errors);
        }
        taken.push(key.text());
    }
}

fn check_validation(at: &At<'_, '_>, names: &Named, errors: &mut ErrorList) {
    let (expression, message) = (at.field("expression"), at.field("message"));
    if expression.text().trim().is_empty() {
        expression.required(errors, "expression is not specified");
    } else {
        webhook::compiles(&names.all, &expression, Wanted::Bool, errors);
    }
    let computed = at.field("messageExpression");
    if !computed.text().is_empty() && computed.text().trim().is_empty() {
        computed.invalid_text(errors, "must be non-empty if specified");
    } else if !computed.text().is_empty() {
        webhook::compiles(&names.in_messages, &computed, Wanted::Text, errors);
    }
    let trimmed = message.text().trim();
    if !message.text().is_empty() && trimmed.is_empty() {
        message.invalid_text(errors, "must be non-empty if specified");
    } else if trimmed.contains(['\n', '\r']) {
        message.invalid_text(errors, "must not contain line breaks");
    }
    at.field("reason").optional_one_of(errors, REASONS);
}

fn check_mutating(policy: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = policy.field("spec");
    let names = check_any(&spec, true, errors);
    check_mutating_operations(&spec, "matchConstraints", errors);
    let mutations = spec.field("mutations");
    if mutations.is_empty() {
        mutations.required(errors, "mutations must contain at least one item");
    }
    for mutation in mutations.items() {
        let sort = mutation.field("patchType");
        let (wanted, other) = match sort.text() {
            "" => {
                sort.required(errors, "");
                continue;
            }
            "JSONPatch" => ("jsonPatch", "applyConfiguration"),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
            _ => {
                sort.unsupported(errors, &["ApplyConfiguration", "JSONPatch"]);
                continue;
            }
        };
        let (patch, surplus) = (mutation.field(wanted), mutation.field(other));
        if !patch.is_set() {
            patch.required(errors, &format!("must be specified when patchType is {}", sort.text()));
        } else if patch.text_of("expression").trim().is_empty() {
            patch.field("expression").required(errors, "");
        } else {
            let expression = patch.field("expression");
            let made = if wanted == "jsonPatch" { Wanted::Patches } else { Wanted::Object };
            if let Err(problem) = names.all.compile(expression.text().trim(), made) {
                expression.invalid_as(errors, expression.text().trim(), problem);
            }
        }
        if surplus.is_set() {
            let problem = format!("must not be specified when patchType is {}", sort.text());
            surplus.invalid_as(errors, format!("{{{other}}}"), problem);
        }
    }
    spec.field("reinvocationPolicy").required_one_of(errors, &["IfNeeded", "Never"]);
}

/// What both sorts have; answers with what their own expressions may name.
fn check_any(spec: &At<'_, '_>, patches: bool, errors: &mut ErrorList) -> Named {
    spec.field("failurePolicy").required_one_of(errors, &["Fail", "Ignore"]);
    let parameters = spec.field("paramKind");
    if parameters.is_set() {
        check_param_kind(&parameters, errors);
    }
    let constraints = spec.field("matchConstraints");
    if constraints.is_set() {
        check_match(&constraints, errors);
        if constraints.field("resourceRules").is_empty() {
            constraints.field("resourceRules").required(errors, "");
        }
    } else {
        constraints.required(errors, "");
    }
    let params = parameters.is_set();
    webhook::conditions(&spec.field("matchConditions"), params, errors);
    let variables = spec.field("variables");
    // Kubernetes: a policy that checks without any does not know the word.
    let is_composed = patches || !variables.is_empty();
    let [mut names, mut in_messages] = [true, false].map(|authorizer| {
        let names = Names::new(Offer { params, authorizer, patches });
        if is_composed { names.composed() } else { names }
    });
    if variables.list().len() > MAX_VARIABLES {
        errors.push(Error::too_many(variables.path(), variables.list().len(), MAX_VARIABLES));
        return Named { all: names, in_messages };
    }
    for variable in variables.items() {
        let (name, expression) = (variable.field("name"), variable.field("expression"));
        if name.text().trim().is_empty() {
            name.required(errors, "name is not specified");
        } else if !Format::CIdentifier.fits(name.text()) {
            name.invalid_text(errors, "must be a valid CEL identifier");
        }
        if expression.text().trim().is_empty() {
            expression.required(errors, "expression is not specified");
            continue;
        }
        let compiled = names.compile(expression.text(), Wanted::Anything);
        names = names.define(name.text(), compiled.as_ref().ok());
        in_messages = in_messages.define(name.text(), compiled.as_ref().ok());
        if let Err(problem) = compiled {
            expression.invalid_text(errors, problem);
        }
    }
    Named { all: names, in_messages }
}

fn check_param_kind(at: &At<'_, '_>, errors: &mut ErrorList) {
    let (version, kind) = (at.field("apiVersion"), at.field("kind"));
    match version.text().split('/').collect::<Vec<_>>().as_slice() {
        [""] => version.required(errors, ""),
        [only] => check_joined(&version, only, Format::Dns1035Label, errors),
        [group, name] => {
            if !group.is_empty() {
                check_joined(&version, group, Format::Dns1123Subdomain, errors);
            }
            if name.is_empty() {
                version.invalid_text(errors, "version must be specified");
            } else {
                check_joined(&version, name, Format::Dns1035Label, errors);
            }
        }
        _ => version.invalid_text(errors, format!("unexpected GroupVersion string: {}", version.text())),
    }
    let problems = Format::Dns1035Label.problems(&kind.text().to_lowercase());
    if kind.text().is_empty() {
        kind.required(errors, "");
    } else if !problems.is_empty() {
        let problem = format!("may have mixed case, but should otherwise match: {}", problems.join(","));
        kind.invalid_text(errors, problem);
    }
}

/// All problems in one error.
fn check_joined(at: &At<'_, '_>, text: &str, format: Format, errors: &mut ErrorList) {
    let problems = format.problems(text);
    if !problems.is_empty() {
        at.invalid_as(errors, text, problems.join(","));
    }
}

pub(super) fn check_match(resources: &At<'_, '_>, errors: &mut ErrorList) {
    let policy = resources.field("matchPolicy");
    if policy.is_set() {
        policy.one_of(errors, &["Equivalent", "Exact"]);
    } else {
        policy.required(errors, "");
    }
    for field in ["namespaceSelector", "objectSelector"] {
        let wanted = resources.field(field);
        if wanted.is_set() {
            selector::check(&wanted, errors);
        } else {
            wanted.required(errors, "");
        }
    }
    for list in ["resourceRules", "excludeResourceRules"] {
        let rules = resources.field(list);
        for rule in rules.items() {
            let names = rule.field("resourceNames");
            let mut taken = Taken::default();
            for name in names.items() {
                name.is_format(errors, Format::PathSegment);
                if !taken.add(name.value()) {
                    name.duplicate(errors);
                }
            }
            webhook::rule(&rule, errors);
        }
    }
}

/// Kubernetes: the path leaves out which rule it is.
pub(super) fn check_mutating_operations(spec: &At<'_, '_>, field: &str, errors: &mut ErrorList) {
    let matched = spec.field(field);
    let rules = matched.field("resourceRules");
    for rule in rules.items() {
        let operations = rule.field("operations");
        for operation in operations.items().filter(|it| !MUTATING_OPERATIONS.contains(&it.text())) {
            let path = rules.path().child("operations");
            errors.push(Error::not_supported(&path, operation.text(), MUTATING_OPERATIONS));
        }
    }
}
