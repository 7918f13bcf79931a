//! The kinds of `autoscaling`.

pub(crate) mod horizontal_pod_autoscaler;
pub(crate) mod scale;

const GROUP: &str = "autoscaling";
