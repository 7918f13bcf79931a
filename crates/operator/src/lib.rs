//! The framework for operators: what a user writes is types and a reconcile function.
//!
//! A change travels through the files in this order: `watch` lists and follows a kind, `cache`
//! keeps the local copy, `trigger` turns a changed object into keys (the event stops there), `queue`
//! holds each key once, `worker` guards the call of your `reconcile`, and what that writes goes
//! out through the manager's client, which the cache watches too, so that nobody reads older than
//! he wrote.

mod watch;

pub mod cache;

pub mod predicate;
mod source;
mod trigger;

pub mod queue;
mod worker;

mod context;
mod controller;
mod key;
mod reconcile;

pub mod lease;
mod manager;
pub mod metrics;
#[cfg(feature = "otel")]
pub mod otel;
pub mod probe;

pub mod adopt;
pub mod apply;
pub mod condition;
pub mod event;
pub mod finalizer;
pub mod name;
pub mod owner;
pub mod phase;
pub mod prune;
pub mod retry;
pub mod status;

pub mod webhook;

pub mod definition;
pub mod rules;

pub use context::Context;
pub use controller::{Builder, Controller};
pub use key::Key;
pub use manager::{Error, Manager, Running};
pub use reconcile::{BoxError, Failure, Next, Reconcile};
pub use source::{Kind, Source, all};
pub use world::{Timestamp, World};
