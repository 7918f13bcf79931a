//! StatefulSets: templates of pods and of the claims that stay with them.

use api::field::{BadValue, ErrorList};
use api::name::Format;
use serde_json::{Value, json};

use super::at::At;
use super::taken::Taken;
use super::{internal, persistent_volume_claim, pod, rollout, template};

const CHANGEABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

pub(super) fn body(set: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = set.field("spec");
    check(&spec, true, errors);
}

fn check(spec: &At<'_, '_>, is_new: bool, errors: &mut ErrorList) {
    let policy = spec.field("podManagementPolicy");
    match policy.text() {
        "" => policy.required(errors, ""),
        "OrderedReady" | "Parallel" => {}
        _ => policy.invalid_text(errors, "must be 'OrderedReady' or 'Parallel'"),
    }
    strategy(&spec.field("updateStrategy"), errors);
    let retention = spec.field("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"].into_iter().filter(|_| retention.is_set()) {
        retention.field(field).one_of(errors, &["Retain", "Delete"]);
    }
    let claims = spec.field("volumeClaimTemplates");
    for claim in claims.items().filter(|_| is_new) {
        persistent_volume_claim::spec(&claim.field("spec"), errors);
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
        again(&filled, errors);
    }
    template::runs_forever(&pods, "StatefulSet", errors);
}

/// Kubernetes: labels and annotations are looked at twice.
fn again(pods: &At<'_, '_>, errors: &mut ErrorList) {
    let metadata = pods.field("metadata");
    let labels = metadata.field("labels");
    super::metadata::labels(&At::new(labels.value(), pods.path().child("labels")), errors);
    let annotations = metadata.field("annotations");
    let annotations = At::new(annotations.value(), pods.path().child("annotations"));
    super::metadata::annotations(&annotations, errors);
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

fn strategy(strategy: &At<'_, '_>, errors: &mut ErrorList) {
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

pub(super) fn change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    check(&spec, false, errors);
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

pub(super) fn status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
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
