//! Jobs: counts that fit together, policies, and a template that stays once it runs.

mod indexes;
mod policies;
mod status;

use api::field::{Error, ErrorList, Path};
use api::name::{self, Format};
use serde_json::Value;

use crate::strategy::prepare::same;
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::{internal, selector, template};

pub(super) use status::check_status;

const MAX_INDEXED: i64 = 100_000;
const MAX_WITH_MANY: i64 = 10_000;
const INDEXED: &str = "requires indexed completion mode";

pub(super) fn check(job: &At<'_, '_>, errors: &mut ErrorList) {
    generated_selector(job, errors);
    let spec = job.field("spec");
    whole_spec(&spec, errors);
    let completions = spec.field("completions");
    if spec.text_of("completionMode") == "Indexed" && completions.int() > 0 {
        let metadata = job.field("metadata");
        let name = metadata.field("name");
        let longest = format!("{}-{}", name.text(), completions.int() - 1);
        if !Format::Dns1123Label.fits(&longest) {
            let problem = format!("will not able to create pod with invalid DNS label: {longest}");
            name.invalid_text(errors, problem);
        }
    }
}

/// Unless the user selects by hand, the server has put its own labels into the template.
fn generated_selector(job: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, metadata) = (job.field("spec"), job.field("metadata"));
    if spec.flag_of("manualSelector") || !spec.has("selector") {
        return;
    }
    let (uid, name) = (metadata.text_of("uid"), metadata.text_of("name"));
    if uid.is_empty() {
        metadata.field("uid").required(errors, "");
    }
    let wanted = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let pods = spec.field("template");
    let pods = pods.field("metadata");
    let labels = pods.field("labels");
    for (key, value) in wanted {
        let path = labels.path().key(key);
        let problem = format!("must be '{value}'");
        if !labels.has(key) {
            errors.push(Error::required(&path, problem));
        } else if labels.text_of(key) != value {
            errors.push(Error::invalid(&path, labels.value(), problem));
        }
    }
    let expected: serde_json::Map<_, _> =
        wanted.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
    let given = spec.field("selector");
    if selector::compiled(&given).is_some_and(|compiled| !compiled.matches(&expected)) {
        given.invalid_as(errors, selector::shown(&given), "`selector` not auto-generated");
    }
}

fn whole_spec(spec: &At<'_, '_>, errors: &mut ErrorList) {
    self::spec(spec, errors);
    let wanted = spec.field("selector");
    if wanted.is_set() {
        selector::check(&wanted, errors);
    } else {
        wanted.required(errors, "");
    }
    let pods = spec.field("template");
    let metadata = pods.field("metadata");
    if let Some(compiled) = selector::compiled(&wanted)
        && !selector::matches(&compiled, &metadata.field("labels"))
    {
        selector::mismatch(&pods, errors);
    }
}

/// All but the selector, which a CronJob leaves to its jobs.
pub(crate) fn spec(spec: &At<'_, '_>, errors: &mut ErrorList) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        spec.field(field).not_negative(errors);
    }
    if spec.has("maxFailedIndexes") && !spec.has("backoffLimitPerIndex") {
        spec.field("backoffLimitPerIndex").required(errors, "when maxFailedIndexes is specified");
    }
    managed_by(&spec.field("managedBy"), errors);
    completion(spec, errors);
    policies::failure(spec, errors);
    let success = spec.field("successPolicy");
    if success.is_set() && spec.text_of("completionMode") != "Indexed" {
        success.invalid_as(
            errors,
            internal::shown("io.k8s.api.batch.v1.SuccessPolicy", success.value()),
            INDEXED,
        );
    } else if success.is_set() {
        policies::success(spec, &success, errors);
    }
    let replacement = spec.field("podReplacementPolicy");
    if spec.has("podFailurePolicy") {
        replacement.optional_one_of(errors, &["Failed"]);
    } else {
        replacement.optional_one_of(errors, &["Failed", "TerminatingOrFailed"]);
    }
    let pods = spec.field("template");
    template::check(&pods, errors);
    restart_policy(spec, &pods, errors);
}

fn managed_by(manager: &At<'_, '_>, errors: &mut ErrorList) {
    const LONGEST: usize = 63;
    if !manager.is_set() {
        return;
    }
    errors.extend(name::domain_prefixed_path(manager.path(), manager.text()));
    if manager.text().len() > LONGEST {
        errors.push(Error::too_long(manager.path(), LONGEST));
    }
}

fn completion(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let (mode, completions) = (spec.field("completionMode"), spec.field("completions"));
    let (parallelism, failed) = (spec.field("parallelism"), spec.field("maxFailedIndexes"));
    mode.optional_one_of(errors, &["NonIndexed", "Indexed"]);
    if mode.text() != "Indexed" {
        for field in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if spec.has(field) && matches!(mode.text(), "" | "NonIndexed") {
                spec.field(field).invalid_int(errors, INDEXED);
            }
        }
        return;
    }
    if !completions.is_set() {
        completions.required(errors, "when completion mode is Indexed");
    }
    if parallelism.int() > MAX_INDEXED {
        let problem = format!("must be less than or equal to {MAX_INDEXED} when completion mode is Indexed");
        parallelism.invalid_int(errors, problem);
    }
    if completions.is_set() && failed.is_set() && failed.int() > completions.int() {
        failed.invalid_int(errors, "must be less than or equal to completions");
    }
    if failed.int() > MAX_INDEXED {
        failed.invalid_int(errors, format!("must be less than or equal to {MAX_INDEXED}"));
    }
    if completions.int() > MAX_INDEXED && spec.has("backoffLimitPerIndex") {
        if !failed.is_set() {
            let problem = format!("must be specified when completions is above {MAX_INDEXED}");
            failed.required(errors, &problem);
        }
        for count in [parallelism, failed].iter().filter(|count| count.int() > MAX_WITH_MANY) {
            let problem = format!(
                "must be less than or equal to {MAX_WITH_MANY} when completions are above {MAX_INDEXED} and used \
                 with backoff limit per index"
            );
            count.invalid_int(errors, problem);
        }
    }
}

fn restart_policy(spec: &At<'_, '_>, pods: &At<'_, '_>, errors: &mut ErrorList) {
    let pods = pods.field("spec");
    let policy = pods.field("restartPolicy");
    match policy.text() {
        "" | "Always" => policy.required(errors, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.has("podFailurePolicy") => {
            policy.invalid_text(errors, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        _ => policy.unsupported(errors, &["OnFailure", "Never"]),
    }
}

pub(super) fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    whole_spec(&spec, errors);
    let completions = spec.field("completions");
    if spec.text_of("completionMode") != "Indexed" {
        completions.immutable(errors, &old_spec.field("completions"));
    } else if completions.value() != old_spec.field("completions").value()
        && completions.is_set()
        && completions.int() != spec.int_of("parallelism")
    {
        completions.invalid_int(errors, "can only be modified in tandem with spec.parallelism");
    }
    selector::immutable(&spec.field("selector"), &old_spec.field("selector"), errors);
    same_template(new, old, errors);
    for (field, of) in [
        ("completionMode", None),
        ("podFailurePolicy", Some("io.k8s.api.batch.v1.PodFailurePolicy")),
        ("backoffLimitPerIndex", None),
        ("managedBy", None),
        ("successPolicy", Some("io.k8s.api.batch.v1.SuccessPolicy")),
    ] {
        let now = spec.field(field);
        if !now.is_same(&old_spec.field(field)) {
            let shown = of.map_or_else(|| now.value().into(), |of| internal::shown(of, now.value()));
            now.invalid_as(errors, shown, IMMUTABLE);
        }
    }
}

/// A suspended job may still be told where to run, and with how much.
fn same_template(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (now, before) = (new.value().pointer("/spec/template"), old.value().pointer("/spec/template"));
    let (Some(now), Some(before)) = (now, before) else { return };
    let old_status = old.field("status");
    let conditions = old_status.field("conditions");
    let is_suspended = |it: At<'_, '_>| it.text_of("type") == "Suspended" && it.text_of("status") == "True";
    let may_place = old.field("spec").flag_of("suspend")
        && (!old_status.has("startTime") || conditions.items().any(is_suspended))
        && old_status.int_of("active") == 0;
    let (mut now_fixed, mut before_fixed) = (now.clone(), before.clone());
    if may_place {
        fixed_when_suspended(&mut now_fixed);
        fixed_when_suspended(&mut before_fixed);
    }
    if same(Some(&now_fixed), Some(&before_fixed)) {
        return;
    }
    let (path, of, shown) = if may_place {
        ("spec.template.spec", "io.k8s.api.core.v1.PodSpec", now.get("spec").unwrap_or(&Value::Null))
    } else {
        ("spec.template", "io.k8s.api.core.v1.PodTemplateSpec", now)
    };
    errors.push(Error::invalid(&Path::new(path), internal::shown(of, shown), IMMUTABLE));
}

fn fixed_when_suspended(template: &mut Value) {
    // Kubernetes: only the spec is compared.
    template.as_object_mut().map(|template| template.remove("metadata"));
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        spec.remove(field);
    }
    if let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) {
        affinity.remove("nodeAffinity");
        if affinity.is_empty() {
            spec.remove("affinity");
        }
    }
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.as_object_mut().map(|container| container.remove("resources"));
        }
    }
}
