//! The objects that a CSI driver is installed with: its CSIDriver, and a default StorageClass.
//!
//! The class is created when nodes start in a cluster without any StorageClass, as local clusters do when they are
//! made. It is not restored while they run: users may delete or replace it. To do without the
//! class for good, keep another one, be it not the default.

use super::{PROVISIONER, STORAGE_CLASS};
use futures::stream;
use k8s_openapi::{
    api::storage::v1::{CSIDriver, CSIDriverSpec, StorageClass},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Resource,
    api::{ListParams, PostParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, predicate::Predicate};
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Debug;

/// Kubernetes: marks the class of claims that name none.
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

pub(super) fn controller() -> Controller {
    let never = Predicate::new(|_| false);
    Controller::new("simulated-storage-class", all::<StorageClass>().when(never))
        .stream(stream::iter([Key::new(None, STORAGE_CLASS)]))
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, _: Key) -> Result<Next, Failure> {
    create(&context.cluster(), &driver()).await?;
    // Live: it runs once, and must not miss a class.
    let classes = context.cluster::<StorageClass>();
    if classes.list(&ListParams::default().limit(1)).await?.items.is_empty() {
        create(&classes, &class()).await?;
    }
    Ok(Next::Settled)
}

async fn create<K>(api: &Api<K>, object: &K) -> Result<(), Failure>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    match api.create(&PostParams::default(), object).await {
        // It is there already, from an earlier start or from a user.
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// Nothing has to be attached to a simulated node.
fn driver() -> CSIDriver {
    let metadata = ObjectMeta { name: Some(PROVISIONER.to_owned()), ..ObjectMeta::default() };
    CSIDriver { metadata, spec: CSIDriverSpec { attach_required: Some(false), ..CSIDriverSpec::default() } }
}

/// As the default classes of clouds and of local clusters: a volume is made for the node of the first pod.
fn class() -> StorageClass {
    StorageClass {
        metadata: ObjectMeta {
            name: Some(STORAGE_CLASS.to_owned()),
            annotations: Some([(IS_DEFAULT.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("WaitForFirstConsumer".to_owned()),
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    }
}
