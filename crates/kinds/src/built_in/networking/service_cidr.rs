//! ServiceCIDR: a range that cluster IPs of services are taken from.

use api::field::ErrorList;
use api::name;

use super::GROUP;
use super::network_policy::parse_cidr;
use crate::built_in::BuiltIn;
use crate::cells::column::{AGE, Cell, NAME, string};
use crate::cells::row::texts;
use crate::strategy::{StatusMetadata, Strategy};
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::internal;
use crate::validate::validation::{UpdateChecks, Validation};

pub(crate) static SERVICE_CIDR: BuiltIn = BuiltIn::new(GROUP, "ServiceCIDR", "servicecidrs")
    .older_versions(&["v1beta1"])
    .strategy(Strategy::PLAIN.status().status_metadata(StatusMetadata::Little))
    .validation(Validation::new(check).update(UpdateChecks::CHANGE.compare(check_change)))
    .columns(&[
        NAME,
        string("CIDRs", Cell::Computed(|it| texts(it.at("/spec/cidrs")).join(",").into())),
        AGE,
    ]);

fn check(object: &At<'_, '_>, errors: &mut ErrorList) {
    let spec = object.field("spec");
    let ranges = spec.field("cidrs");
    if ranges.is_empty() {
        ranges.required(errors, "at least one CIDR required");
        return;
    }
    if ranges.list().len() > 2 {
        let shown = internal::shown("io.k8s.api.networking.v1.ServiceCIDRSpec", spec.value());
        ranges.invalid_as(errors, shown, "may only hold up to 2 values");
        return;
    }
    for range in ranges.items() {
        errors.extend(name::cidr(range.path(), range.text()));
    }
    let families: Vec<_> =
        ranges.items().filter_map(|range| parse_cidr(range.text())).map(|(ip, _)| ip.is_ipv4()).collect();
    if matches!(families.as_slice(), [first, second] if first == second) {
        let problem =
            "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        ranges.invalid(errors, problem);
    }
}

fn check_change(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    let (ranges, old_ranges) = (spec.field("cidrs"), old_spec.field("cidrs"));
    for (range, old) in ranges.items().zip(old_ranges.items()) {
        range.immutable(errors, &old);
    }
    if ranges.list().len() < old_ranges.list().len() {
        ranges.invalid(errors, IMMUTABLE);
    }
}
