//! CSIDriver: what a CSI driver can do, and what it wants to know.

use api::field::{Error, ErrorList, Path};
use serde_json::{Value, json};

use super::GROUP;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, boolean, string};
use crate::cells::row::{NONE, UNSET, joined, or, texts};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::strategy::Strategy;
use crate::strategy::builder::SPEC;
use crate::validate::at::At;
use crate::validate::taken::Taken;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static CSI_DRIVER: BuiltIn = BuiltIn::new(GROUP, "CSIDriver", "csidrivers")
    .older_versions(&["v1beta1"])
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .requires_resource_version()
            // Kubernetes: a new one has no generation, but changes are counted.
            .counts_generation_of(SPEC)
            .first_generation(0)
            .disabled_fields(&[&["spec", "preventPodSchedulingIfMissing"]]),
    )
    .validation(Validation::new(check).update(UpdateChecks::BODY.compare(check_change)))
    .warnings(warn)
    .defaults(&[TypeDefaults::of("storage.v1.CSIDriver").values(&[
        ("spec.attachRequired", DefaultValue::Flag(true)),
        ("spec.podInfoOnMount", DefaultValue::Flag(false)),
        ("spec.storageCapacity", DefaultValue::Flag(false)),
        ("spec.fsGroupPolicy", DefaultValue::Text("ReadWriteOnceWithFSType")),
        ("spec.volumeLifecycleModes", DefaultValue::Computed(|| json!(["Persistent"]))),
        ("spec.requiresRepublish", DefaultValue::Flag(false)),
        ("spec.seLinuxMount", DefaultValue::Flag(false)),
    ])])
    .columns(&[
        NAME,
        boolean(
            "AttachRequired",
            Cell::Computed(|it| it.at("/spec/attachRequired").as_bool().unwrap_or(true).into()),
        ),
        boolean("PodInfoOnMount", Cell::Flag("/spec/podInfoOnMount")),
        boolean("StorageCapacity", Cell::Flag("/spec/storageCapacity")),
        string("TokenRequests", Cell::Computed(|it| audiences(it.at("/spec/tokenRequests")).into())),
        boolean("RequiresRepublish", Cell::Flag("/spec/requiresRepublish")),
        string(
            "Modes",
            Cell::Computed(|it| or(&texts(it.at("/spec/volumeLifecycleModes")).join(","), NONE).into()),
        ),
        AGE,
    ]);

fn check(driver: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = driver.field("spec");
    // Kubernetes: the first name is not quite that of the field.
    for (field, shown) in [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ] {
        if !spec.has(field) {
            spec.field(shown).required(errors, "");
        }
    }
    spec.field("fsGroupPolicy").optional_one_of(errors, &["File", "None", "ReadWriteOnceWithFSType"]);
    let requests = spec.field("tokenRequests");
    let mut taken = Taken::default();
    for request in requests.items() {
        let audience = request.field("audience");
        if !taken.add(audience.text()) {
            errors.push(Error::duplicate(audience.path(), audience.text()));
            continue;
        }
        let expiration = request.field("expirationSeconds");
        if expiration.is_set() && expiration.int() < 600 {
            expiration.invalid_int(errors, "may not specify a duration less than 10 minutes");
        }
        if expiration.int() > 1 << 32 {
            expiration.invalid_int(errors, "may not specify a duration larger than 2^32 seconds");
        }
    }
    let modes = spec.field("volumeLifecycleModes");
    for mode in modes.items().filter(|mode| !matches!(mode.text(), "Persistent" | "Ephemeral")) {
        errors.push(Error::not_supported(modes.path(), mode.text(), ["Persistent", "Ephemeral"]));
    }
    let period = spec.field("nodeAllocatableUpdatePeriodSeconds");
    if period.is_set() && period.int() < 10 {
        period.invalid_int(errors, "must be greater than or equal to 10 seconds");
    }
    let in_secrets = spec.field("serviceAccountTokenInSecrets");
    if in_secrets.is_set() && requests.is_empty() {
        in_secrets.invalid(errors, "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let attach = spec.field("attachRequired");
    At::new(attach.value(), Path::new("spec.attachedRequired"))
        .immutable(errors, &old_spec.field("attachRequired"));
    spec.field("volumeLifecycleModes").immutable(errors, &old_spec.field("volumeLifecycleModes"));
}

fn warn(object: &At<'_, '_>, old: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = object.field("spec");
    let requests = spec.field("tokenRequests");
    let is_new = old.is_none_or(|old| old["spec"].get("tokenRequests") != Some(requests.value()));
    if is_new && !requests.is_empty() && !spec.has("serviceAccountTokenInSecrets") {
        warnings.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes"
                .to_owned(),
        );
    }
}

fn audiences(requests: &Value) -> String {
    if requests.is_null() { UNSET.to_owned() } else { joined(requests, "audience") }
}
