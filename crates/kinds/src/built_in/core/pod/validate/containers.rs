//! The containers of a pod: regular, init and ephemeral ones, and what all of them must fulfil.

use api::field::{BadValue, Error, ErrorList};
use api::name::Format;

use super::volumes::Mountable;
use super::{environment, mounts, probes, requirements, security};
use crate::validate::at::At;
use crate::validate::taken::Taken;

const NO_RESTART_POLICY: &str = "must specify restartPolicy when restart rules are used";
const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// What a container can see of its pod.
#[derive(Debug)]
pub(super) struct Surroundings<'v> {
    pub(super) volumes: Mountable<'v>,
    pub(super) claims: Vec<&'v str>,
    pub(super) grace: Option<i64>,
    pub(super) restart_policy: &'v str,
    pub(super) host_users: bool,
    pub(super) os: Option<&'v str>,
}

pub(super) fn regular(spec: &At<'_, '_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    let containers = spec.field("containers");
    if containers.is_empty() {
        containers.required(errors, "");
        return;
    }
    let mut taken = Taken::default();
    for container in containers.items() {
        any(&container, around, errors);
        let name = container.field("name");
        if taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
        probes::lifecycle(&container, around, errors);
        probes::check(&container, around, errors);
        restart_rules(&container, errors);
    }
    host_port_conflicts(&containers, 0, usize::MAX, errors);
}

pub(super) fn init(spec: &At<'_, '_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    let (containers, regular) = (spec.field("initContainers"), spec.field("containers"));
    let mut taken = regular.items().map(|container| container.text_of("name")).collect::<Taken<_>>();
    for (index, container) in containers.items().enumerate() {
        any(&container, around, errors);
        init_restart_rules(&container, errors);
        let name = container.field("name");
        if taken.contains(&name.text()) {
            name.duplicate(errors);
        } else if !name.text().is_empty() {
            taken.push(name.text());
        }
        host_port_conflicts(&containers, index, 1, errors);
        let is_sidecar = container.text_of("restartPolicy") == "Always";
        if is_sidecar {
            probes::lifecycle(&container, around, errors);
            probes::check(&container, around, errors);
            continue;
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
            if container.has(field) {
                let problem = "may not be set for init containers without restartPolicy=Always";
                container.field(field).forbidden(errors, problem);
            }
        }
        let policies = container.field("resizePolicy");
        for policy in policies.items().filter(|it| it.text_of("restartPolicy") == "RestartContainer") {
            let problem = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            policy.field("restartPolicy").invalid_text(errors, problem);
        }
    }
}

pub(super) fn ephemeral(spec: &At<'_, '_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    let containers = spec.field("ephemeralContainers");
    let (regular, init) = (spec.field("containers"), spec.field("initContainers"));
    let others = regular.items().chain(init.items()).map(|it| it.text_of("name")).collect::<Taken<_>>();
    let mut taken = others.clone();
    for container in containers.items() {
        any(&container, around, errors);
        unpadded_image(&container, errors);
        let name = container.field("name");
        if taken.contains(&name.text()) {
            name.duplicate(errors);
        }
        taken.push(name.text());
        let target = container.field("targetContainerName");
        if !target.text().is_empty() && !others.contains(&target.text()) {
            target.not_found(errors);
        }
        for field in [
            "ports",
            "resources",
            "resizePolicy",
            "restartPolicy",
            "restartPolicyRules",
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle",
        ] {
            if !container.field(field).is_empty() {
                container.field(field).forbidden(errors, EPHEMERAL);
            }
        }
        let mounts = container.field("volumeMounts");
        for mount in mounts.items() {
            for field in ["subPath", "subPathExpr"] {
                if !mount.text_of(field).is_empty() {
                    mount.field(field).forbidden(errors, EPHEMERAL);
                }
            }
        }
    }
}

/// Templates are more patient: what they are filled in with may still trim it.
pub(super) fn unpadded_image(container: &At<'_, '_>, errors: &mut ErrorList) {
    let image = container.field("image");
    if image.text().trim() != image.text() {
        image.invalid_text(errors, "must not have leading or trailing whitespace");
    }
}

fn any(container: &At<'_, '_>, around: &Surroundings<'_>, errors: &mut ErrorList) {
    container.field("name").required_format(errors, Format::Dns1123Label);
    if container.text_of("image").is_empty() {
        container.field("image").required(errors, "");
    }
    container.field("terminationMessagePolicy").required_one_of(errors, &["File", "FallbackToLogsOnError"]);
    ports(&container.field("ports"), errors);
    environment::variables(&container.field("env"), errors);
    environment::sources(&container.field("envFrom"), errors);
    mounts::mounts(container, &around.volumes, errors);
    mounts::devices(container, &around.volumes, errors);
    container.field("imagePullPolicy").required_one_of(errors, PULL_POLICIES);
    requirements::of_container(&container.field("resources"), &around.claims, errors);
    resize_policies(&container.field("resizePolicy"), around.restart_policy, errors);
    security::of_container(&container.field("securityContext"), around.host_users, errors);
}

fn ports(ports: &At<'_, '_>, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for port in ports.items() {
        let name = port.field("name");
        if !name.text().is_empty() {
            if !Format::PortName.fits(name.text()) {
                name.is_format(errors, Format::PortName);
            } else if taken.contains(&name.text()) {
                name.duplicate(errors);
            } else {
                taken.push(name.text());
            }
        }
        let number = port.field("containerPort");
        if number.int() == 0 {
            number.required(errors, "");
        } else {
            number.port_number(errors);
        }
        if port.int_of("hostPort") != 0 {
            port.field("hostPort").port_number(errors);
        }
        port.field("protocol").required_one_of(errors, PROTOCOLS);
    }
}

/// Among so many containers from one on.
fn host_port_conflicts(containers: &At<'_, '_>, from: usize, count: usize, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for (position, container) in containers.items().skip(from).take(count).enumerate() {
        let ports = container.field("ports");
        for (index, port) in ports.items().enumerate() {
            let number = port.int_of("hostPort");
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", port.text_of("protocol"), port.text_of("hostIP"));
            if taken.contains(&key) {
                // Kubernetes: of an init container, the position is that in a list of one.
                let list = containers.path().index(position);
                let ports = list.child("ports");
                errors.push(Error::duplicate(&ports.index(index).child("hostPort"), key.as_str()));
            } else {
                taken.push(key);
            }
        }
    }
}

fn resize_policies(policies: &At<'_, '_>, pod_policy: &str, errors: &mut ErrorList) {
    let mut taken = Taken::default();
    for policy in policies.items() {
        let (resource, restart) = (policy.text_of("resourceName"), policy.text_of("restartPolicy"));
        if taken.contains(&resource) {
            errors.push(Error::duplicate(policy.path(), BadValue::json(resource)));
        }
        taken.push(resource);
        for (word, known) in [(resource, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])] {
            if word.is_empty() {
                policies.required(errors, "");
            } else if !known.contains(&word) {
                errors.push(Error::not_supported(policies.path(), BadValue::json(word), known));
            }
        }
        if pod_policy == "Never" && restart != "NotRequired" {
            let problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            policies.invalid_as(errors, BadValue::json(restart), problem);
        }
    }
}

/// Kubernetes: without a policy, the rules of an init container are not looked at.
fn init_restart_rules(container: &At<'_, '_>, errors: &mut ErrorList) {
    if container.has("restartPolicy") || container.field("restartPolicyRules").is_empty() {
        restart_rules(container, errors);
    } else {
        container.field("restartPolicy").required(errors, NO_RESTART_POLICY);
    }
}

fn restart_rules(container: &At<'_, '_>, errors: &mut ErrorList) {
    let (policy, rules) = (container.field("restartPolicy"), container.field("restartPolicyRules"));
    if policy.is_set() {
        policy.one_of(errors, &["Always", "Never", "OnFailure"]);
    } else if !rules.is_empty() {
        policy.required(errors, NO_RESTART_POLICY);
    }
    if rules.list().len() > 20 {
        errors.push(Error::too_many(rules.path(), rules.list().len(), 20));
    }
    for rule in rules.items() {
        rule.field("action").one_of(errors, &["Restart", "RestartAllContainers"]);
        let codes = rule.field("exitCodes");
        if !codes.is_set() {
            codes.required(errors, "must be specified");
            continue;
        }
        codes.field("operator").one_of(errors, &["In", "NotIn"]);
        let values = codes.field("values");
        if values.list().len() > 255 {
            errors.push(Error::too_many(values.path(), values.list().len(), 255));
        }
    }
}
