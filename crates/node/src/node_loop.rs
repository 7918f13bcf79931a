//! Keeps the Node objects and leases of simulated nodes: registration, heartbeat, report.

use crate::{
    fleet::{Account, Fleet, Heartbeat, is_stopped},
    machine,
};
use futures::stream;
use jiff::Timestamp;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, ObjectReference},
};
use kube::{Api, ResourceExt, api::PostParams};
use operator::{Context, Controller, Failure, Key, Next, all, event::EventType, status};
use std::{sync::Arc, time::Duration};

/// Kubernetes: a quarter of the duration of a lease.
const RENEW: Duration = Duration::from_secs(10);
/// Kubernetes: up to this share later, so that nodes do not renew all at once.
const JITTER: f64 = 0.04;
/// So many nodes write at once.
const WORKERS: usize = 16;

pub(crate) fn controller(fleet: &Arc<Fleet>) -> Controller {
    let names = fleet.settings.names();
    Controller::new("simulated-nodes", all::<Node>())
        .stream(stream::iter(names.into_iter().map(|name| Key::new(None, &name))))
        .workers(WORKERS)
        .reconcile(Arc::clone(fleet), reconcile)
}

async fn reconcile(context: Context<Arc<Fleet>>, key: Key) -> Result<Next, Failure> {
    let (fleet, name, now) = (context.state(), key.name(), context.wall());
    let heartbeat = fleet.heartbeat(name);
    let node = match (context.get::<Node>(&key)?, &heartbeat) {
        (Some(node), _) => node,
        // Kubernetes: a kubelet registers once; a node that is deleted after that stays deleted.
        (None, None) if fleet.settings.index(name).is_some() => {
            Arc::new(register(&context, name, now).await?)
        }
        (None, _) => return Ok(Next::Settled),
    };
    if !fleet.simulates(&node) {
        return Ok(Next::Settled);
    }
    let mut heartbeat = heartbeat.unwrap_or_default();
    if is_stopped(&node) {
        fleet.set_heartbeat(name, Heartbeat { renewed: None, ..heartbeat });
        return Ok(Next::WaitFor("the node to be started again"));
    }
    let account = fleet.account(&context, name);
    let images = fleet.ledger().images(name);
    let report = machine::report(&fleet.settings, &node, &images, now);
    let mut next_report = machine::next_report(&node);
    if machine::is_report_due(&node, &report, now) {
        let nodes: Api<Node> = Api::all(account.client.clone());
        status::set_if_unchanged(&nodes, &*node, &report).await?;
        next_report = now + machine::REPORT;
    }
    let renew = context.world().jitter(RENEW, JITTER);
    let left = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or_default();
    let is_due = heartbeat.renewed.is_none_or(|at| now.duration_since(at).unsigned_abs() >= RENEW);
    if is_due {
        heartbeat.lease = renew_lease(&account, &node, heartbeat.lease.as_ref(), now).await?;
        heartbeat.renewed = Some(now);
        fleet.set_heartbeat(name, heartbeat);
        return Ok(Next::CheckAfter(renew.min(left(next_report).max(Duration::from_secs(1)))));
    }
    let next_lease = heartbeat.renewed.map_or(now, |at| at + jiff::SignedDuration::from_secs(10));
    Ok(Next::CheckAfter(left(next_lease.min(next_report)).max(Duration::from_millis(1))))
}

/// Creates the Node object.
async fn register(context: &Context<Arc<Fleet>>, name: &str, now: Timestamp) -> Result<Node, Failure> {
    let fleet = context.state();
    let account = fleet.account(context, name);
    let node = machine::registration(&fleet.settings, name, now);
    let node = Api::<Node>::all(account.client.clone()).create(&PostParams::default(), &node).await?;
    fleet.set_heartbeat(name, Heartbeat::default());
    if fleet.settings.has_events {
        for (reason, message) in [
            ("Starting", "Starting kubelet.".to_owned()),
            ("NodeReady", format!("Node {name} status is now: NodeReady")),
        ] {
            account.events.record(reference(&node), EventType::Normal, reason, "", message);
        }
    }
    Ok(node)
}

/// Kubernetes: in the events of a kubelet, the UID of a node is its name.
fn reference(node: &Node) -> ObjectReference {
    let name = node.name_any();
    ObjectReference {
        kind: Some("Node".to_owned()),
        api_version: Some("v1".to_owned()),
        uid: Some(name.clone()),
        name: Some(name),
        ..ObjectReference::default()
    }
}

/// Renews the lease, from the object that was written last; without it, from the stored one.
async fn renew_lease(
    account: &Account,
    node: &Node,
    last: Option<&Lease>,
    now: Timestamp,
) -> Result<Option<Lease>, Failure> {
    let leases: Api<Lease> = Api::namespaced(account.client.clone(), machine::LEASES);
    let name = node.name_any();
    if let Some(last) = last {
        let renewed = machine::lease(node, Some(last), now);
        match leases.replace(&name, &PostParams::default(), &renewed).await {
            Ok(lease) => return Ok(Some(lease)),
            // Another client has deleted or changed the lease: read it again.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let renewed = match leases.get_opt(&name).await? {
        Some(stored) => {
            let renewed = machine::lease(node, Some(&stored), now);
            leases.replace(&name, &PostParams::default(), &renewed).await?
        }
        None => leases.create(&PostParams::default(), &machine::lease(node, None, now)).await?,
    };
    Ok(Some(renewed))
}
