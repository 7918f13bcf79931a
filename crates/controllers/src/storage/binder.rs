//! Binds claims to volumes, asks provisioners for volumes, and releases volumes whose claims are gone.
//!
//! Two loops: one over claims and one over volumes. Each has a pure plan and a function that carries it out.

mod bind;
mod claim_loop;
mod claim_plan;
mod default_class;
mod reclaim;
mod volume_loop;
mod volume_plan;

use operator::Controller;

/// Kubernetes: what its events name as their source.
const COMPONENT: &str = "persistentvolume-controller";
/// So many claims and so many volumes at once: a volume that two claims want is decided by its version.
const WORKERS: usize = 10;

pub(crate) fn controllers() -> Vec<Controller> {
    [claim_loop::controller(), volume_loop::controller()].map(|it| it.event_component(COMPONENT)).into()
}
