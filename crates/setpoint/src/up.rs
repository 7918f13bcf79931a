//! `setpoint up`: opens the store and runs on it until told to stop.

use anyhow::{Context, Result, anyhow};
use std::{future::poll_fn, io::Write, path::PathBuf, sync::Arc, task::Poll};
use store::{Embedded, Error, Etcd, EtcdOptions, EtcdTls, Memory, Progress, Store};
use tokio::signal::unix::{SignalKind, signal};
use world::World;

/// Run the control plane.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Where data is kept.
    #[arg(long, default_value = ".setpoint", value_name = "DIR")]
    data_dir: PathBuf,
    /// What keeps it.
    #[arg(long, value_enum, default_value = "embedded")]
    store: StoreKind,
    /// Keep nothing: the same as --store memory.
    #[arg(long)]
    ephemeral: bool,
    /// Endpoints of the etcd cluster, for --store etcd.
    #[arg(long, value_delimiter = ',', value_name = "URL,…")]
    etcd_servers: Vec<String>,
    /// Who signs the certificates of the etcd cluster (PEM).
    #[arg(long, value_name = "FILE")]
    etcd_cafile: Option<PathBuf>,
    /// The certificate to show to the etcd cluster (PEM).
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    etcd_certfile: Option<PathBuf>,
    /// The key of that certificate (PEM).
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    etcd_keyfile: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum StoreKind {
    Embedded,
    Memory,
    Etcd,
}

pub(crate) async fn run(world: &World, options: Options) -> Result<()> {
    // First of all, so that no signal is missed from here on.
    let stopped = stopped()?;
    let (store, place) = open(world, &options).await?;
    let revision = store.revision().await?;
    say(&format!("setpoint keeps its data in {place}, at revision {revision}; press Ctrl-C to stop"));
    stopped.await;
    drop(store);
    Ok(())
}

async fn open(world: &World, options: &Options) -> Result<(Arc<dyn Store>, String)> {
    let kind = if options.ephemeral { StoreKind::Memory } else { options.store };
    match kind {
        StoreKind::Memory => Ok((Arc::new(Memory::new()), "memory".to_owned())),
        StoreKind::Embedded => {
            let place = options.data_dir.join("store");
            let progress: Option<Box<dyn FnMut(Progress) + Send>> = Some(Box::new(tell_progress()));
            let store_options = store::Options { progress, ..store::Options::default() };
            let opened = Embedded::open(world, &place, store_options).await;
            let store = opened.map_err(|error| anyhow!("{}", advice(&error)).context(describe(&error)))?;
            Ok((Arc::new(store), place.display().to_string()))
        }
        StoreKind::Etcd => {
            let mut etcd_options = EtcdOptions::new(options.etcd_servers.clone());
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

/// Shows how far opening is, for stores so large that it takes a while.
fn tell_progress() -> impl FnMut(Progress) + Send {
    /// Below this, opening is over before anyone has read a line.
    const WORTH_TELLING: u64 = 64 << 20;
    |progress| {
        if progress.total >= WORTH_TELLING {
            say(&format!("opening the store: {} of {} MiB", progress.done >> 20, progress.total >> 20));
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

/// Ends when somebody asks this process to stop.
fn stopped() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    Ok(poll_fn(move |context| {
        let asked = terminate.poll_recv(context).is_ready() || interrupt.poll_recv(context).is_ready();
        if asked { Poll::Ready(()) } else { Poll::Pending }
    }))
}

fn say(line: &str) {
    // Whoever closed our output does not want to read it.
    drop(writeln!(std::io::stdout(), "{line}"));
}
