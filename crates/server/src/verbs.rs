//! One file for each verb.

mod apply;
mod bind;
pub(crate) mod connect;
pub(crate) mod create;
pub(crate) mod delete;
mod evict;
pub(crate) mod read;
mod review;
mod token;
pub(crate) mod update;
pub(crate) mod watch;
mod web_socket;
