//! The kinds of `events.k8s.io`.

pub(crate) mod event;

const GROUP: &str = "events.k8s.io";
