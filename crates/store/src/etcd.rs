//! A store on an etcd cluster, which any number of processes may share.

mod compactor;
mod connection;
mod mirror;
mod restore;
mod wire;

use crate::{
    Answer, Batch, Condition, Conflict, Entry, Error, Event, Feed, Limits, Page, Previous, Range, Read,
    ReadStore, Revision, Store, Write,
    snapshot::{BackupFile, SnapshotWriter},
    window::Window,
};
use bytes::Bytes;
use connection::{Connection, Effect};
use std::{io, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::mpsc;
use world::{Task, World};

/// The key through which processes agree which one compacts; not part of any range or feed.
// Kubernetes: its API servers use this key, too.
const COMPACTION_KEY: &[u8] = b"compact_rev_key";
/// The revision of an empty cluster. No commit made it, so no watch will ever report it.
const FIRST_REVISION: Revision = Revision(1);
/// Entries per request, so that no response gets huge.
const PAGE: usize = 1000;
/// How long a feed waits for the mirror to catch up with the cluster.
const CATCH_UP: Duration = Duration::from_secs(10);

/// How to reach a cluster.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// `http://HOST:PORT` or `https://HOST:PORT` of the members.
    pub endpoints: Vec<String>,
    pub tls: Option<EtcdTls>,
    /// How much history this process keeps for its feeds.
    pub limits: Limits,
    /// The cluster compacts history older than one to two of these; `None` leaves that to others.
    pub compaction_interval: Option<Duration>,
}

impl EtcdOptions {
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> EtcdOptions {
        EtcdOptions {
            endpoints: endpoints.into_iter().map(Into::into).collect(),
            tls: None,
            limits: Limits::default(),
            compaction_interval: Some(Duration::from_secs(300)),
        }
    }
}

/// PEM files for a cluster with TLS.
#[derive(Clone, Debug)]
pub struct EtcdTls {
    /// The CA of the members' certificates.
    pub ca: PathBuf,
    /// A client certificate and its key, for a cluster that requires one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

#[derive(Debug)]
pub struct Etcd {
    connection: Arc<Connection>,
    window: Arc<Window>,
    world: World,
    _tasks: Vec<Task<()>>,
}

impl Etcd {
    /// Connects, and returns when feeds can be served.
    pub async fn connect(world: &World, options: EtcdOptions) -> Result<Etcd, Error> {
        let connection = Arc::new(Connection::new(world, &options)?);
        let now = current_revision(&connection).await?;
        // Start as far back as the feeds' limit; if the cluster has compacted that, the mirror learns its
        // floor.
        let floor = Revision(now.0.saturating_sub(options.limits.changes as u64)).max(FIRST_REVISION);
        let window = Arc::new(Window::new(floor));
        let follow =
            mirror::follow(world.clone(), Arc::clone(&connection), Arc::clone(&window), options.limits);
        let mut tasks = vec![world.spawn("etcd-mirror", follow)];
        if let Some(interval) = options.compaction_interval {
            let (connection, window) = (Arc::clone(&connection), Arc::clone(&window));
            let compact = compactor::compact_from_time_to_time(world.clone(), connection, window, interval);
            tasks.push(world.spawn("etcd-compactor", compact));
        }
        let etcd = Etcd { connection, window, world: world.clone(), _tasks: tasks };
        etcd.reach(now).await?;
        Ok(etcd)
    }

    /// Waits until the mirror has seen everything up to `revision`.
    async fn reach(&self, revision: Revision) -> Result<(), Error> {
        if self.window.head() >= revision {
            return Ok(());
        }
        let mut feed = Feed::join(&self.window, Bytes::from_static(COMPACTION_KEY), None)?;
        feed.mark(revision);
        let reached = async {
            loop {
                match feed.next().await {
                    Ok(Event::Progress(_)) => return Ok(()),
                    Ok(Event::Commit(_)) => {}
                    // The mirror has jumped over a gap, and is past the revision.
                    Err(Error::Compacted { .. }) if self.window.head() >= revision => return Ok(()),
                    Err(Error::Compacted { .. }) => {
                        feed = Feed::join(&self.window, Bytes::from_static(COMPACTION_KEY), None)?;
                        feed.mark(revision);
                    }
                    Err(error) => return Err(error),
                }
            }
        };
        let late = |_| {
            Error::Unavailable("etcd answers requests, but its watch does not deliver changes".to_owned())
        };
        self.world.timeout(CATCH_UP, reached).await.map_err(late)?
    }

    async fn commit(&self, batch: Batch) -> Result<Revision, Error> {
        batch.check()?;
        if batch.writes().is_empty() {
            return current_revision(&self.connection).await;
        }
        let request = transaction(&batch);
        let answer: wire::TxnResponse = self.connection.call(wire::TXN, request, Effect::Writes).await?;
        let revision = header_revision(answer.header)?;
        // The answer comes once the feeds of this process have the commit, or what the batch lost against: a
        // caller that reads its feed next sees it, as on the other stores.
        if let Err(error) = self.reach(revision).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, %revision, "etcd acknowledged a commit, but its watch did not deliver it");
        }
        if answer.succeeded {
            return Ok(revision);
        }
        let found = answer.responses.into_iter().map(|op| match op.response {
            Some(wire::Response::Range(range)) => range.kvs.into_iter().next(),
            None => None,
        });
        Err(conflict(&batch, found, revision))
    }

    async fn get(&self, key: Bytes, at: Option<Revision>) -> Result<Read, Error> {
        let request =
            wire::RangeRequest { key, revision: at.map_or(0, |at| at.0 as i64), ..Default::default() };
        let answer = self.fetch(request, at).await?;
        let revision = at.map_or_else(|| header_revision(answer.header), Ok)?;
        Ok(Read { entry: answer.kvs.into_iter().next().map(entry), revision })
    }

    async fn range(&self, range: Range) -> Result<Page, Error> {
        let mut page = Page { entries: Vec::new(), more: false, revision: Revision(0) };
        let mut at = range.at;
        let mut start = range.start.clone();
        if range.is_empty() {
            page.revision = self.get(Bytes::from_static(COMPACTION_KEY), at).await?.revision;
            return Ok(page);
        }
        loop {
            let left = if range.limit == 0 { PAGE } else { range.limit - page.entries.len() };
            // One more than needed: the compaction key may be among them.
            let limit = left.min(PAGE) as i64 + 1;
            let request = wire::RangeRequest { limit, ..request(start, range.end.clone(), at) };
            let answer = self.fetch(request, at).await?;
            page.revision = at.map_or_else(|| header_revision(answer.header), Ok)?;
            at = Some(page.revision);
            start = match answer.kvs.last() {
                Some(last) => Range::all().after(&last.key).start,
                None => return Ok(page),
            };
            page.entries.extend(answer.kvs.into_iter().filter(|kv| kv.key != COMPACTION_KEY).map(entry));
            if range.limit != 0 && page.entries.len() > range.limit {
                page.entries.truncate(range.limit);
                page.more = true;
                return Ok(page);
            }
            if !answer.more {
                return Ok(page);
            }
        }
    }

    async fn count(&self, range: Range) -> Result<u64, Error> {
        if range.is_empty() {
            return Ok(0);
        }
        let at = range.at;
        // The compaction key is not part of any range.
        let uncounted = range.contains(COMPACTION_KEY)
            && self.get(Bytes::from_static(COMPACTION_KEY), at).await?.entry.is_some();
        let request = wire::RangeRequest { count_only: true, ..request(range.start, range.end, at) };
        let answer = self.fetch(request, at).await?;
        Ok(u64::try_from(answer.count).unwrap_or(0).saturating_sub(u64::from(uncounted)))
    }

    async fn fetch(
        &self,
        request: wire::RangeRequest,
        at: Option<Revision>,
    ) -> Result<wire::RangeResponse, Error> {
        match self.connection.call(wire::RANGE, request, Effect::Reads).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.explain(error, at).await),
        }
    }

    /// Adds the revisions that etcd's errors do not carry.
    async fn explain(&self, error: Error, asked: Option<Revision>) -> Error {
        let asked = asked.unwrap_or_default();
        match error {
            Error::Compacted { .. } => {
                Error::Compacted { asked, floor: self.window.floor().max(asked.next()) }
            }
            Error::Future { .. } => match current_revision(&self.connection).await {
                Ok(current) => Error::Future { asked, current },
                Err(error) => error,
            },
            other => other,
        }
    }

    async fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Result<Feed, Error> {
        let current = current_revision(&self.connection).await?;
        let since = since.unwrap_or(current);
        if since > current {
            return Err(Error::Future { asked: since, current });
        }
        self.reach(since).await?;
        Feed::join(&self.window, prefix, Some(since))
    }

    async fn compact(&self, floor: Revision) -> Result<(), Error> {
        self.reach(floor.min(current_revision(&self.connection).await?)).await?;
        match compactor::compact(&self.connection, &self.window, floor).await {
            // The floor is there already.
            Err(Error::Compacted { .. }) if floor == self.window.floor() => Ok(()),
            Err(error) => Err(self.explain(error, Some(floor)).await),
            Ok(()) => Ok(()),
        }
    }

    /// Fetches page after page while a thread writes the file.
    async fn backup(&self, file: PathBuf) -> Result<Revision, Error> {
        let revision = current_revision(&self.connection).await?;
        let (pages, mut received) = mpsc::channel::<Option<Vec<Entry>>>(2);
        let fetch = async {
            let mut range = Range::all().at(revision).limit(PAGE);
            loop {
                let page = self.range(range.clone()).await?;
                let last = page.entries.last().map(|entry| entry.key.clone());
                if pages.send(Some(page.entries)).await.is_err() {
                    break; // Writing failed; the writer returns the error.
                }
                match last {
                    Some(last) if page.more => range = range.after(&last),
                    _ => break,
                }
            }
            // The writer treats the file as incomplete without this end marker.
            drop(pages.send(None).await);
            drop(pages);
            Ok::<_, Error>(())
        };
        let write = self.world.blocking(move || {
            BackupFile::write(&file, |out| {
                let mut writer = SnapshotWriter::new(out, revision)?;
                while let Some(page) = received.blocking_recv() {
                    let Some(page) = page else { return writer.finish() };
                    page.iter().try_for_each(|entry| writer.push(entry))?;
                }
                Err(io::Error::other("the entries could not be read"))
            })
        });
        let (fetched, written) = futures::join!(fetch, write);
        fetched.and(written)?;
        Ok(revision)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.window.close();
    }
}

impl ReadStore for Etcd {
    fn get(&self, key: Bytes, at: Option<Revision>) -> Answer<'_, Read> {
        Box::pin(self.get(key, at))
    }

    fn range(&self, range: Range) -> Answer<'_, Page> {
        Box::pin(self.range(range))
    }

    fn count(&self, range: Range) -> Answer<'_, u64> {
        Box::pin(self.count(range))
    }

    fn revision(&self) -> Answer<'_, Revision> {
        Box::pin(current_revision(&self.connection))
    }

    fn feed(&self, prefix: Bytes, since: Option<Revision>) -> Answer<'_, Feed> {
        Box::pin(self.feed(prefix, since))
    }
}

impl Store for Etcd {
    fn commit(&self, batch: Batch) -> Answer<'_, Revision> {
        Box::pin(self.commit(batch))
    }

    fn compact(&self, floor: Revision) -> Answer<'_, ()> {
        Box::pin(self.compact(floor))
    }

    fn backup(&self, file: PathBuf) -> Answer<'_, Revision> {
        Box::pin(self.backup(file))
    }
}

fn request(start: Bytes, end: Option<Bytes>, at: Option<Revision>) -> wire::RangeRequest {
    wire::RangeRequest {
        key: if start.is_empty() { Bytes::from_static(wire::ZERO_KEY) } else { start },
        range_end: end.unwrap_or(Bytes::from_static(wire::ZERO_KEY)),
        revision: at.map_or(0, |at| at.0 as i64),
        ..Default::default()
    }
}

/// Conditions as comparisons; if one fails, reads each key with a condition.
fn transaction(batch: &Batch) -> wire::TxnRequest {
    let mut request = wire::TxnRequest::default();
    for Write { key, value, condition } in batch.writes() {
        let expected = match condition {
            Condition::Anything => None,
            Condition::Absent => Some(0),
            // No commit has revision 0; etcd would read it as "absent".
            Condition::At(Revision(0)) => Some(-1),
            Condition::At(revision) => Some(revision.0 as i64),
        };
        if let Some(expected) = expected {
            let get = wire::RangeRequest { key: key.clone(), ..Default::default() };
            request.compare.push(wire::Compare {
                target: wire::CompareTarget::Mod as i32,
                key: key.clone(),
                operand: Some(wire::Operand::ModRevision(expected)),
            });
            request.failure.push(wire::RequestOp { request: Some(wire::Request::Range(get)) });
        }
        let write = match value {
            Some(value) => wire::Request::Put(wire::PutRequest { key: key.clone(), value: value.clone() }),
            None => wire::Request::Delete(wire::DeleteRangeRequest { key: key.clone() }),
        };
        request.success.push(wire::RequestOp { request: Some(write) });
    }
    request
}

/// Finds the condition that failed, from the current entries of the keys with conditions, in their order.
fn conflict(batch: &Batch, found: impl Iterator<Item = Option<wire::KeyValue>>, revision: Revision) -> Error {
    let conditioned = batch.writes().iter().enumerate();
    let conditioned = conditioned.filter(|(_, write)| write.condition != Condition::Anything);
    for ((index, write), found) in conditioned.zip(found) {
        let found = found.map(entry);
        let previous = found.clone().map(|Entry { value, revision, .. }| Previous { value, revision });
        if !write.condition.holds(previous.as_ref()) {
            return Conflict { index, key: write.key.clone(), found, revision }.into();
        }
    }
    Error::Unavailable("etcd refused a transaction whose conditions hold".to_owned())
}

async fn current_revision(connection: &Connection) -> Result<Revision, Error> {
    let key = Bytes::from_static(COMPACTION_KEY);
    let request = wire::RangeRequest { key, count_only: true, ..Default::default() };
    let answer: wire::RangeResponse = connection.call(wire::RANGE, request, Effect::Reads).await?;
    header_revision(answer.header)
}

fn entry(kv: wire::KeyValue) -> Entry {
    Entry { key: kv.key, value: kv.value, revision: revision(kv.mod_revision) }
}

fn revision(number: i64) -> Revision {
    Revision(number.max(0) as u64)
}

fn header_revision(header: Option<wire::ResponseHeader>) -> Result<Revision, Error> {
    let missing = || Error::Unavailable("etcd sent an answer without a revision".to_owned());
    header.map(|header| revision(header.revision)).ok_or_else(missing)
}
