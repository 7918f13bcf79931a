//! Volumes that are bound to a claim stay until they are not.

use super::{
    protection_finalizer::{self, ProtectionPlan},
    volume_facts,
};
use k8s_openapi::api::core::v1::PersistentVolume;
use operator::{Context, Controller, Failure, Key, Next, all};

const FINALIZER: &str = "kubernetes.io/pv-protection";

pub(crate) fn controller() -> Controller {
    Controller::new("persistentvolume-protection-controller", all::<PersistentVolume>())
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(volume) = context.get::<PersistentVolume>(&key)? else { return Ok(Next::Settled) };
    let volumes = context.cluster::<PersistentVolume>();
    match protection_finalizer::plan(&*volume, FINALIZER) {
        ProtectionPlan::Keep => {}
        ProtectionPlan::Add => protection_finalizer::add(&volumes, &*volume, FINALIZER).await?,
        ProtectionPlan::Remove if volume_facts::phase(&volume) == "Bound" => {
            return Ok(Next::WaitFor("the claim of the volume to be deleted"));
        }
        ProtectionPlan::Remove => protection_finalizer::remove(&volumes, &*volume, FINALIZER).await?,
    }
    Ok(Next::Settled)
}
