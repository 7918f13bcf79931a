//! One binary for all integration tests of the framework.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

mod adopt;
mod apply;
mod cache;
mod clusters;
mod controller;
mod definition;
mod dynamic;
mod election;
mod event;
mod finalizer;
mod handover;
mod logs;
mod manager;
mod predicate;
mod requests;
mod retry;
mod rules;
mod sources;
mod status;
mod typed_requests;
mod views;
mod webhooks;
