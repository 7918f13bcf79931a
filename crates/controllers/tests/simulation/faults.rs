//! Faults, drawn one by one: refused and lost requests, watches that end, lag or stop, crashes.

use super::driver::Machine;
use std::time::Duration;
use testkit::{Fault, HeldWatches, Rule};
use twin::workload::NODES;

/// The watched resources that stories change.
const RESOURCES: [&str; 14] = [
    "pods",
    "pods",
    "nodes",
    "deployments",
    "replicasets",
    "statefulsets",
    "daemonsets",
    "jobs",
    "cronjobs",
    "replicationcontrollers",
    "controllerrevisions",
    "services",
    "endpointslices",
    "*",
];
const MANAGER: &str = "system:kube-controller-manager";

/// The faults that last.
#[derive(Default)]
pub(crate) struct Faults {
    held: Vec<HeldWatches>,
}

/// Perhaps adds a fault, and perhaps ends those that last.
pub(crate) async fn change(machine: &mut Machine, faults: &mut Faults) {
    if machine.draw.one_in(3) {
        faults.held.clear();
    }
    if machine.draw.one_in(6) {
        machine.cluster.lift_faults();
    }
    let resource = machine.draw.pick(&RESOURCES);
    match machine.draw.below(16) {
        0..=3 => refuse(machine),
        4 | 5 => lose(machine),
        6 => drop(machine.cluster.drop_watches(resource)),
        7 => end_watches(machine, resource),
        8 => {
            faults.held.push(machine.cluster.hold_watches(resource));
            machine.has_late_watches = true;
        }
        9 => {
            machine.cluster.compact().await;
            machine.cluster.drop_watches(resource);
        }
        10 => lag(machine, resource),
        11 => delay(machine),
        12 if machine.draw.one_in(2) => machine.restart().await,
        12 | 13 => crash(machine),
        _ => {}
    }
}

/// The writes of one user, or of one resource by anyone but the administrator.
fn writes(machine: &mut Machine) -> Rule {
    let accounts = controllers::ALL.len();
    let user = match machine.draw.below(accounts + NODES + 2) {
        at if at < accounts => format!("system:serviceaccount:kube-system:{}", controllers::ALL[at].account),
        at if at < accounts + NODES => format!("system:node:node-{}", at - accounts),
        at if at == accounts + NODES => "system:kube-scheduler".to_owned(),
        _ => MANAGER.to_owned(),
    };
    Fault::on("write", "*").by(&user)
}

fn refuse(machine: &mut Machine) {
    let rule = writes(machine);
    let rule = match machine.draw.one_in(2) {
        true => rule.nth(1 + machine.draw.below(8) as u64),
        false => rule.times(1 + machine.draw.below(5) as u64),
    };
    let answers = [
        (409, "Conflict"),
        (409, "Conflict"),
        (500, "InternalError"),
        (503, "ServiceUnavailable"),
        (504, "Timeout"),
        (429, "TooManyRequests"),
    ];
    let (code, reason) = machine.draw.pick(&answers);
    machine.cluster.inject(rule.error(code, reason));
}

fn lose(machine: &mut Machine) {
    let rule = writes(machine).nth(1 + machine.draw.below(8) as u64);
    let fault = if machine.draw.one_in(3) { rule.lose_request() } else { rule.lose_answer() };
    machine.cluster.inject(fault);
}

fn end_watches(machine: &mut Machine, resource: &str) {
    let events = machine.draw.below(4);
    let rule = Fault::on("watch", resource).by(MANAGER).times(1 + machine.draw.below(3) as u64);
    let fault = match machine.draw.below(3) {
        0 => rule.cut_after(events),
        1 => rule.close_after(events),
        _ => rule.expire_after(events),
    };
    machine.cluster.inject(fault);
    machine.cluster.drop_watches(resource);
}

fn lag(machine: &mut Machine, resource: &str) {
    machine.has_late_watches = true;
    let duration = Duration::from_millis(1 + machine.draw.below(1000) as u64);
    machine.cluster.inject(Fault::on("watch", resource).by(MANAGER).always().lag(duration));
    machine.cluster.drop_watches(resource);
}

fn delay(machine: &mut Machine) {
    let duration = Duration::from_millis(1 + machine.draw.below(500) as u64);
    let fault = writes(machine).always().delay(duration);
    machine.cluster.inject(fault);
}

fn crash(machine: &mut Machine) {
    if machine.crash.is_some() {
        return;
    }
    let rule = writes(machine).nth(1 + machine.draw.below(6) as u64);
    let (fault, point) = rule.crash(machine.draw.one_in(2));
    machine.cluster.inject(fault);
    machine.crash = Some(point);
}
