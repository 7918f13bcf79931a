//! The server without sockets: requests in, responses out.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bad_input;
mod client;
mod golden;
mod kube_client;
mod noise;
mod normalise;
mod service_claims;
mod watch_window;
