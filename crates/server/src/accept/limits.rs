//! Limits on what one client, or all clients together, may hold of the server.

use std::time::Duration;

/// Limits that an operator may change; the others are constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Concurrent connections. At the limit the one that is idle longest is closed; if none is idle, one of the user who has
    /// the most. A quarter of them at most have watches and the like of one user.
    pub connections: usize,
    /// From the first byte to the end of the TLS handshake.
    pub handshake: Duration,
    /// From there, or from the previous response, to the end of a request's headers.
    pub headers: Duration,
    /// From the headers of a request through its body to the headers of its response; and, with HTTP/2, as
    /// long again for the response's body.
    pub request: Duration,
    /// Without a running request.
    pub idle: Duration,
    /// Without reading a byte of what is written to it.
    pub stall: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: MAX_CONNECTIONS,
            handshake: Duration::from_secs(10),
            // Kubernetes: ReadHeaderTimeout.
            headers: Duration::from_secs(32),
            // Kubernetes: --request-timeout.
            request: Duration::from_secs(60),
            // Clients close idle connections after 90 s; no request is lost if they close first.
            idle: Duration::from_secs(120),
            stall: Duration::from_secs(60),
        }
    }
}

/// A few for each node and operator of a large cluster, at some 50 KB each.
const MAX_CONNECTIONS: usize = 4096;
/// All headers of a request, in bytes: far more than any client sends.
pub(super) const MAX_HEADER_BYTES: usize = 128 * 1024;
pub(super) const MAX_HEADER_LIST: u32 = 128 * 1024;
/// Clients send about a dozen, proxies some more.
pub(super) const MAX_HEADERS: usize = 200;
/// Streams of one HTTP/2 connection at once.
// Kubernetes: what clients assume until they get the setting.
pub(super) const MAX_STREAMS: u32 = 250;
/// Streams that a client opened and reset before they were accepted: more is an attack.
pub(super) const MAX_RESETS: usize = 20;
/// Streams that the server reset because of the client's errors.
pub(super) const MAX_STREAM_ERRORS: usize = 100;
/// Unread bytes of one body that a client may send.
// Kubernetes: 99% of all objects are smaller.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
/// Unread bytes of all bodies of a connection.
pub(super) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// Buffered bytes of a response that a client does not read: times streams, this bounds a connection.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
/// Interval of pings that detect a dead peer.
pub(super) const PING: Duration = Duration::from_secs(30);
