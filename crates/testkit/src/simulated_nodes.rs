//! The way from the server to simulated nodes and their pods, in memory: nothing leaves the test.

use node::Kubelet;
use server::{Connecting, KubeletAddress, KubeletStream, Kubelets};
use std::net::SocketAddr;
use testing::InProcessKubelets;
use world::World;

#[derive(Debug)]
pub(crate) struct SimulatedNodes {
    kubelets: InProcessKubelets,
    kubelet: Kubelet,
    world: World,
}

impl SimulatedNodes {
    pub(crate) fn new(world: &World, kubelet: &Kubelet) -> SimulatedNodes {
        let kubelets = InProcessKubelets::new(world, kubelet);
        SimulatedNodes { kubelets, kubelet: kubelet.clone(), world: world.clone() }
    }
}

impl Kubelets for SimulatedNodes {
    fn connect<'a>(&'a self, address: &'a KubeletAddress) -> Connecting<'a> {
        self.kubelets.connect(address)
    }

    fn connect_to_pod(&self, address: SocketAddr) -> Connecting<'_> {
        let opened = self.kubelet.connect_to_pod(&self.world, address);
        let unknown = || Err(format!("dial tcp {address}: connect: no route to host"));
        let stream = opened.unwrap_or_else(unknown).map(|stream| Box::new(stream) as Box<dyn KubeletStream>);
        Box::pin(async move { stream })
    }
}
