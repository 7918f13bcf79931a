//! The store by the flags: an etcd cluster, or memory where our stand-in for etcd runs.

use super::flags::Flags;
use crate::{etcd_stand_in, up::compaction};
use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::rt::TokioIo;
use std::{path::PathBuf, sync::Arc, time::Duration};
use store::{Etcd, EtcdOptions, EtcdTls, Memory, Store};
use tokio::net::TcpStream;
use world::{Task, World};

/// The most bytes of a health response of etcd.
const MAX_HEALTH: usize = 4096;
/// Kubernetes: the prefix of all keys.
const PREFIX: &str = "/registry";
/// Kubernetes: the default of --etcd-compaction-interval.
const COMPACTION: Duration = Duration::from_secs(300);

/// A store, and whether other servers may share it.
pub(super) struct OpenedStore {
    pub(super) store: Arc<dyn Store>,
    pub(super) is_shared: bool,
    /// Compacts a store in memory from time to time.
    _compaction: Option<Task<()>>,
}

pub(super) async fn open(world: &World, flags: &Flags) -> Result<OpenedStore> {
    check(flags)?;
    let interval = flags.duration("etcd-compaction-interval", COMPACTION)?;
    // Kubernetes: zero turns it off.
    let interval = Some(interval).filter(|interval| !interval.is_zero());
    let servers: Vec<String> = flags.all("etcd-servers").map(str::to_owned).collect();
    if is_stand_in(&servers).await {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        let compaction = interval.map(|interval| {
            let compact = compaction::compact_from_time_to_time(world.clone(), Arc::clone(&store), interval);
            world.spawn("compaction", compact)
        });
        return Ok(OpenedStore { store, is_shared: false, _compaction: compaction });
    }
    let mut options = EtcdOptions::new(servers);
    options.compaction_interval = interval;
    let file = |name: &str| flags.last(name).map(PathBuf::from);
    options.tls = file("etcd-cafile")
        .map(|ca| EtcdTls { ca, identity: file("etcd-certfile").zip(file("etcd-keyfile")) });
    let store = Etcd::connect(world, options).await;
    let store = store.context("cannot use the etcd cluster; check --etcd-servers and the --etcd-… files")?;
    Ok(OpenedStore { store: Arc::new(store), is_shared: true, _compaction: None })
}

/// Refuses what this store cannot do.
fn check(flags: &Flags) -> Result<()> {
    let prefix = flags.last("etcd-prefix").unwrap_or(PREFIX);
    if prefix.trim_matches('/') != PREFIX.trim_matches('/') {
        bail!("--etcd-prefix {prefix}: keys are always under {PREFIX}; use an etcd cluster of its own");
    }
    match flags.last("storage-backend") {
        None | Some("etcd3") => Ok(()),
        // Kubernetes: its text.
        Some(other) => bail!("--storage-backend invalid, allowed values: etcd3. got {other:?}"),
    }
}

/// Whether there is no real etcd: no server, or our own program under the name `etcd`.
async fn is_stand_in(servers: &[String]) -> bool {
    match servers {
        [] => true,
        [first, ..] if first.starts_with("https://") => false,
        [first, ..] => health(first).await.is_ok_and(|said| said.contains(etcd_stand_in::MARK)),
    }
}

/// The response of etcd's health endpoint.
async fn health(url: &str) -> Result<String> {
    let authority = url.trim_start_matches("http://").trim_end_matches('/');
    let socket = TokioIo::new(TcpStream::connect(authority).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(socket).await?;
    let request = http::Request::get("/health").header(http::header::HOST, authority);
    let answer = sender.send_request(request.body(Empty::<bytes::Bytes>::new())?);
    let ((), body) = futures::join!(async { drop(connection.await) }, async move {
        let answer = answer.await?;
        let body = Limited::new(answer.into_body(), MAX_HEALTH).collect().await;
        drop(sender);
        body.map(|body| body.to_bytes()).map_err(|error| anyhow::anyhow!(error))
    });
    Ok(String::from_utf8_lossy(&body?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_prefix_or_backend_is_refused() {
        for (argument, expected) in [
            ("--etcd-prefix=/registry", None),
            ("--etcd-prefix=registry/", None),
            (
                "--etcd-prefix=/other",
                Some("--etcd-prefix /other: keys are always under /registry; use an etcd cluster of its own"),
            ),
            ("--storage-backend=etcd3", None),
            (
                "--storage-backend=etcd2",
                Some("--storage-backend invalid, allowed values: etcd3. got \"etcd2\""),
            ),
        ] {
            let flags = Flags::parse([argument.to_owned()]).unwrap();
            let problem = check(&flags).err().map(|error| error.to_string());
            assert_eq!(problem.as_deref(), expected, "{argument}");
        }
    }
}
