//! Two connections of another protocol than HTTP, joined: what comes from one is written to the other.

use crate::{
    call::Call,
    request::{ClientConnection, Upgrade},
    shared_places::SharedPlace,
};
use futures::{FutureExt, future::select};
use http::Response;
use hyper::{body::Incoming, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use std::{
    io,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use world::World;

/// Joined connections without a byte for so long are closed.
// Kubernetes: the streamingConnectionIdleTimeout of kubelets.
const IDLE: Duration = Duration::from_secs(4 * 3600);
/// How long the client may take to switch protocols.
const SWITCH: Duration = Duration::from_secs(30);
/// Bytes in transit, for each direction: a reader that is slow stops the writer.
const BUFFER: usize = 16 << 10;
/// How long the end of a connection may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Joins the client's connection with that of a kubelet or pod, once both have switched, until the place of either is
/// needed for another.
pub(super) fn join(call: &Call, client: Upgrade, mut kubelet: Response<Incoming>) {
    let place = kubelet.extensions_mut().remove::<Arc<SharedPlace>>();
    let (world, mut draining) = (call.inner.world.clone(), call.inner.draining.subscribe());
    let own_world = world.clone();
    let Upgrade { on_upgrade, connection, .. } = client;
    let joined = async move {
        let both = futures::future::try_join(on_upgrade, hyper::upgrade::on(kubelet));
        // A client that leaves instead is no error.
        let Ok(Ok((client, kubelet))) = own_world.timeout(SWITCH, both).await else { return };
        let drained = draining.wait_for(|draining| *draining).map(drop);
        let ended = async {
            match &place {
                Some(place) => place.end().wait().await,
                None => std::future::pending().await,
            }
        };
        let (drained, ended) = (pin!(drained), pin!(ended));
        select(pin!(pass(&own_world, client, kubelet)), select(drained, ended)).await;
    };
    let joined = ClientConnection::keep(connection, joined);
    world.spawn("joined connections", joined).detach();
}

/// Kubernetes: the end of one direction ends both.
async fn pass(world: &World, client: Upgraded, kubelet: Upgraded) {
    let (mut client, mut kubelet) = (TokioIo::new(client), TokioIo::new(kubelet));
    {
        let is_active = AtomicBool::new(false);
        let (mut from_client, mut to_client) = tokio::io::split(&mut client);
        let (mut from_kubelet, mut to_kubelet) = tokio::io::split(&mut kubelet);
        let there = pin!(copy(&mut from_client, &mut to_kubelet, &is_active));
        let back = pin!(copy(&mut from_kubelet, &mut to_client, &is_active));
        let idle = pin!(async {
            loop {
                world.sleep(IDLE).await;
                if !is_active.swap(false, Relaxed) {
                    return;
                }
            }
        });
        select(select(there, back), idle).await;
    }
    let farewell = futures::future::join(client.shutdown(), kubelet.shutdown());
    drop(world.timeout(FAREWELL, farewell).await);
}

async fn copy<R, W>(from: &mut R, to: &mut W, is_active: &AtomicBool) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        is_active.store(true, Relaxed);
        to.write_all(&buffer[..count]).await?;
        to.flush().await?;
    }
}
