//! Every node gets a range of its own for the addresses of its pods.

use crate::{Settings, settings::PodRange};
use k8s_openapi::api::core::v1::Node;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View, predicate, retry};
use serde_json::json;
use std::{collections::BTreeSet, net::Ipv4Addr};

/// Kubernetes: the length of a node's range, `--node-cidr-mask-size`.
const NODE_BITS: u32 = 24;

pub(crate) fn controller(settings: &Settings) -> Option<Controller> {
    let range = settings.pod_range?;
    let controller = Controller::new("cidrAllocator", all::<Node>())
        // A node that goes leaves its range to one that has none. One worker: no range is given twice.
        .watches_through(all::<Node>().when(predicate::deletion()), |nodes: &View<Node>, _: &Node| {
            let nodes = nodes.list().unwrap_or_default();
            nodes.iter().filter(|node| ranges(node).next().is_none()).map(|node| Key::of(&**node)).collect()
        })
        .reconcile(range, reconcile);
    Some(controller)
}

async fn reconcile(context: Context<PodRange>, key: Key) -> Result<Next, Failure> {
    let nodes = context.view::<Node>()?.list()?;
    let Some(node) = nodes.iter().find(|node| node.name_any() == key.name()) else {
        return Ok(Next::Settled);
    };
    if node.metadata.deletion_timestamp.is_some() || ranges(node).next().is_some() {
        return Ok(Next::Settled);
    }
    let taken: BTreeSet<&str> = nodes.iter().flat_map(|node| ranges(node)).collect();
    let Some(free) = next_free(*context.state(), &taken) else {
        return Ok(Next::WaitFor("a free range of pod addresses"));
    };
    let patch = json!({"metadata": {"uid": node.uid()}, "spec": {"podCIDR": free, "podCIDRs": [free]}});
    match context.cluster::<Node>().patch(key.name(), &PatchParams::default(), &Patch::Strategic(patch)).await
    {
        Err(error) if retry::is_missing(&error) => Ok(Next::Settled),
        result => Ok(result.map(|_| Next::Settled)?),
    }
}

fn ranges(node: &Node) -> impl Iterator<Item = &str> {
    let spec = node.spec.iter();
    spec.flat_map(|spec| spec.pod_cidrs.iter().flatten().chain(&spec.pod_cidr)).map(String::as_str)
}

/// The first range that no node has.
fn next_free(range: PodRange, taken: &BTreeSet<&str>) -> Option<String> {
    let count = 1u32 << NODE_BITS.saturating_sub(range.bits);
    let step = 1u32 << (u32::BITS - NODE_BITS);
    let nth = |index: u32| {
        let first = Ipv4Addr::from_bits(range.first.to_bits() + index * step);
        format!("{first}/{NODE_BITS}")
    };
    (0..count).map(nth).find(|free| !taken.contains(free.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_range_that_no_node_has_is_given() {
        for (range, taken, expected) in [
            ("10.244.0.0/16", &[][..], Some("10.244.0.0/24")),
            ("10.244.0.0/16", &["10.244.0.0/24", "10.244.2.0/24"], Some("10.244.1.0/24")),
            ("10.244.0.0/23", &["10.244.0.0/24", "10.244.1.0/24"], None),
            ("10.244.0.0/24", &[], Some("10.244.0.0/24")),
            ("255.255.254.0/23", &["255.255.254.0/24"], Some("255.255.255.0/24")),
        ] {
            let free = next_free(range.parse().unwrap(), &taken.iter().copied().collect());
            assert_eq!(free.as_deref(), expected, "{range} {taken:?}");
        }
    }
}
