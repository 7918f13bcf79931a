//! The way from a server to the simulated nodes of its cluster: a connection in memory, the same protocol.

use futures::future::BoxFuture;
use node::{Kubelet, kubelet::API_SERVER};
use server::{KubeletAddress, KubeletStream, Kubelets};
use world::World;

/// Bytes in transit: a reader that is slow stops the writer.
const BUFFER: usize = 64 << 10;

#[derive(Debug)]
pub struct InProcessKubelets {
    world: World,
    kubelet: Kubelet,
}

impl InProcessKubelets {
    pub fn new(world: &World, kubelet: &Kubelet) -> InProcessKubelets {
        InProcessKubelets { world: world.clone(), kubelet: kubelet.clone() }
    }
}

impl Kubelets for InProcessKubelets {
    fn connect<'a>(&'a self, _: &'a KubeletAddress) -> BoxFuture<'a, Result<Box<dyn KubeletStream>, String>> {
        let (near, far) = tokio::io::duplex(BUFFER);
        let (world, kubelet) = (self.world.clone(), self.kubelet.clone());
        let serve = async move { kubelet.serve(&world, far, API_SERVER).await };
        self.world.spawn("connection to a simulated node", serve).detach();
        Box::pin(async move { Ok(Box::new(near) as Box<dyn KubeletStream>) })
    }
}
