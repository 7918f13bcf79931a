//! Opens the store of the control plane.

use super::{StoreKind, UpOptions, print_line, quota};
use anyhow::{Context, Result, anyhow};
use std::{sync::Arc, time::Duration};
use store::{Embedded, Error, Etcd, EtcdOptions, EtcdTls, Limits, Memory, Progress, Store};
use world::World;

/// The store, and its location for the welcome message.
pub(super) async fn open(world: &World, options: &UpOptions) -> Result<(Arc<dyn Store>, String)> {
    let live_bytes = options.store_quota.unwrap_or_else(quota::default);
    let limits = Limits { live_bytes, ..Limits::default() };
    match options.store_kind() {
        StoreKind::Memory => {
            Ok((Arc::new(Memory::with_limits(limits)), "memory, and gone when it stops".to_owned()))
        }
        StoreKind::Embedded => {
            let place = options.data_dir.join("store");
            let progress: Option<Box<dyn FnMut(Progress) + Send>> = Some(Box::new(print_progress()));
            let store_options = store::Options { limits, progress, ..store::Options::default() };
            let opened = Embedded::open(world, &place, store_options).await;
            let store = opened.map_err(|error| anyhow!("{}", advice(&error)).context(describe(&error)))?;
            Ok((Arc::new(store), place.display().to_string()))
        }
        StoreKind::Etcd => {
            let mut etcd_options = EtcdOptions::new(options.etcd_servers.clone());
            etcd_options.compaction_interval = Some(Duration::from_secs(options.compaction_interval));
            etcd_options.tls = options.etcd_cafile.clone().map(|ca| EtcdTls {
                ca,
                identity: options.etcd_certfile.clone().zip(options.etcd_keyfile.clone()),
            });
            let store = Etcd::connect(world, etcd_options).await;
            let store =
                store.context("cannot use the etcd cluster; check --etcd-servers and the --etcd-… files")?;
            Ok((Arc::new(store), format!("etcd at {}", options.etcd_servers.join(", "))))
        }
    }
}

/// Prints the progress of opening, for large stores.
fn print_progress() -> impl FnMut(Progress) + Send {
    /// Smaller stores open before a line could be read.
    const WORTH_PRINTING: u64 = 64 << 20;
    |progress| {
        if progress.total >= WORTH_PRINTING {
            print_line(&format!(
                "opening the store: {} of {} MiB",
                progress.done >> 20,
                progress.total >> 20
            ));
        }
    }
}

fn describe(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text.push_str(&format!(": {cause}"));
    }
    text
}

/// What to do about a store that does not open.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::InUse { .. } => "stop that process, or choose another --data-dir",
        Error::Corrupt(_) => "restore a backup into another --data-dir; nothing was changed here",
        Error::Io { .. } => "check that --data-dir is on a disk you may write to",
        _ => "see the message before this one",
    }
}
