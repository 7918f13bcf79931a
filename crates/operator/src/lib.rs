//! The framework for operators: you write types and a reconcile function.
//!
//! A change travels through the files in this order: `watch` lists and watches a kind, `cache` keeps a
//! local copy, `trigger` turns the changed object into keys (the change itself goes no further), `queue`
//! holds each key once, `worker` calls your `reconcile`, and its writes go through the manager's client,
//! which puts them into the cache, so that reads are never older than the last own write.
//!
//! The crates whose types are part of this API come with it, so that an operator has the same versions:
//!
//! ```
//! use operator::{Quantity, k8s_openapi::api::core::v1::Pod, kube::ResourceExt};
//!
//! let half = "500m".parse::<Quantity>()?;
//! assert_eq!((half.milli_value(), Pod::default().name_any()), (Some(500), String::new()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

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

pub mod service_account;

mod connections;
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

pub use api::quantity::{Quantity, QuantityFormat};
pub use context::Context;
pub use controller::{Builder, Controller, Requests};
pub use key::Key;
pub use manager::{Error, Installation, Manager, RunnableContext, Running};
pub use reconcile::{BoxError, Failure, Next, Reconcile};
pub use source::{Cacheable, Kind, Source, all, dynamic};
pub use world::{Timestamp, World};
pub use {k8s_openapi, kube};
