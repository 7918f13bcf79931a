//! The way to pods: those on simulated nodes answer in this process, whatever has their addresses elsewhere.

use node::Kubelet;
use server::{Connecting, KubeletAddress, KubeletStream, Kubelets, connect_to_pod};
use std::net::SocketAddr;
use world::World;

/// Simulated nodes that are reached as `nodes` does it, and their pods.
#[derive(Debug)]
pub(crate) struct SimulatedNodes<K> {
    nodes: K,
    kubelet: Kubelet,
    world: World,
}

impl<K> SimulatedNodes<K> {
    pub(crate) fn new(world: &World, nodes: K, kubelet: &Kubelet) -> SimulatedNodes<K> {
        SimulatedNodes { nodes, kubelet: kubelet.clone(), world: world.clone() }
    }
}

impl<K: Kubelets> Kubelets for SimulatedNodes<K> {
    fn connect<'a>(&'a self, address: &'a KubeletAddress) -> Connecting<'a> {
        self.nodes.connect(address)
    }

    fn connect_to_pod(&self, address: SocketAddr) -> Connecting<'_> {
        match self.kubelet.connect_to_pod(&self.world, address) {
            None => connect_to_pod(address),
            Some(opened) => {
                let stream = opened.map(|stream| Box::new(stream) as Box<dyn KubeletStream>);
                Box::pin(async move { stream })
            }
        }
    }
}
