//! The same generated requests to the real kube-apiserver and to Setpoint, and where the answers differ.
//!
//! `generate` a story from a seed → `play` it on both servers (`client`, `answer`, `protobuf`) → `level` what must
//! differ → `compare` → `known` on purpose? → `shrink` to the smallest story → told by `run`.

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
