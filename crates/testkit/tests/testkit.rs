//! The kit itself under test: stories about clusters whose end is known.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod cluster;
mod crashes;
mod failures;
mod faults;
mod idle;
mod settling;
mod snapshots;
mod sockets;
