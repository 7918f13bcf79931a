//! The framework for operators: you write types and a reconcile function.
//!
//! A change travels through the files in this order: `watch` lists and watches a kind, `cache` keeps a
//! local copy, `trigger` turns the changed object into keys (the change itself goes no further), `queue`
//! holds each key once, `worker` calls your `reconcile`, and its writes go through the manager's client,
//! which puts them into the cache, so that reads are never older than the last own write.

mod watch;

pub mod cache;

pub mod predicate;
mod source;
mod trigger;

pub mod queue;
mod worker;

mod client;
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
