//! Fork: a copy of the cluster that goes its own way.
//!
//! Until its first connection a fork is a socket and a share in a copy of the state; then it gets a server, and with the first
//! write or watch its control loops.

use super::find_snapshot;
use crate::{Cluster, problem::Problem};
use futures::{
    FutureExt,
    future::{Either, select},
};
use serde_json::{Value, json};
use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    pin::pin,
    sync::Arc,
};
use store::{Memory, ReadStore};
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::oneshot,
};

/// A running fork. Dropping it ends the fork.
#[derive(Debug)]
pub(crate) struct ForkHandle {
    _stop: oneshot::Sender<()>,
}

pub(crate) async fn fork(
    cluster: &Arc<Cluster>,
    name: &str,
    snapshot: Option<&str>,
) -> Result<Value, Problem> {
    let state = match snapshot {
        Some(snapshot) => find_snapshot(cluster, snapshot)?,
        None => cluster.state().await?,
    };
    let revision = state.revision().await.map_err(Problem::of_store)?;
    let no_socket = |error: io::Error| {
        Problem::internal(format!(
            "no socket for the fork: {error}; delete some forks, or raise the limit of open files"
        ))
    };
    let (listener, url) = listen().map_err(no_socket)?;
    let (stop, stopped) = oneshot::channel();
    let child = Unstarted { parent: Arc::clone(cluster), clock: cluster.clock.fork(), state };
    let task = child.serve(listener, stopped.map(drop)).map(|ended| {
        if let Err(error) = ended {
            tracing::warn!(error, "a fork ended");
        }
    });
    cluster.real.spawn("fork", task).detach();
    cluster.kept().forks.insert(name.to_owned(), ForkHandle { _stop: stop });
    let kubeconfig = cluster.recipe.kubeconfig(&url);
    Ok(json!({"revision": revision.0, "server": url, "kubeconfig": kubeconfig}))
}

fn listen() -> io::Result<(TcpListener, String)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let url = format!("https://{}", listener.local_addr()?);
    Ok((listener, url))
}

/// A fork before its first connection.
struct Unstarted {
    parent: Arc<Cluster>,
    clock: world::Clock,
    state: Arc<Memory>,
}

impl Unstarted {
    #[expect(deprecated, reason = "its replacement is unsafe; a listener keeps its descriptor open")]
    async fn serve(self, listener: TcpListener, stopped: impl Future<Output = ()>) -> Result<(), String> {
        let mut stopped = pin!(stopped);
        let listener =
            AsyncFd::with_interest(listener, Interest::READABLE).map_err(|error| error.to_string())?;
        if let Either::Left(_) = select(stopped.as_mut(), pin!(listener.readable())).await {
            return Ok(());
        }
        let listener =
            tokio::net::TcpListener::from_std(listener.into_inner()).map_err(|error| error.to_string())?;
        let cluster = self.start().await?;
        cluster.serve(listener, stopped).await;
        Ok(())
    }

    async fn start(self) -> Result<Arc<Cluster>, String> {
        let Unstarted { parent, clock, state } = self;
        let store = Arc::new(state.fork());
        let (recipe, template) = (Arc::clone(&parent.recipe), Arc::clone(&parent.template));
        let cluster = Cluster::on(&parent.real, clock, store, recipe, template).await?;
        cluster.set_first(state);
        Ok(cluster)
    }
}
