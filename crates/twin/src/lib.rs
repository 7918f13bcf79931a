//! Sends the same generated requests to the real kube-apiserver and to Setpoint, and compares the responses.
//!
//! `generate` a story from a seed → `play` it on both servers (`client`, `answer`, `protobuf`) → `level`
//! normalizes what must differ → `compare` → `known` on purpose? → `shrink` to the smallest story → reported
//! by `run`.
//!
//! `workload` has stories of another sort: what happens to workloads and nodes, for control loops.

pub mod answer;
pub mod client;
pub mod compare;
pub mod draw;
pub mod generate;
pub mod json;
pub mod known;
pub mod level;
pub mod play;
pub mod protobuf;
pub mod run;
pub mod servers;
pub mod shrink;
pub mod story;
pub mod workload;
