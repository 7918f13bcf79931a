//! The status of a claim: which devices it got, who uses them, and what drivers report of them.

use std::collections::HashSet;

use api::field::{BadValue, Error, ErrorList};
use api::name::{Format, interface_address};
use serde::Serialize;
use serde_json::Value;

use super::check_references;
use crate::built_in::core::pod::validate as pod;
use crate::built_in::resource::{
    MAX_CONFIGURATIONS, configuration, device, each, each_unique, names, raw_object,
};
use crate::defaults::member::{self, Members};
use crate::strategy::Circumstances;
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::taken::Taken;
use crate::validate::volume_source::csi_driver_name;
use crate::validate::{condition, internal};

const MAX_HOLDERS: usize = 256;
const MAX_RESULTS: usize = 32;
const MAX_CONDITIONS: usize = 8;
const MAX_INTERFACE_NAME: usize = 256;
const MAX_HARDWARE_ADDRESS: usize = 128;
const MAX_ADDRESSES: usize = 16;

pub(super) fn check_status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, status, old_status) = (new.field("spec"), new.field("status"), old.field("status"));
    let devices = spec.field("devices");
    let requests = devices.field("requests");
    let (allocation, before) = (status.field("allocation"), old_status.field("allocation"));
    check_holders(&status.field("reservedFor"), errors);
    check_reported(&status.field("devices"), &allocation, errors);
    let holders = status.field("reservedFor");
    if !holders.is_empty() && !allocation.is_set() {
        holders.forbidden(errors, "may not be specified when `allocated` is not set");
    } else if !holders.is_empty() && api::object::is_deleting(new.value()) {
        let earlier: Taken<&Value> = old_status.field("reservedFor").list().iter().collect();
        if holders.list().iter().any(|holder| !earlier.contains(holder)) {
            let problem =
                "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            holders.forbidden(errors, problem);
        }
    }
    if allocation.is_set() && before.is_set() {
        if allocation.value() != before.value() {
            let shown = internal::shown("io.k8s.api.resource.v1.AllocationResult", allocation.value());
            allocation.invalid_as(errors, shown, IMMUTABLE);
        }
    } else if allocation.is_set() {
        check_allocation(&allocation, &requests, errors);
    }
}

fn check_holders(holders: &At<'_, '_>, errors: &mut ErrorList) {
    let fits = each(holders, MAX_HOLDERS, errors, |holder, errors| {
        for field in ["resource", "name", "uid"] {
            if holder.text_of(field).is_empty() {
                holder.field(field).required(errors, "");
            }
        }
    });
    let mut taken = Taken::default();
    for holder in holders.items().filter(|_| fits) {
        let uid = holder.text_of("uid");
        if !taken.add(uid) {
            errors.push(Error::duplicate(holder.path(), uid));
        }
    }
}

fn check_allocation(allocation: &At<'_, '_>, requests: &At<'_, '_>, errors: &mut ErrorList) {
    let devices = allocation.field("devices");
    each(&devices.field("results"), MAX_RESULTS, errors, |result, errors| {
        names::request_reference(&result.field("request"), requests, errors);
        csi_driver_name(&result.field("driver"), errors);
        names::pool(&result.field("pool"), errors);
        result.field("device").is_format(errors, Format::Dns1123Label);
        device::binding_conditions(result, errors);
        if result.has("shareID") {
            names::uuid(&result.field("shareID"), errors);
        }
    });
    each(&devices.field("config"), 2 * MAX_CONFIGURATIONS, errors, |it, errors| {
        it.field("source").required_one_of(errors, &["FromClaim", "FromClass"]);
        check_references(&it.field("requests"), requests, errors);
        configuration(it, errors);
    });
    if allocation.has("nodeSelector") {
        pod::node_selector(&allocation.field("nodeSelector"), errors);
    }
}

/// Driver, pool, device and share.
fn identity_at<'v>(device: &At<'v, '_>) -> [&'v str; 4] {
    ["driver", "pool", "device", "shareID"].map(|field| device.text_of(field))
}

fn check_reported(devices: &At<'_, '_>, allocation: &At<'_, '_>, errors: &mut ErrorList) {
    let results = allocation.field("devices");
    let results = results.field("results");
    let allocated: Taken<[&str; 4]> = results.items().map(|result| identity_at(&result)).collect();
    let mut taken = Taken::default();
    let mut repeated = Vec::new();
    for device in devices.items() {
        csi_driver_name(&device.field("driver"), errors);
        names::pool(&device.field("pool"), errors);
        device.field("device").is_format(errors, Format::Dns1123Label);
        if device.has("shareID") {
            names::uuid(&device.field("shareID"), errors);
        }
        let of = identity_at(&device);
        if !allocated.contains(&of) {
            device.invalid_as(errors, shown(&of), "must be an allocated device in the claim");
        }
        let conditions = device.field("conditions");
        if conditions.list().len() > MAX_CONDITIONS {
            errors.push(Error::too_many(conditions.path(), conditions.list().len(), MAX_CONDITIONS));
        }
        condition::check(&conditions, errors);
        if device.has("data") {
            raw_object(&device.field("data"), errors);
        }
        check_network(&device.field("networkData"), errors);
        if !taken.add(of) {
            repeated.push(Error::duplicate(device.path(), shown(&of)));
        }
    }
    errors.extend(repeated);
}

/// Kubernetes: its type for this has no JSON names.
fn shown([driver, pool, device, share]: &[&str; 4]) -> BadValue {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct SharedDevice<'d> {
        driver: &'d str,
        pool: &'d str,
        device: &'d str,
        #[serde(rename = "ShareID")]
        share: &'d str,
    }
    BadValue::json(&SharedDevice { driver, pool, device, share })
}

fn check_network(network: &At<'_, '_>, errors: &mut ErrorList) {
    for (field, most) in [("interfaceName", MAX_INTERFACE_NAME), ("hardwareAddress", MAX_HARDWARE_ADDRESS)] {
        if network.text_of(field).len() > most {
            errors.push(Error::too_long(network.field(field).path(), most));
        }
    }
    each_unique(
        &network.field("ips"),
        |it| it.text(),
        MAX_ADDRESSES,
        errors,
        |address, errors| {
            errors.extend(interface_address(address.path(), address.text()));
        },
    );
}

/// What is said of devices goes when they are no longer allocated.
pub(super) fn prepare_status(claim: &mut Members, old: &Members, _: &Circumstances<'_>) {
    let lost: HashSet<_> = {
        let still: HashSet<_> = allocated(claim).collect();
        allocated(old).filter(|device| !still.contains(device)).map(owned).collect()
    };
    let Some(status) = member::present(claim, "status") else { return };
    let Some(devices) = status.get_mut("devices").and_then(Value::as_array_mut) else { return };
    devices.retain(|device| {
        let device = device.as_object().map(identity).map(owned);
        device.is_none_or(|device| !lost.contains(&device))
    });
    if devices.is_empty() {
        status.remove("devices");
    }
}

/// Driver, pool, device and share.
fn identity(device: &Members) -> [&str; 4] {
    ["driver", "pool", "device", "shareID"].map(|name| member::text(device, name))
}

fn owned(identity: [&str; 4]) -> [String; 4] {
    identity.map(str::to_owned)
}

fn allocated(claim: &Members) -> impl Iterator<Item = [&str; 4]> {
    let status = member::object(claim, "status");
    let allocation = status.and_then(|status| member::object(status, "allocation"));
    let devices = allocation.and_then(|allocation| member::object(allocation, "devices"));
    devices.into_iter().flat_map(|devices| member::items(devices, "results")).map(identity)
}
