//! Probes: when a container counts as started and ready, and when it is killed for a failing probe.

use super::{
    slot::{Role, Slot},
    stop,
};
use crate::{simulation::Simulation, times::later};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::time::Duration;

/// The results of the probes of one run.
#[derive(Clone, Debug)]
pub(super) struct Health {
    /// `None` if it never is.
    started_at: Option<Timestamp>,
    ready_at: Option<Timestamp>,
    pub(super) readiness_failure: Option<ReadinessFailure>,
    pub(super) kill: Option<Kill>,
}

#[derive(Clone, Debug)]
pub(super) struct ReadinessFailure {
    pub(super) at: Timestamp,
    pub(super) probe: Probe,
}

/// A probe that fails so often that the container is killed.
#[derive(Clone, Debug)]
pub(super) struct Kill {
    pub(super) at: Timestamp,
    pub(super) first_failure: Timestamp,
    /// `liveness` or `startup`.
    pub(super) probe: &'static str,
    spec: Probe,
}

/// The results of the probes of a run, past and future.
///
/// Probes succeed as soon as they are made, unless the script says otherwise, or their command can only fail.
pub(super) fn health(slot: &Slot<'_>, since: Timestamp, simulation: &Simulation<'_>) -> Health {
    let (container, part) = (&slot.container, slot.part);
    let failing = simulation.failing_probes(slot.at);
    let startup = container.startup_probe.as_ref();
    let is_startup_failing = (part.never_started || failing.startup) && startup.is_some();
    let unhealthy_after = part.unhealthy_after.map(|after| after.0);
    let unhealthy_after = unhealthy_after.or(failing.liveness.then_some(Duration::ZERO));
    let never_ready = part.never_ready || failing.readiness;
    let started_at = match startup {
        Some(_) if is_startup_failing => None,
        Some(probe) => Some(later(since, initial_delay(probe))),
        None => Some(since),
    };
    let kill = match (startup, &container.liveness_probe, unhealthy_after) {
        (Some(probe), _, _) if is_startup_failing => {
            Some(kill("startup", probe, later(since, initial_delay(probe))))
        }
        (_, Some(probe), Some(after)) => {
            let first = later(since, initial_delay(probe)).max(later(since, after));
            Some(kill("liveness", probe, first))
        }
        _ => None,
    };
    let readiness = container.readiness_probe.as_ref();
    let first_probe = started_at.zip(readiness).map(|(at, probe)| at.max(later(since, initial_delay(probe))));
    let scripted = part.ready_after.map_or(since, |after| later(since, after.0));
    let ready_at = started_at.filter(|_| !never_ready).map(|started| {
        let first = first_probe.unwrap_or(started).max(scripted);
        let repeats = readiness.and_then(|probe| probe.success_threshold).unwrap_or(1).max(1) - 1;
        later(first, readiness.map_or(SignedDuration::ZERO, period).saturating_mul(repeats))
    });
    let is_unready = ready_at.is_none_or(|ready| first_probe.is_some_and(|first| first < ready));
    let failure =
        first_probe.zip(readiness).filter(|_| is_unready && (never_ready || part.ready_after.is_some()));
    let readiness_failure = failure.map(|(at, probe)| ReadinessFailure { at, probe: probe.clone() });
    Health { started_at, ready_at: ready_at.filter(|_| slot.role != Role::Init), readiness_failure, kill }
}

fn kill(name: &'static str, probe: &Probe, first_failure: Timestamp) -> Kill {
    let repeats = probe.failure_threshold.unwrap_or(3).max(1) - 1;
    let at = later(first_failure, period(probe).saturating_mul(repeats));
    Kill { at, first_failure, probe: name, spec: probe.clone() }
}

fn initial_delay(probe: &Probe) -> SignedDuration {
    SignedDuration::from_secs(probe.initial_delay_seconds.unwrap_or_default().into())
}

fn period(probe: &Probe) -> SignedDuration {
    SignedDuration::from_secs(probe.period_seconds.unwrap_or(10).into())
}

impl Health {
    pub(super) fn is_started(&self, now: Timestamp) -> bool {
        self.started_at.is_some_and(|at| at <= now)
    }

    pub(super) fn is_ready(&self, now: Timestamp) -> bool {
        self.is_started(now) && self.ready_at.is_some_and(|at| at <= now)
    }

    /// When the next result changes.
    pub(super) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let failure = self.readiness_failure.as_ref().map(|failure| failure.at);
        let kill = self.kill.as_ref().map(|kill| kill.at);
        [self.started_at, self.ready_at, failure, kill].into_iter().flatten().filter(|at| *at > now).min()
    }
}

impl Kill {
    /// With a capital, as events begin.
    pub(super) fn title(&self) -> &'static str {
        if self.probe == "startup" { "Startup" } else { "Liveness" }
    }

    pub(super) fn output(&self, pod_ip: &str) -> String {
        output(&self.spec, pod_ip)
    }

    /// Kubernetes: a probe may have a grace period of its own.
    pub(super) fn grace(&self, pod: &Pod) -> Duration {
        let own = self.spec.termination_grace_period_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        own.map_or_else(|| stop::grace_of(pod), Duration::from_secs)
    }
}

/// What a failing probe reports.
pub(super) fn output(probe: &Probe, pod_ip: &str) -> String {
    let port = |port: &IntOrString| match port {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(name) => name.clone(),
    };
    match probe {
        Probe { http_get: Some(_), .. } => "HTTP probe failed with statuscode: 503".to_owned(),
        Probe { tcp_socket: Some(socket), .. } => {
            format!("dial tcp {pod_ip}:{}: connect: connection refused", port(&socket.port))
        }
        Probe { grpc: Some(_), .. } => "service unhealthy (responded with \"NOT_SERVING\")".to_owned(),
        _ => String::new(),
    }
}
