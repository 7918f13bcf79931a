//! The connections of a server in this process: limited in number, and closed when the server is dropped.

use futures::{
    StreamExt,
    future::{Either, pending, select},
    stream::FuturesUnordered,
};
use std::{convert::Infallible, pin::pin, time::Duration};
use tokio::net::{TcpListener, TcpStream};
use world::{Task, World};

/// The pause after the system has refused another socket.
const NO_ROOM: Duration = Duration::from_millis(50);

/// Accepts connections, and owns the tasks that serve them.
pub(crate) struct Connections {
    world: World,
    /// Of the tasks, and in the log.
    name: &'static str,
    listener: TcpListener,
    /// Further connections wait until one ends.
    most: usize,
    open: FuturesUnordered<Task<()>>,
}

impl Connections {
    pub(crate) fn new(world: &World, name: &'static str, listener: TcpListener, most: usize) -> Connections {
        Connections { world: world.clone(), name, listener, most, open: FuturesUnordered::new() }
    }

    /// Serves each connection in a task of its own, until this future is dropped. The tasks go on then, until
    /// the [`Connections`] are dropped as well.
    pub(crate) async fn accept<F>(&mut self, serve: impl Fn(TcpStream) -> F) -> Infallible
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Connections { world, name, listener, most, open } = self;
        loop {
            let is_full = open.len() >= *most;
            let accepted = {
                let accepted = pin!(async {
                    match is_full {
                        true => pending().await,
                        false => listener.accept().await,
                    }
                });
                // Without an open connection there is none to wait for.
                let ended = pin!(async {
                    if open.next().await.is_none() {
                        pending().await
                    }
                });
                match select(accepted, ended).await {
                    Either::Left((accepted, _)) => accepted,
                    Either::Right(_) => continue,
                }
            };
            match accepted {
                Ok((socket, _)) => open.push(world.spawn(name, serve(socket))),
                Err(error) => {
                    tracing::warn!(%error, server = name, "cannot accept a connection");
                    world.sleep(NO_ROOM).await;
                }
            }
        }
    }
}
