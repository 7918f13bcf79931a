//! Simulated nodes on a control plane inside the test, in virtual time.
#![expect(clippy::unwrap_used, reason = "tests")]

mod attacks;
#[expect(dead_code, reason = "other tests use more of it")]
#[path = "../../server/tests/counted.rs"]
mod counted;
mod kubelet;
mod machines;
mod pods;
mod ports;
mod rig;
mod scale;
mod spdy_client;
mod waiting;
mod web_socket_client;
mod web_socket_logs;
