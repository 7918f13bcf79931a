//! ResourceSlice: devices that a driver offers, and the nodes that reach them.

use api::field::{Error, ErrorList};
use api::name::Format;
use serde_json::Value;

use super::{GROUP, device, each_unique, names};
use crate::built_in::BuiltIn;
use crate::built_in::core::pod::validate as pod;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::defaults::member::{self, Members};
use crate::defaults::type_defaults::{DefaultValue, TypeDefaults};
use crate::selectable::{Refusal, Selectable, SelectableField};
use crate::strategy::builder::SPEC;
use crate::strategy::disabled::EACH;
use crate::strategy::{Circumstances, Strategy};
use crate::validate::at::At;
use crate::validate::internal;
use crate::validate::validation::{UpdateChecks, Validation};
use crate::validate::volume_source::csi_driver_name;

const MAX_DEVICES: usize = 128;
/// Of devices with taints or counters, which are longer.
const MAX_LONG_DEVICES: usize = 64;
const MAX_COUNTER_SETS: usize = 8;
const MAX_COUNTERS: usize = 32;

pub(crate) static RESOURCE_SLICE: BuiltIn = BuiltIn::new(GROUP, "ResourceSlice", "resourceslices")
    .older_versions(&["v1beta1", "v1beta2"])
    .strategy(
        Strategy::PLAIN
            .return_deleted_object()
            .counts_generation_of(SPEC)
            .on_create(date_taints)
            .on_update(|slice, _, with| date_taints(slice, with))
            .disabled_fields(&[
                &["spec", "devices", EACH, "nodeAllocatableResourceMappings"],
                &["spec", "devices", EACH, "attributes", EACH, "bools"],
                &["spec", "devices", EACH, "attributes", EACH, "ints"],
                &["spec", "devices", EACH, "attributes", EACH, "strings"],
                &["spec", "devices", EACH, "attributes", EACH, "versions"],
            ]),
    )
    .validation(Validation::new(check).update(UpdateChecks::CHANGE.compare(check_change)))
    .warnings(warn)
    .defaults(&[TypeDefaults::of("resource.v1.NodeAllocatableResourceMapping")
        .values(&[("allocationMultiplier", DefaultValue::Text("1"))])])
    .columns(&[
        NAME,
        string("Node", Cell::Text("/spec/nodeName")),
        string("Driver", Cell::Text("/spec/driver")),
        string("Pool", Cell::Text("/spec/pool/name")),
        AGE,
    ])
    .selectable(
        Selectable::new(&[
            SelectableField::NAME,
            SelectableField::text("spec.driver"),
            SelectableField::text("spec.nodeName"),
        ])
        .refusing(Refusal::ResourceSlice),
    );

/// Kubernetes takes this for a default; it lies here because it needs the time.
fn date_taints(slice: &mut Members, with: &Circumstances<'_>) {
    let now = with.now.to_string();
    let Some(spec) = member::present(slice, "spec") else { return };
    for device in member::items_mut(spec, "devices") {
        for taint in member::items_mut(device, "taints") {
            member::default_to(taint, "timeAdded", now.clone());
        }
    }
}

fn check(slice: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = slice.field("spec");
    check_spec(&spec, None, errors);
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    check_spec(&spec, Some(&old_spec), errors);
}

fn check_spec(spec: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    csi_driver_name(&spec.field("driver"), errors);
    let pool = spec.field("pool");
    names::pool(&pool.field("name"), errors);
    let (count, generation) = (pool.field("resourceSliceCount"), pool.field("generation"));
    if count.int() <= 0 {
        count.invalid_int(errors, "must be greater than zero");
    }
    if generation.int() < 0 {
        generation.invalid_int(errors, "must be greater than or equal to zero");
    }
    if let Some(old) = old {
        pool.field("name").immutable(errors, &old.field("pool").field("name"));
        for field in ["driver", "nodeName"] {
            spec.field(field).immutable(errors, &old.field(field));
        }
    }
    check_nodes(spec, errors);
    if spec.has("sharedCounters") && spec.has("devices") {
        spec.invalid_as(errors, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let devices = spec.field("devices");
    let is_long = |device: At<'_, '_>| {
        !device.field("taints").is_empty() || !device.field("consumesCounters").is_empty()
    };
    let most = if devices.items().any(is_long) { MAX_LONG_DEVICES } else { MAX_DEVICES };
    let by_device = spec.flag_of("perDeviceNodeSelection");
    each_unique(
        &devices,
        |it| it.text_of("name"),
        most,
        errors,
        |device, errors| {
            let before = old.map(|old| old.field("devices"));
            let before = before.as_ref().and_then(|devices| {
                devices.items().find(|it| it.text_of("name") == device.text_of("name")).map(|it| it.value())
            });
            device::check(device, before, by_device, errors);
        },
    );
    each_unique(
        &spec.field("sharedCounters"),
        |it| it.text_of("name"),
        MAX_COUNTER_SETS,
        errors,
        |set, errors| {
            set.field("name").required_format(errors, Format::Dns1123Label);
            check_counters(&set.field("counters"), errors);
        },
    );
}

/// Counters by name, at least one.
pub(super) fn check_counters(counters: &At<'_, '_>, errors: &mut ErrorList) {
    let count = counters.entries().count();
    if count == 0 {
        counters.required(errors, "");
    } else if count > MAX_COUNTERS {
        errors.push(Error::too_many(counters.path(), count, MAX_COUNTERS));
    } else {
        for (name, _) in counters.entries() {
            errors.extend(Format::Dns1123Label.check(counters.path(), name));
        }
    }
}

/// From which nodes the devices can be reached: said in one way.
fn check_nodes(spec: &At<'_, '_>, errors: &mut ErrorList) {
    let mut said = Vec::new();
    let name = spec.field("nodeName");
    if name.is_set() && name.text().is_empty() {
        name.invalid_text(errors, "must be either unset or set to a non-empty string");
    } else if name.is_set() {
        said.push("`nodeName`");
        name.is_format(errors, Format::Dns1123Subdomain);
    }
    let selector = spec.field("nodeSelector");
    if selector.is_set() {
        said.push("`nodeSelector`");
        pod::node_selector(&selector, errors);
        let terms = selector.field("nodeSelectorTerms");
        if terms.list().len() != 1 {
            let shown = internal::shown_core_list("NodeSelectorTerm", terms.list());
            terms.invalid_as(errors, shown, "must have exactly one node selector term");
        }
    }
    for (flag, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")]
    {
        if spec.has(flag) && spec.flag_of(flag) {
            said.push(shown);
        } else if spec.has(flag) {
            spec.field(flag).invalid(errors, "must be either unset or set to true");
        }
    }
    let needed =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    match said.len() {
        0 => spec.required(errors, needed),
        1 => {}
        _ => {
            let shown = format!("{{{}}}", said.join(", "));
            spec.invalid_as(errors, shown, format!("{needed}, but multiple fields are set"));
        }
    }
}

fn warn(slice: &At<'_, '_>, _: Option<&Value>, warnings: &mut Vec<String>) {
    let spec = slice.field("spec");
    let driver = spec.text_of("driver");
    if driver != driver.to_lowercase() {
        let driver = api::go::quote(driver);
        warnings.push(format!(
            "spec.driver: driver names should be lowercase; {driver} contains uppercase characters"
        ));
    }
}
