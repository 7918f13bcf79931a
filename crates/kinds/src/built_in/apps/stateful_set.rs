//! StatefulSet: pods that keep their names and their volumes.

use api::field::{BadValue, ErrorList};
use api::name::{Format, NameRule};
use serde_json::{Value, json};

use super::GROUP;
use super::deployment::READY_OF_DESIRED;
use crate::built_in::BuiltIn;
use crate::built_in::core::persistent_volume_claim;
use crate::built_in::core::pod::{validate as pod, warnings as pod_warnings};
use crate::built_in::workload::{CONTAINERS, IMAGES, ROLLING_UPDATE, is_new_generation, template_at_spec};
use crate::cells::column::{AGE, NAME};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::builder::{SPEC, TEMPLATE};
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::{internal, metadata, rollout, template};

pub(crate) static STATEFUL_SET: BuiltIn = BuiltIn::new(GROUP, "StatefulSet", "statefulsets")
    .older_versions(&["v1beta1", "v1beta2"])
    .strategy(
        Strategy::PLAIN
            .named(NameRule::DnsLabel)
            .counts_generation_of(SPEC)
            .status()
            .pod_spec_at(TEMPLATE)
            .disabled_fields(&[&["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"]]),
    )
    .validation(
        Validation::new(check)
            .update(UpdateChecks::CHANGE.compare(check_change))
            .named(NameRule::DnsLabel)
            .subresources(&[("status", check_status)]),
    )
    .warnings(warn)
    .defaults(&[
        TypeDefaults::of("apps.v1.StatefulSet").rule(default_claims_and_strategy).values(&[
            ("spec.podManagementPolicy", DefaultValue::Text("OrderedReady")),
            ("spec.persistentVolumeClaimRetentionPolicy", DefaultValue::EmptyObject),
            ("spec.replicas", DefaultValue::Number(1)),
            ("spec.revisionHistoryLimit", DefaultValue::Number(10)),
        ]),
        TypeDefaults::of("apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy").values(&[
            ("whenDeleted", DefaultValue::Text("Retain")),
            ("whenScaled", DefaultValue::Text("Retain")),
        ]),
    ])
    .columns(&[NAME, READY_OF_DESIRED, AGE, CONTAINERS, IMAGES]);

const CHANGEABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

fn check(set: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = set.field("spec");
    check_spec(&spec, true, errors);
}

fn check_spec(spec: &At<'_, '_>, is_new: bool, errors: &mut ErrorList) {
    let policy = spec.field("podManagementPolicy");
    match policy.text() {
        "" => policy.required(errors, ""),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid_text(errors, "must be 'OrderedReady' or 'Parallel'"),
    }
    check_strategy(&spec.field("updateStrategy"), errors);
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"].into_iter().filter(|_| retention.is_set()) {
        retention.field(field).one_of(errors, &["Retain", "Delete"]);
    }
    let claims = spec.field("volumeClaimTemplates");
    for claim in claims.items().filter(|_| is_new) {
        persistent_volume_claim::check_spec(&claim.field("spec"), errors);
    }
    spec.field("replicas").not_negative(errors);
    spec.field("minReadySeconds").not_negative(errors);
    let ordinals = spec.field("ordinals");
    if ordinals.int_of("start") < 0 {
        let start = ordinals.field("start");
        At::new(start.value(), spec.path().child("ordinals.start")).not_negative(errors);
    }
    if is_new && !spec.text_of("serviceName").is_empty() {
        spec.field("serviceName").is_format(errors, Format::Dns1123Label);
    }
    let wanted = template::required_selector(&spec.field("selector"), "statefulset", "", errors);
    let pods = spec.field("template");
    if let Some(wanted) = wanted {
        let filled = with_claims(pods.value(), claims.list());
        let filled = At::new(&filled, *pods.path());
        template::matches(&filled, &wanted, errors);
        template::check(&filled, errors);
        check_again(&filled, errors);
    }
    template::runs_forever(&pods, "StatefulSet", errors);
}

/// Kubernetes: labels and annotations are looked at twice.
fn check_again(pods: &At<'_, '_>, errors: &mut ErrorList) {
    let metadata = pods.field("metadata");
    let labels = metadata.field("labels");
    metadata::labels(&At::new(labels.value(), pods.path().child("labels")), errors);
    let annotations = metadata.field("annotations");
    let annotations = At::new(annotations.value(), pods.path().child("annotations"));
    metadata::annotations(&annotations, errors);
    pod::annotations(&annotations, &pods.field("spec"), errors);
}

/// The template as its pods will be: the claims are volumes, and the names come from the set.
fn with_claims(template: &Value, claims: &[Value]) -> Value {
    let mut template = template.clone();
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else { return template };
    spec.remove("subdomain");
    spec.remove("hostname");
    let names: Vec<_> = claims.iter().map(api::object::name).collect();
    let claimed: Taken<&str> = names.iter().copied().collect();
    let given = spec.remove("volumes");
    let given = given.iter().flat_map(|volumes| volumes.as_array().into_iter().flatten());
    let others = given.filter(|volume| {
        volume.get("name").and_then(Value::as_str).is_none_or(|name| !claimed.contains(name))
    });
    // Kubernetes: claims of one name are one.
    let mut taken = Taken::default();
    let once = names.iter().filter(|name| taken.add(**name));
    let made = once.map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let volumes: Vec<_> = made.chain(others.cloned()).collect();
    if !volumes.is_empty() {
        spec.insert("volumes".to_owned(), volumes.into());
    }
    template
}

fn check_strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
    let rolling = strategy.field("rollingUpdate");
    match strategy.text_of("type") {
        "" => strategy.required(errors, ""),
        "OnDelete" if rolling.is_set() => {
            let shown =
                internal::shown("io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy", rolling.value());
            rolling.invalid_as(errors, shown, "only allowed for updateStrategy 'RollingUpdate'");
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            rolling.field("partition").not_negative(errors);
            let unavailable = rolling.field("maxUnavailable");
            if unavailable.is_set() {
                rollout::count_or_percent(&unavailable, errors);
                if rollout::amount(&unavailable) == 0 {
                    unavailable.invalid(errors, "cannot be 0");
                }
                rollout::at_most_all(&unavailable, errors);
            }
        }
        _ => {
            let shown: BadValue =
                internal::shown("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", strategy.value());
            strategy.invalid_as(errors, shown, "must be 'RollingUpdate' or 'OnDelete'");
        }
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    check_spec(&spec, false, errors);
    let fixed = |spec: &At<'_, '_>| {
        let mut fixed = spec.value().clone();
        if let Some(fields) = fixed.as_object_mut() {
            fields.retain(|field, _| !CHANGEABLE.contains(&field.as_str()));
        }
        fixed
    };
    if fixed(&spec) != fixed(&old_spec) {
        let problem = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
            'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' \
            are forbidden";
        spec.forbidden(errors, problem);
    }
}

fn check_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    const ALL: [&str; 7] = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let status = new.field("status");
    let limited = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    rollout::counters(&status, &ALL, &limited, errors);
    rollout::available_at_most_ready(&status, "status.readyReplicas", errors);
    rollout::collisions_only_grow(&status, &old.field("status"), errors);
}

fn default_claims_and_strategy(set: &mut Members) {
    let spec = member::made(set, "spec");
    // Kubernetes: unlike templates of pods, these say what they are.
    for claim in member::items_mut(spec, "volumeClaimTemplates") {
        claim.insert("apiVersion".to_owned(), "v1".into());
        claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
    }
    let strategy = member::made(spec, "updateStrategy");
    if !member::is_set(strategy, "type") {
        strategy.insert("type".to_owned(), ROLLING_UPDATE.into());
        member::made(strategy, "rollingUpdate");
    }
    if member::text(strategy, "type") == ROLLING_UPDATE
        && let Some(rolling) = member::present(strategy, "rollingUpdate")
    {
        member::default_to(rolling, "partition", 0);
    }
}

fn warn(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    if is_new_generation(object, old) {
        pod_warnings::check(&template_at_spec(object), warnings);
    }
    let spec = object.field("spec");
    if spec.int_of("revisionHistoryLimit") < 0 {
        let warning = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 \
            is recommended";
        warnings.push(warning.to_owned());
    }
}
