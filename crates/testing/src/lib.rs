//! What tests do to a running cluster: faults, traces, settling, snapshots, forks and its clock; and the API
//! `testing.setpoint.dev` for suites in any language.
//!
//! A [`Transport`] carries the requests of all clients to the server, records them and applies faults. `testkit` uses it in
//! virtual time inside a test; `setpoint up --testing` uses it between sockets and the server, where a [`Cluster`] answers
//! the testing API.

// The engine: requests, faults, traces.
mod fault;
mod request_info;
mod trace;
mod transport;

// The API.
mod cluster;
mod definitions;
mod front;
mod kubelets;
mod plane;
mod problem;
mod verbs;

pub use cluster::{Cluster, ControlLoops, Recipe, StartLoops, StartedServer};
pub use definitions::{GROUP, VERSION};
pub use fault::{CrashPoint, Fault, Faults, Injected, Reached, Rule};
pub use kubelets::InProcessKubelets;
pub use trace::{Entry, Recorder, Trace};
pub use transport::{Credentials, HeldWatches, Pending, ResponseBody, Transport};
