//! Volumes: claims are bound, provisioned, protected and resized; StatefulSets with claims run on simulated nodes.

mod attaching;
mod binding;
mod crashes;
mod ephemeral;
mod protection;
mod provisioning;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::ResourceExt;
use serde_json::json;
use testkit::Cluster;

/// The provisioner of simulated volumes, which is also its user.
const PROVISIONER: &str = "simulated.setpoint.dev";
/// The default class of simulated storage.
const CLASS: &str = "standard";

/// The phase of a claim and its volume: `Bound pv-1`.
async fn claim_state(cluster: &Cluster, name: &str) -> String {
    let claim: PersistentVolumeClaim = cluster.get("default", name).await;
    let volume = claim.spec.unwrap().volume_name.unwrap_or_default();
    format!("{} {volume}", claim.status.unwrap().phase.unwrap()).trim_end().to_owned()
}

/// The phase of a volume and the claim that it is for: `Bound data`.
async fn volume_state(cluster: &Cluster, name: &str) -> String {
    let volume: PersistentVolume = cluster.get(None, name).await;
    let claim = volume.spec.unwrap().claim_ref.and_then(|claim| claim.name).unwrap_or_default();
    format!("{} {claim}", volume.status.unwrap().phase.unwrap()).trim_end().to_owned()
}

async fn volumes(cluster: &Cluster) -> Vec<String> {
    cluster.list::<PersistentVolume>(None).await.iter().map(ResourceExt::name_any).collect()
}

/// A volume of this size; `spec` are more fields as YAML.
async fn volume(cluster: &Cluster, name: &str, size: &str, spec: &str) {
    let yaml = format!(
        "{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {name}}}, spec: {{accessModes: [ReadWriteOnce],
           capacity: {{storage: {size}}}, hostPath: {{path: /tmp/{name}}}, {spec}}}}}"
    );
    cluster.apply(&yaml).await;
}

/// A claim of this size; `spec` are more fields as YAML.
async fn claim(cluster: &Cluster, name: &str, size: &str, spec: &str) {
    let yaml = format!(
        "{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}}}, spec: {{
           accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}, {spec}}}}}"
    );
    cluster.apply(&yaml).await;
}

/// A pod that uses the claim.
async fn pod(cluster: &Cluster, name: &str, claim: &str) {
    let yaml = format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}}}, spec: {{containers: [{{name: c, image: nginx}}],
           volumes: [{{name: v, persistentVolumeClaim: {{claimName: {claim}}}}}]}}}}"
    );
    cluster.apply(&yaml).await;
}

async fn annotation(cluster: &Cluster, claim: &str, name: &str) -> String {
    let claim: PersistentVolumeClaim = cluster.get("default", claim).await;
    claim.annotations().get(name).cloned().unwrap_or_default()
}

/// Makes a claim ask for more.
async fn grow(cluster: &Cluster, name: &str, size: &str) {
    let patch = json!({"spec": {"resources": {"requests": {"storage": size}}}});
    cluster.patch::<PersistentVolumeClaim>("default", name, &patch).await;
}
