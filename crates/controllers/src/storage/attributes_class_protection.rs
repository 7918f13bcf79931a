//! VolumeAttributesClasses that claims or volumes name stay until none does.

use super::protection_finalizer::{self, ProtectionPlan};
use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::VolumeAttributesClass,
};
use operator::{Context, Controller, Failure, Key, Next, all};

const FINALIZER: &str = "kubernetes.io/vac-protection";
/// The index of claims and of volumes by the classes that they name.
const BY_CLASS: &str = "attributes-class";

pub(crate) fn controller() -> Controller {
    let keys = |names: Vec<String>| names.iter().map(|name| Key::new(None, name)).collect();
    Controller::new("volumeattributesclass-protection-controller", all::<VolumeAttributesClass>())
        .watches(all::<PersistentVolumeClaim>().index(BY_CLASS, of_claim), move |claim| keys(of_claim(claim)))
        .watches(all::<PersistentVolume>().index(BY_CLASS, of_volume), move |volume| keys(of_volume(volume)))
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(class) = context.get::<VolumeAttributesClass>(&key)? else { return Ok(Next::Settled) };
    let classes = context.cluster::<VolumeAttributesClass>();
    match protection_finalizer::plan(&*class, FINALIZER) {
        ProtectionPlan::Keep => {}
        ProtectionPlan::Add => protection_finalizer::add(&classes, &*class, FINALIZER).await?,
        ProtectionPlan::Remove => {
            let claims = context.view::<PersistentVolumeClaim>()?.indexed(BY_CLASS, key.name())?;
            let volumes = context.view::<PersistentVolume>()?.indexed(BY_CLASS, key.name())?;
            if !claims.is_empty() || !volumes.is_empty() {
                return Ok(Next::WaitFor("claims and volumes that name the class"));
            }
            protection_finalizer::remove(&classes, &*class, FINALIZER).await?;
        }
    }
    Ok(Next::Settled)
}

/// The class that it asks for, that it has, and that it is changed to.
fn of_claim(claim: &PersistentVolumeClaim) -> Vec<String> {
    let status = claim.status.as_ref();
    let names = [
        claim.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.clone()),
        status.and_then(|status| status.current_volume_attributes_class_name.clone()),
        status.and_then(|it| it.modify_volume_status.as_ref()?.target_volume_attributes_class_name.clone()),
    ];
    let mut names: Vec<String> = names.into_iter().flatten().filter(|name| !name.is_empty()).collect();
    names.sort();
    names.dedup();
    names
}

fn of_volume(volume: &PersistentVolume) -> Vec<String> {
    let name = volume.spec.as_ref().and_then(|spec| spec.volume_attributes_class_name.clone());
    name.filter(|name| !name.is_empty()).into_iter().collect()
}
