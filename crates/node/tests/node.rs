//! Simulated nodes on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod kubelet;
mod machines;
mod pods;
mod rig;
mod scale;
mod waiting;
mod web_socket_client;
