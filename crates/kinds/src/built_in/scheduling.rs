//! The kinds of `scheduling.k8s.io`.

pub(super) mod priority_class;

const GROUP: &str = "scheduling.k8s.io";
