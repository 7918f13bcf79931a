//! The kinds of `policy`.

pub(super) mod pod_disruption_budget;

const GROUP: &str = "policy";
