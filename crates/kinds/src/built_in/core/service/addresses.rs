//! Cluster addresses and their families, external addresses, and those of load balancers.

use std::{collections::HashSet, net::IpAddr};

use api::field::ErrorList;
use api::name::{self, Format};
use serde_json::Value;

use super::validate::is_headless;
use crate::validate::at::At;
use crate::validate::taken::Taken;

const FAMILIES: &[&str] = &["IPv4", "IPv6"];
const POLICIES: &[&str] = &["PreferDualStack", "RequireDualStack", "SingleStack"];
const FIXED: &str = "may not change once set";

/// An address that was there before stays right, whatever is said of such addresses today.
pub(super) fn check(spec: &At<'_, '_>, old: Option<&At<'_, '_>>, errors: &mut ErrorList) {
    let before = old.map(|old| old.field("clusterIPs").list()).unwrap_or_default();
    let before: HashSet<&str> = before.iter().filter_map(Value::as_str).collect();
    let (primary, ips) = (spec.text_of("clusterIP"), spec.field("clusterIPs"));
    let first = ips.list().first().and_then(|ip| ip.as_str());
    match (primary.is_empty(), first) {
        (false, None) => ips.required(errors, ""),
        (false, Some(first)) if first != primary => {
            ips.invalid(errors, "first value must match `clusterIP`");
        }
        (true, Some(_)) => ips.invalid(errors, "must be empty when `clusterIP` is not specified"),
        _ => {}
    }
    let families = spec.field("ipFamilies");
    let mut taken = Taken::default();
    for family in families.items() {
        family.one_of(errors, FAMILIES);
        if !taken.add(family.value()) {
            family.duplicate(errors);
        }
    }
    spec.field("ipFamilyPolicy").optional_one_of(errors, POLICIES);
    if !are_addresses(&ips, &before, errors) {
        return;
    }
    if let [first, second, ..] = ips.list()
        && is_v6(first.as_str().unwrap_or_default()) == is_v6(second.as_str().unwrap_or_default())
    {
        ips.invalid(errors, "may specify no more than one IP for each IP family");
    }
    for (index, (ip, family)) in ips.items().zip(families.items()).enumerate().filter(|_| !is_headless(spec))
    {
        if is_v6(ip.text()) != (family.text() == "IPv6") && FAMILIES.contains(&family.text()) {
            let problem =
                format!("expected an {} value as indicated by `ipFamilies[{index}]`", family.text());
            ip.invalid_text(errors, problem);
        }
    }
}

/// Whether it makes sense to compare them.
fn are_addresses(ips: &At<'_, '_>, before: &HashSet<&str>, errors: &mut ErrorList) -> bool {
    let mut are = true;
    for (index, ip) in ips.items().enumerate() {
        if index == 0 && ip.text() == "None" {
            if ips.list().len() > 1 {
                are = false;
                ips.invalid(errors, "'None' must be the first and only value");
            }
            continue;
        }
        if before.contains(ip.text()) {
            continue;
        }
        let problems = name::legacy_ip(ip.path(), ip.text());
        are &= problems.is_empty();
        errors.extend(problems);
    }
    if ips.list().len() > 2 {
        ips.invalid(errors, "may only hold up to 2 values");
    }
    are
}

fn is_v6(ip: &str) -> bool {
    ip.contains(':')
}

/// A primary address stays; a second one may come and go.
pub(super) fn change(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    if [spec, old].iter().any(|spec| spec.text_of("type") == "ExternalName") {
        return;
    }
    let (ips, old_ips) = (spec.field("clusterIPs"), old.field("clusterIPs"));
    if !(is_headless(spec) && is_headless(old)) {
        for (index, (ip, old_ip)) in ips.list().iter().zip(old_ips.list()).enumerate() {
            let both_or_primary = ips.list().len() == old_ips.list().len() || index == 0;
            if ip != old_ip && both_or_primary {
                let at = ips.index(index);
                at.invalid_as(errors, ips.value(), FIXED);
            }
        }
        if ips.is_empty() && !old_ips.is_empty() {
            ips.index(0).invalid(errors, "primary clusterIP can not be unset");
        }
        released(spec, ips.list().len(), old_ips.list().len(), "clusterIP", errors);
    }
    if is_headless(spec) || is_headless(old) {
        return;
    }
    let (families, old_families) = (spec.field("ipFamilies"), old.field("ipFamilies"));
    let is_same_length = families.list().len() == old_families.list().len();
    for (index, (family, old)) in families.list().iter().zip(old_families.list()).enumerate() {
        if family != old && (is_same_length || index == 0) {
            families.index(0).invalid_as(errors, families.value(), FIXED);
        }
    }
    released(spec, families.list().len(), old_families.list().len(), "ipFamily", errors);
}

fn released(spec: &At<'_, '_>, now: usize, before: usize, what: &str, errors: &mut ErrorList) {
    let policy = spec.field("ipFamilyPolicy");
    if now == 1 && before > 1 && policy.text() != "SingleStack" {
        let problem = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        policy.invalid(errors, problem);
    }
}

pub(super) fn external(ips: &At<'_, '_>, errors: &mut ErrorList) {
    for ip in ips.items() {
        let problems = name::legacy_ip(ip.path(), ip.text());
        if problems.is_empty() {
            endpoint_ip(&ip, errors);
        }
        errors.extend(problems);
    }
}

/// An address that something outside this machine can be at.
pub(crate) fn endpoint_ip(at: &At<'_, '_>, errors: &mut ErrorList) {
    let Ok(ip) = at.text().parse::<IpAddr>() else {
        at.invalid_text(errors, "must be a valid IP address");
        return;
    };
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.segments()[0] & 0xffc0 == 0xfe80, ip.segments()[0] & 0xff0f == 0xff02),
    };
    for (is_so, problem) in [
        (ip.is_unspecified(), format!("may not be unspecified ({})", at.text())),
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ] {
        if is_so {
            at.invalid_text(errors, problem);
        }
    }
}

pub(crate) fn ingress(ingresses: &At<'_, '_>, has_mode: bool, errors: &mut ErrorList) {
    for ingress in ingresses.items() {
        let (ip, mode, host) = (ingress.field("ip"), ingress.field("ipMode"), ingress.field("hostname"));
        if !ip.text().is_empty() {
            errors.extend(name::legacy_ip(ip.path(), ip.text()));
        }
        if has_mode && !mode.is_set() && !ip.text().is_empty() {
            mode.required(errors, "must be specified when `ip` is set");
        } else if mode.is_set() && ip.text().is_empty() {
            mode.forbidden(errors, "may not be specified when `ip` is not set");
        } else if mode.is_set() {
            mode.one_of(errors, &["Proxy", "VIP"]);
        }
        if !host.text().is_empty() {
            host.is_format(errors, Format::Dns1123Subdomain);
            if host.text().parse::<IpAddr>().is_ok() {
                host.invalid_text(errors, "must be a DNS name, not an IP address");
            }
        }
    }
}
