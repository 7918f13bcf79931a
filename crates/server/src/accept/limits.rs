//! How much of the server one client, or all of them together, may hold.

use std::time::Duration;

/// What an operator may want other than it is; the rest are constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at once. At the limit the one that has been idle longest makes room.
    pub connections: usize,
    /// From the first byte to the end of the TLS handshake.
    pub handshake: Duration,
    /// From there, or from the answer before, to the end of a request's headers.
    pub headers: Duration,
    /// From the headers of a request, through its body, to the headers of its answer; and, with HTTP/2, as long
    /// again to the last byte of that.
    pub request: Duration,
    /// Without any request under way.
    pub idle: Duration,
    /// Without taking a byte of what is written to it.
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
            // Clients drop theirs after 90 s; whoever closes first loses no request.
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
// Kubernetes: what clients assume before they are told.
pub(super) const MAX_STREAMS: u32 = 250;
/// Streams that a client opened and reset before we looked at them: more is an attack.
pub(super) const MAX_RESETS: usize = 20;
/// Streams that we had to reset for a client's errors.
pub(super) const MAX_STREAM_ERRORS: usize = 100;
/// What a client may send of one body before it is read.
// Kubernetes: 99% of all objects are smaller.
pub(super) const STREAM_WINDOW: u32 = 256 * 1024;
/// And of all bodies of a connection.
pub(super) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What is kept of an answer for a client that does not take it: times streams, this bounds a connection.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
/// A peer that is gone without a word is found out so.
pub(super) const PING: Duration = Duration::from_secs(30);
