//! Requests to a cluster: tries one endpoint after the other until one answers or the time is up.

use super::{EtcdOptions, wire};
use crate::{Error, Revision};
use futures::{Stream, StreamExt, stream};
use http::uri::PathAndQuery;
use prost::Message;
use std::{
    error::Error as _,
    fs, io,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tonic::{
    Code, Status,
    client::Grpc,
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_prost::ProstCodec;
use world::World;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// A connection that is idle for this long gets a keep-alive ping.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Long enough for a cluster to elect a new leader, short enough for waiting callers.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
/// etcd limits requests, not responses; a page of the largest values stays far below this.
const MAX_ANSWER_BYTES: usize = 1 << 30;

#[derive(Debug)]
pub(crate) struct Connection {
    channels: Vec<Channel>,
    /// The endpoint that answered last.
    current: AtomicUsize,
    world: World,
}

/// Whether a failed request may be sent again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It only reads: it may be sent again.
    Reads,
    /// It writes: it is sent again only if it certainly did not arrive.
    Writes,
}

impl Connection {
    /// Prepares connections; they are opened on first use.
    pub(crate) fn new(world: &World, options: &EtcdOptions) -> Result<Connection, Error> {
        if options.endpoints.is_empty() {
            return Err(Error::Invalid("an etcd store needs at least one endpoint"));
        }
        let tls = tls(options)?;
        let channels = options.endpoints.iter().map(|url| {
            let unusable = |error: tonic::transport::Error| {
                Error::Unavailable(format!("{url} is no usable endpoint: {}", chain(&error)))
            };
            let mut endpoint = Endpoint::from_shared(url.clone())
                .map_err(unusable)?
                .connect_timeout(CONNECT_TIMEOUT)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(CONNECT_TIMEOUT)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true);
            if url.starts_with("https:") {
                let tls = tls.clone().ok_or(Error::Invalid("an https endpoint needs a CA file"))?;
                endpoint = endpoint.tls_config(tls).map_err(unusable)?;
            }
            Ok(endpoint.connect_lazy())
        });
        let channels = channels.collect::<Result<_, Error>>()?;
        Ok(Connection { channels, current: AtomicUsize::new(0), world: world.clone() })
    }

    pub(crate) async fn call<Q, A>(&self, path: &'static str, request: Q, effect: Effect) -> Result<A, Error>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let deadline = self.world.now() + PATIENCE;
        loop {
            let (index, mut client) = self.client();
            let left = deadline.since(self.world.now());
            let sent = async {
                client.ready().await.map_err(|error| Status::from_error(error.into()))?;
                let codec = ProstCodec::<Q, A>::default();
                client
                    .unary(tonic::Request::new(request.clone()), PathAndQuery::from_static(path), codec)
                    .await
            };
            let status = match self.world.timeout(left, sent).await {
                Ok(Ok(answer)) => return Ok(answer.into_inner()),
                Ok(Err(status)) => status,
                Err(elapsed) if effect == Effect::Writes => {
                    return Err(Error::OutcomeUnknown(format!("no answer: {elapsed}")));
                }
                Err(elapsed) => return Err(Error::Unavailable(format!("no answer: {elapsed}"))),
            };
            let again = match effect {
                Effect::Reads => is_transient(&status),
                Effect::Writes => never_arrived(&status),
            };
            if !again || self.world.now() + PAUSE > deadline {
                return Err(translate(&status, effect));
            }
            self.turn_from(index);
            self.world.sleep(PAUSE).await;
        }
    }

    /// Opens a watch. It ends with an error when the connection does.
    pub(crate) async fn watch(
        &self,
        create: wire::WatchCreateRequest,
    ) -> Result<impl Stream<Item = Result<wire::WatchResponse, Error>>, Error> {
        let (index, mut client) = self.client();
        // etcd ends the watch when the request stream ends.
        let requests = stream::iter([wire::WatchRequest { create: Some(create) }]).chain(stream::pending());
        let opened = async {
            client.ready().await.map_err(|error| Status::from_error(error.into()))?;
            let codec = ProstCodec::<wire::WatchRequest, wire::WatchResponse>::default();
            let path = PathAndQuery::from_static(wire::WATCH);
            client.streaming(tonic::Request::new(requests), path, codec).await
        };
        let opened = self.world.timeout(PATIENCE, opened).await;
        let answer = opened.unwrap_or_else(|elapsed| Err(Status::unavailable(elapsed.to_string())));
        let answer = answer.inspect_err(|_| self.turn_from(index));
        let answer = answer.map_err(|status| translate(&status, Effect::Reads))?;
        Ok(answer.into_inner().map(|item| item.map_err(|status| translate(&status, Effect::Reads))))
    }

    fn client(&self) -> (usize, Grpc<Channel>) {
        let index = self.current.load(Ordering::Relaxed) % self.channels.len();
        let client = Grpc::new(self.channels[index].clone());
        (index, client.max_decoding_message_size(MAX_ANSWER_BYTES))
    }

    /// Switches to the endpoint after `index`, unless another call has done so already.
    fn turn_from(&self, index: usize) {
        let next = (index + 1) % self.channels.len();
        let _ = self.current.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

fn tls(options: &EtcdOptions) -> Result<Option<ClientTlsConfig>, Error> {
    let Some(tls) = &options.tls else { return Ok(None) };
    let read = |path: &Path| {
        fs::read(path).map_err(|source| Error::Io { doing: "read", path: path.to_owned(), source })
    };
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(&tls.ca)?));
    if let Some((certificate, key)) = &tls.identity {
        config = config.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(Some(config))
}

/// Whether another endpoint, or a later retry, may succeed.
fn is_transient(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded)
}

/// Whether the cluster has certainly not received the request.
fn never_arrived(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            return io.kind() == io::ErrorKind::ConnectionRefused;
        }
        source = error.source();
    }
    status.code() == Code::Unavailable && status.message().starts_with("etcdserver: no leader")
}

/// Converts etcd's error to a store's.
fn translate(status: &Status, effect: Effect) -> Error {
    let message = status.message();
    if message.contains("has been compacted") {
        // The caller fills in the revision that it requested.
        return Error::Compacted { asked: Revision(0), floor: Revision(0) };
    }
    if message.contains("is a future revision") {
        return Error::Future { asked: Revision(0), current: Revision(0) };
    }
    if message.contains("request is too large") || message.contains("larger than max") {
        return Error::Unavailable(format!("the cluster takes smaller requests only: {message}"));
    }
    if message.contains("database space exceeded") {
        return Error::QuotaExceeded { limit: 0 };
    }
    if effect == Effect::Writes && is_transient(status) && !never_arrived(status) {
        return Error::OutcomeUnknown(chain(status));
    }
    Error::Unavailable(chain(status))
}

/// An error and its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
