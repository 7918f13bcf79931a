//! The smallest operator: every ConfigMap carries a digest of its data, so that others can tell by
//! one annotation whether anything changed.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use operator::{Context, Controller, Failure, Key, Next, all};
use serde_json::json;

pub const DIGEST: &str = "digest.example.com/data";

pub fn controller() -> Controller {
    Controller::new("digest", all::<ConfigMap>()).reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(map) = context.get::<ConfigMap>(&key)? else { return Ok(Next::Settled) };
    let Some(digest) = plan(&map) else { return Ok(Next::Settled) };
    let patch = json!({"metadata": {"uid": map.uid(), "annotations": {DIGEST: digest}}});
    let maps = context.namespaced::<ConfigMap>(&key);
    maps.patch(key.name(), &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(Next::Settled)
}

/// The digest to write; `None` if it is there already or the map is being deleted.
pub fn plan(map: &ConfigMap) -> Option<String> {
    let wanted = digest(map);
    let is_there = map.annotations().get(DIGEST) == Some(&wanted);
    (!is_there && map.metadata.deletion_timestamp.is_none()).then_some(wanted)
}

/// FNV-1a over the sorted entries: short, stable, and no secret.
fn digest(map: &ConfigMap) -> String {
    let data = serde_json::to_vec(&(&map.data, &map.binary_data)).expect("maps of text have a JSON form");
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", data.iter().fold(0xcbf2_9ce4_8422_2325, mix))
}
