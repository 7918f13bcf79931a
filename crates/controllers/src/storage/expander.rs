//! Claims that ask for more than they have: tells that the driver's own resizer lets the volume grow.
//!
//! Kubernetes itself grows no volume any more; drivers bring a resizer along.

use super::{claim_facts, volume_facts};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use operator::{Context, Controller, Failure, Key, Next, all};

/// Kubernetes: what its events name as their source.
const COMPONENT: &str = "volume_expand";

pub(crate) fn controller() -> Controller {
    Controller::new("persistentvolume-expander-controller", all::<PersistentVolumeClaim>())
        .reads(all::<PersistentVolume>())
        .reconcile((), reconcile)
        .event_component(COMPONENT)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(claim) = context.get::<PersistentVolumeClaim>(&key)? else { return Ok(Next::Settled) };
    let volume = context.get::<PersistentVolume>(&Key::new(None, claim_facts::volume(&claim)))?;
    if !volume.is_some_and(|volume| is_too_small(&claim, &volume)) {
        return Ok(Next::Settled);
    }
    let note = "waiting for an external controller to expand this PVC";
    context.events().warning(&*claim, "ExternalExpanding", "", note);
    Ok(Next::WaitFor("the resizer of the driver"))
}

fn is_too_small(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> bool {
    let is_bound = claim_facts::phase(claim) == "Bound" && volume_facts::is_for(volume, claim);
    is_bound && claim_facts::capacity(claim).is_some_and(|present| claim_facts::requested(claim) > present)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_bound_claim_that_asks_for_more_waits_for_a_resizer() {
        for (requested, present, phase, uid, expected) in [
            ("2Gi", "1Gi", "Bound", "1", true),
            ("1Gi", "1Gi", "Bound", "1", false),
            ("1Gi", "2Gi", "Bound", "1", false),
            ("2Gi", "1Gi", "Lost", "1", false),
            ("2Gi", "1Gi", "Bound", "2", false),
        ] {
            let claim = json!({"metadata": {"name": "data", "namespace": "default", "uid": "1"},
                "spec": {"resources": {"requests": {"storage": requested}}},
                "status": {"phase": phase, "capacity": {"storage": present}}});
            let volume = json!({"metadata": {"name": "pv"}, "spec": {
                "claimRef": {"namespace": "default", "name": "data", "uid": uid}}});
            let (claim, volume) =
                (serde_json::from_value(claim).unwrap(), serde_json::from_value(volume).unwrap());
            assert_eq!(is_too_small(&claim, &volume), expected, "{requested} {present} {phase} {uid}");
        }
    }
}
