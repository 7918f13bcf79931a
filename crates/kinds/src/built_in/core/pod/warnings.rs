//! Warnings about a pod, or about the template of pods.

use std::collections::HashMap;

use api::go;
use api::name::{Format, ip_warning};

use super::volume_paths;
use crate::built_in::core::{persistent_volume, persistent_volume_claim};
use crate::validate::at::At;
use crate::validate::taken::Taken;

const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF: &str = "container.seccomp.security.alpha.kubernetes.io/";
const APP_ARMOR_OF: &str = "container.apparmor.security.beta.kubernetes.io/";
const LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// Volumes whose drivers are gone.
const VOLUMES: [(&str, &str, &str); 9] = [
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];
const ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];
const LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
    ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
];

/// Of what has `metadata` and `spec`.
pub(crate) fn check(pod: &At<'_, '_>, warnings: &mut Vec<String>) {
    let (spec, metadata) = (pod.field("spec"), pod.field("metadata"));
    placement(&spec, warnings);
    let annotations = metadata.field("annotations");
    for (key, problem) in ANNOTATIONS.iter().filter(|(key, _)| annotations.has(key)) {
        warnings.push(format!("{}: {problem}", annotations.path().key(key)));
    }
    let volumes = spec.field("volumes");
    for volume in volumes.items() {
        for (_, shown, problem) in VOLUMES.iter().filter(|(field, _, _)| volume.has(field)) {
            warnings.push(format!("{}: {problem}", volume.field(shown).path()));
        }
        let ephemeral = volume.field("ephemeral");
        let claim = ephemeral.field("volumeClaimTemplate");
        persistent_volume_claim::warn_of_spec(&claim.field("spec"), warnings);
    }
    volume_paths::check(&volumes, warnings);
    repeated(&spec.field("hostAliases"), "ip", warnings);
    let secrets = spec.field("imagePullSecrets");
    repeated(&secrets, "name", warnings);
    for secret in secrets.items().filter(|secret| secret.text_of("name").is_empty()) {
        warnings.push(format!("{}: invalid empty name \"\"", secret.field("name").path()));
    }
    fractions(&spec.field("overhead"), warnings);
    let context = spec.field("securityContext");
    if !context.has("seccompProfile") && annotations.has(SECCOMP) {
        warnings.push(unused_seccomp(&annotations, SECCOMP));
    }
    for list in LISTS {
        let list = spec.field(list);
        for container in list.items() {
            old_profiles(&container, &annotations, warnings);
            let resources = container.field("resources");
            fractions(&resources.field("limits"), warnings);
            fractions(&resources.field("requests"), warnings);
            hidden_variables(&container.field("env"), warnings);
        }
    }
    ports(&spec, warnings);
    let grace = spec.field("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        let problem = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {problem}", grace.path()));
    }
    selectors(&spec, warnings);
    let config = spec.field("dnsConfig");
    let servers = config.field("nameservers");
    warnings.extend(servers.items().filter_map(|ip| ip_warning(ip.path(), ip.text())));
    let aliases = spec.field("hostAliases");
    for alias in aliases.items() {
        let ip = alias.field("ip");
        warnings.extend(ip_warning(ip.path(), ip.text()));
    }
}

fn unused_seccomp(annotations: &At<'_, '_>, key: &str) -> String {
    let instead = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    format!("{}: {instead}", annotations.path().key(key))
}

/// Annotations that say what a field should.
fn old_profiles(container: &At<'_, '_>, annotations: &At<'_, '_>, warnings: &mut Vec<String>) {
    let (name, context) = (container.text_of("name"), container.field("securityContext"));
    let seccomp = format!("{SECCOMP_OF}{name}");
    if !context.has("seccompProfile") && annotations.has(&seccomp) {
        warnings.push(unused_seccomp(annotations, &seccomp));
    }
    // The field of a pod has been filled in from the annotation where it makes sense.
    let armor = format!("{APP_ARMOR_OF}{name}");
    if !context.has("appArmorProfile") && annotations.has(&armor) {
        let instead = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
        warnings.push(format!("{}: {instead}", annotations.path().key(&armor)));
    }
}

pub(crate) fn deprecated_label(key: &str) -> Option<String> {
    let (_, since, instead) = LABELS.iter().find(|(label, _, _)| *label == key)?;
    Some(format!("deprecated since {since}; use {} instead", go::quote(instead)))
}

fn placement(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let wanted = spec.field("nodeSelector");
    for (key, value) in wanted.entries() {
        warnings.extend(deprecated_label(key).map(|problem| format!("{}: {problem}", value.path())));
    }
    let affinity = spec.field("affinity");
    let affinity = affinity.field("nodeAffinity");
    let required = affinity.field("requiredDuringSchedulingIgnoredDuringExecution");
    for term in required.field("nodeSelectorTerms").items() {
        persistent_volume::warn_of_node_term(&term, warnings);
    }
    for term in affinity.field("preferredDuringSchedulingIgnoredDuringExecution").items() {
        let term = term.field("preference");
        persistent_volume::warn_of_node_term(&term, warnings);
        odd_values(&term, warnings);
    }
    let constraints = spec.field("topologySpreadConstraints");
    for constraint in constraints.items() {
        let key = constraint.field("topologyKey");
        if let Some(problem) = deprecated_label(key.text()) {
            warnings.push(format!("{}: {} is {problem}", key.path(), key.text()));
        }
        null_selector(&constraint, warnings);
    }
}

/// Values that no label can have.
fn odd_values(term: &At<'_, '_>, warnings: &mut Vec<String>) {
    for expression in term.field("matchExpressions").items() {
        for value in expression.field("values").items() {
            for problem in Format::LabelValue.problems(value.text()) {
                warnings.push(format!("{}: {} is invalid, {problem}", value.path(), value.text()));
            }
        }
    }
}

fn null_selector(term: &At<'_, '_>, warnings: &mut Vec<String>) {
    let selector = term.field("labelSelector");
    if !selector.is_set() {
        warnings.push(format!("{}: a null labelSelector results in matching no pod", selector.path()));
    }
}

fn selectors(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let affinity = spec.field("affinity");
    for sort in ["podAffinity", "podAntiAffinity"] {
        let sort = affinity.field(sort);
        let required = sort.field("requiredDuringSchedulingIgnoredDuringExecution");
        for term in required.items() {
            null_selector(&term, warnings);
        }
        let preferred = sort.field("preferredDuringSchedulingIgnoredDuringExecution");
        for term in preferred.items() {
            null_selector(&term.field("podAffinityTerm"), warnings);
        }
    }
}

fn repeated(list: &At<'_, '_>, field: &str, warnings: &mut Vec<String>) {
    let mut taken = Taken::default();
    for item in list.items() {
        let value = item.text_of(field);
        if taken.contains(&value) {
            warnings.push(format!("{}: duplicate {field} {}", item.field(field).path(), go::quote(value)));
        }
        taken.push(value);
    }
}

fn fractions(amounts: &At<'_, '_>, warnings: &mut Vec<String>) {
    for (_, amount) in
        amounts.entries().filter(|(resource, _)| matches!(*resource, "memory" | "ephemeral-storage"))
    {
        if amount.quantity().is_some_and(|quantity| !quantity.is_integer()) {
            let shown = go::quote(amount.text());
            warnings.push(format!(
                "{}: fractional byte value {shown} is invalid, must be an integer",
                amount.path()
            ));
        }
    }
}

/// A later variable may build on an earlier one of its name, but not replace it.
fn hidden_variables(variables: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut taken = Taken::default();
    for variable in variables.items() {
        let (name, value) = (variable.text_of("name"), variable.text_of("value"));
        let reference = format!("$({name})");
        let builds_on = !variable.has("valueFrom") && value != reference && value.contains(&reference);
        if taken.contains(&name) && !builds_on {
            let shown = go::quote(name);
            warnings.push(format!(
                "{}: hides previous definition of {shown}, which may be dropped when using apply",
                variable.path()
            ));
        }
        taken.push(name);
    }
}

/// A port of a container, as far as others can get in its way.
struct Port<'v> {
    place: String,
    host_ip: &'v str,
    host_port: i64,
}

/// How many pairs of container ports are compared for duplicates; a pod with more gets warnings for the first only.
const MAX_PAIRS: usize = 100_000;

fn ports(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut same_number: HashMap<(i64, &str), Vec<Port<'_>>> = HashMap::new();
    let mut by_name: HashMap<&str, String> = HashMap::new();
    let (mut names, mut pairs) = (Vec::new(), 0);
    for list in LISTS {
        let list = spec.field(list);
        for container in list.items() {
            let ports = container.field("ports");
            for port in ports.items() {
                let place = port.path().to_string();
                let (number, protocol) = (port.int_of("containerPort"), port.text_of("protocol"));
                let (host_ip, host_port) = (port.text_of("hostIP"), port.int_of("hostPort"));
                let name = port.text_of("name");
                if !host_ip.is_empty() && host_port == 0 {
                    warnings.push(format!(
                        "{place}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} \
                         Protocol:{protocol} HostIP:{host_ip}}}",
                    ));
                }
                let others = same_number.entry((number, protocol)).or_default();
                let own = Port { place, host_ip, host_port };
                for other in others.iter().take(MAX_PAIRS - pairs) {
                    pairs += 1;
                    if let Some(how) = own.collides(other) {
                        let Port { place, .. } = &own;
                        warnings.push(format!("{place}: {how} port definition with {}", other.place));
                    }
                }
                match by_name.get(name) {
                    Some(other) => names.push(format!(
                        "{}: duplicate port name {} with {other}, services and probes that select ports by name will \
                         use {other}",
                        own.place,
                        go::quote(name)
                    )),
                    None if name.is_empty() => {}
                    None => drop(by_name.insert(name, own.place.clone())),
                }
                others.push(own);
            }
        }
    }
    warnings.extend(names);
}

impl Port<'_> {
    /// What is wrong about two ports of the same number and protocol.
    fn collides(&self, other: &Port<'_>) -> Option<&'static str> {
        let is_half_bound = self.host_ip.is_empty() != other.host_ip.is_empty();
        if (self.host_ip, self.host_port) == (other.host_ip, other.host_port) {
            Some("duplicate")
        } else if self.host_port == 0 || other.host_port == 0 {
            Some("overlapping")
        } else if self.host_port == other.host_port && is_half_bound {
            Some("dangerously ambiguous")
        } else {
            None
        }
    }
}
