//! One binary for all integration tests of the framework.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod adopt;
mod apply;
mod cache;
mod controller;
mod definition;
mod election;
mod event;
mod finalizer;
mod handover;
mod logs;
mod predicate;
mod requests;
mod retry;
mod rules;
mod status;
mod views;
mod webhooks;
