//! What a kubelet may write into a pod's status.

use api::field::{BadValue, Error, ErrorList};
use api::name::{self, Format};

use super::change::changed_annotations;
use crate::validate::at::{At, IMMUTABLE};
use crate::validate::taken::Taken;
use std::{cell::LazyCell, collections::HashMap};

pub(crate) fn status(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    changed_annotations(new, old, errors);
    let (status, old_status) = (new.field("status"), old.field("status"));
    conditions(&status.field("conditions"), errors);
    let (spec, old_spec) = (new.field("spec"), old.field("spec"));
    claims(&status.field("resourceClaimStatuses"), &spec, errors);
    extended_claim(&status.field("extendedResourceClaimStatus"), &spec, errors);
    if spec.text_of("nodeName") != old_spec.text_of("nodeName") {
        status.field("nodeName").forbidden(errors, "may not be changed directly");
    }
    let (node, old_node) = (status.field("nominatedNodeName"), old_status.text_of("nominatedNodeName"));
    if !node.text().is_empty() && node.text() != old_node {
        node.is_format(errors, Format::Dns1123Subdomain);
        if !old_spec.text_of("nodeName").is_empty() {
            node.forbidden(errors, "may not be set on pods that are already bound to a node");
        }
    }
    let observed = status.field("observedGeneration");
    if observed.int() < 0 {
        observed.invalid_int(errors, "must be a non-negative integer");
    }
    if status.text_of("qosClass") != old_status.text_of("qosClass") {
        status.field("qosClass").invalid_text(errors, IMMUTABLE);
    }
    for field in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        transitions(&status.field(field), &old_status.field(field), &old_spec, field, errors);
    }
    addresses(&status.field("podIPs"), &old_status.field("podIPs"), errors);
    let host_ips = status.field("hostIPs");
    let first = host_ips.items().next().map(|first| first.text_of("ip"));
    if let Some(first) = first.filter(|first| *first != status.text_of("hostIP")) {
        host_ips.index(0).field("ip").invalid_as(errors, first, "must be equal to `hostIP`");
    }
    addresses(&host_ips, &old_status.field("hostIPs"), errors);
}

fn conditions(conditions: &At<'_, '_>, errors: &mut ErrorList) {
    for condition in conditions.items() {
        let observed = condition.field("observedGeneration");
        if observed.int() < 0 {
            observed.invalid_int(errors, "must be a non-negative integer");
        }
        let sort = condition.text_of("type");
        if !matches!(sort, "PodScheduled" | "Ready" | "Initialized") {
            errors.extend(Format::QualifiedName.check(&condition.path().child("Type"), sort));
        }
    }
}

/// What has ended runs again only where its restart policy says so.
fn transitions(
    now: &At<'_, '_>,
    before: &At<'_, '_>,
    spec: &At<'_, '_>,
    field: &str,
    errors: &mut ErrorList,
) {
    let has_ended = |status: &At<'_, '_>| status.field("state").has("terminated");
    let running: Taken<&str> =
        now.items().filter(|new| !has_ended(new)).map(|new| new.text_of("name")).collect();
    let list = if field == "initContainerStatuses" { "initContainers" } else { "containers" };
    let containers = spec.field(list);
    let by_name = LazyCell::new(|| first_by_name(&containers));
    for (index, old) in before.items().enumerate().filter(|(_, old)| has_ended(old)) {
        let name = old.text_of("name");
        let restarted = running.contains(name);
        let code =
            old.value().pointer("/state/terminated/exitCode").and_then(|code| code.as_i64()).unwrap_or(0);
        let may_restart = || may_restart(spec, list, by_name.get(name).copied(), code);
        if restarted && (field == "ephemeralContainerStatuses" || !may_restart()) {
            let path = now.path().index(index);
            let problem = "may not be transitioned to non-terminated state";
            errors.push(Error::forbidden(&path.child("state"), problem));
        }
    }
}

/// Items by their names; the first of a name counts.
pub(super) fn first_by_name<'v, 'q>(list: &'q At<'v, '_>) -> HashMap<&'v str, At<'v, 'q>> {
    let mut found = HashMap::new();
    for item in list.items() {
        found.entry(item.text_of("name")).or_insert(item);
    }
    found
}

/// Whether a container of a list, if its spec knows it, may run again after it has ended with a code.
fn may_restart(spec: &At<'_, '_>, list: &str, own: Option<At<'_, '_>>, code: i64) -> bool {
    let own = own.as_ref();
    let rules = own.map(|it| it.field("restartPolicyRules").list()).unwrap_or_default();
    let applies = |rule: &serde_json::Value| {
        let values = rule.pointer("/exitCodes/values").and_then(|values| values.as_array());
        let listed = values.is_some_and(|values| values.iter().any(|value| value.as_i64() == Some(code)));
        match rule.pointer("/exitCodes/operator").and_then(|operator| operator.as_str()) {
            Some("In") => listed,
            Some("NotIn") => !listed,
            _ => false,
        }
    };
    if rules.iter().any(applies) {
        return true;
    }
    let own = own.map(|it| it.text_of("restartPolicy")).filter(|policy| !policy.is_empty());
    match own.unwrap_or_else(|| spec.text_of("restartPolicy")) {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => list == "initContainers" && spec.text_of("restartPolicy") == "Always",
    }
}

/// What became of the claims of a pod, each of which its spec names.
fn claims(statuses: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut ErrorList) {
    let named = spec.field("resourceClaims");
    let named: Taken<&str> = named.items().map(|it| it.text_of("name")).collect();
    let mut taken = Taken::default();
    for status in statuses.items() {
        let (name, claim) = (status.field("name"), status.field("resourceClaimName"));
        if !named.contains(name.text()) {
            name.invalid_text(errors, "must match the name of an entry in `spec.resourceClaims`");
        }
        if taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
        if !claim.text().is_empty() {
            claim.is_format(errors, Format::Dns1123Subdomain);
        }
    }
}

/// The claim made for the extended resources that containers request.
fn extended_claim(status: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut ErrorList) {
    if !status.is_set() {
        return;
    }
    let mut requests = HashMap::new();
    for list in ["initContainers", "containers"] {
        for container in spec.field(list).items() {
            requests.insert(container.text_of("name"), &container.value()["resources"]["requests"]);
        }
    }
    let mappings = status.field("requestMappings");
    if mappings.is_empty() {
        mappings.required(errors, "at least one request mapping is required");
    }
    let mut taken = Taken::default();
    for mapping in mappings.items() {
        let fields = ["containerName", "resourceName", "requestName"];
        let [container, resource, request] = fields.map(|name| mapping.text_of(name));
        match requests.get(container) {
            Some(requests) if requests.get(resource).is_some() => {}
            Some(_) => mapping.field("resourceName").invalid_text(
                errors,
                "must match the extended resource name of an entry in spec.initContainers.resources.requests or \
                 spec.containers.resources.requests",
            ),
            None => mapping.field("containerName").invalid_text(
                errors,
                "must match the name of an entry in spec.initContainers.name or spec.containers.name",
            ),
        }
        // Kubernetes: the path leaves the mapping out.
        errors.extend(Format::Dns1123Label.check(status.field("requestName").path(), request));
        if !taken.add((container, resource, request)) {
            fields.into_iter().for_each(|name| mapping.field(name).duplicate(errors));
        }
    }
    let claim = status.field("resourceClaimName");
    match claim.text() {
        "" => claim.required(errors, ""),
        _ => claim.is_format(errors, Format::Dns1123Subdomain),
    }
}

/// At most one address of each IP family; addresses that were there before stay valid.
fn addresses(list: &At<'_, '_>, old: &At<'_, '_>, errors: &mut ErrorList) {
    let before: Taken<&str> = old.items().map(|item| item.text_of("ip")).collect();
    let mut families = Vec::new();
    let mut unreadable = None;
    for (index, item) in list.items().enumerate() {
        let ip = item.text_of("ip");
        if !before.contains(ip) {
            errors.extend(name::legacy_ip(item.path(), ip));
        }
        match name::parse_ip_leniently(ip) {
            Some(address) => families.push(address.to_canonical().is_ipv6()),
            None => _ = unreadable.get_or_insert((index, ip)),
        }
    }
    let count = list.items().count();
    if count < 2 {
        return;
    }
    if let Some((index, ip)) = unreadable {
        let cause = format!("failed to check for dual stack with error:invalid IP[{index}]: {ip}");
        errors.push(Error::internal(list.path(), cause));
    }
    if !matches!(*families, [first, second] if first != second) || count > 2 {
        // Kubernetes: in the form of its own types.
        let shown = list.items().map(|item| serde_json::json!({"IP": item.text_of("ip")}));
        let shown = BadValue::json(&shown.collect::<Vec<_>>());
        list.invalid_as(errors, shown, "may specify no more than one IP for each IP family");
    }
}
