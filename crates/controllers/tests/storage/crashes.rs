//! The same outcome whatever happens to the processes, their watches and their requests.

use super::{PROVISIONER, claim, claim_state, grow, pod, volume, volume_state, volumes};
use crate::rig;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use std::time::Duration;
use testkit::{Cluster, Fault};

/// A claim is provisioned, bound, used, grown and deleted; another one is bound to a volume that a user has made.
async fn story(cluster: Cluster) {
    // Before there is a default class, a claim that names none would take the volume of the user.
    cluster.settle().await;
    volume(&cluster, "disk", "5Gi", "storageClassName: ''").await;
    claim(&cluster, "static", "5Gi", "storageClassName: ''").await;
    claim(&cluster, "data", "1Gi", "").await;
    pod(&cluster, "web", "data").await;
    cluster.settle().await;
    assert_eq!(claim_state(&cluster, "static").await, "Bound disk");
    assert_eq!(volume_state(&cluster, "disk").await, "Bound static");
    let made: Vec<String> = volumes(&cluster).await.into_iter().filter(|name| name != "disk").collect();
    assert_eq!(made.len(), 1, "one volume for one claim: {made:?}");
    let made = made[0].as_str();
    assert_eq!(claim_state(&cluster, "data").await, format!("Bound {made}"));
    assert_eq!(volume_state(&cluster, made).await, "Bound data");
    let web: Pod = cluster.get("default", "web").await;
    assert_eq!(web.status.unwrap().phase.as_deref(), Some("Running"));
    grow(&cluster, "data", "2Gi").await;
    cluster.settle().await;
    let grown: PersistentVolume = cluster.get(None, made).await;
    assert_eq!(grown.spec.unwrap().capacity.unwrap()["storage"].0, "2Gi");
    let data: PersistentVolumeClaim = cluster.get("default", "data").await;
    assert_eq!(data.status.unwrap().capacity.unwrap()["storage"].0, "2Gi");
    cluster.delete::<PersistentVolumeClaim>("default", "data").await;
    cluster.settle().await;
    assert_eq!(claim_state(&cluster, "data").await, format!("Bound {made}"), "a pod uses it");
    cluster.delete::<Pod>("default", "web").await;
    cluster.delete::<PersistentVolumeClaim>("default", "static").await;
    cluster.settle().await;
    assert!(cluster.list::<PersistentVolumeClaim>("default").await.is_empty());
    assert_eq!(volumes(&cluster).await, ["disk"]);
    assert_eq!(volume_state(&cluster, "disk").await, "Released static");
}

fn crash_everywhere(user: &str, least: u64) {
    let start = async |cluster: &Cluster| cluster.control_plane().start();
    let crashes = testkit::crash_everywhere(user, start, story);
    assert!(crashes.writes >= least, "{user} {crashes}");
}

#[test]
fn the_binder_may_crash_at_every_write() {
    crash_everywhere(&rig::user("persistent-volume-binder"), 10);
}

#[test]
fn the_provisioner_may_crash_at_every_write() {
    // CSIDriver, class, volume, two of the resize, deletion, finalizer.
    crash_everywhere(PROVISIONER, 7);
}

#[test]
fn the_protection_of_claims_may_crash_at_every_write() {
    crash_everywhere(&rig::user("pvc-protection-controller"), 2);
    crash_everywhere(&rig::user("pv-protection-controller"), 1);
}

#[test]
fn the_scheduler_may_crash_at_every_write() {
    crash_everywhere("system:kube-scheduler", 2);
}

#[test]
fn late_watches_conflicts_and_lost_answers_change_nothing() {
    for seed in 0..6 {
        testkit::simulate(seed, |cluster| async move {
            for resource in ["persistentvolumes", "persistentvolumeclaims", "pods"] {
                let lag = Duration::from_millis(40 * (seed + 1));
                cluster.inject(Fault::on("watch", resource).always().lag(lag));
            }
            for (nth, resource) in [(1, "persistentvolumes"), (2, "persistentvolumeclaims")] {
                cluster.inject(Fault::on("update", resource).nth(nth + seed).conflict());
                cluster.inject(Fault::on("update", resource).nth(nth + seed + 1).lose_answer());
                cluster.inject(Fault::on("update", resource).nth(nth + seed + 3).error(500, "InternalError"));
            }
            cluster.inject(Fault::on("create", "persistentvolumes").by(PROVISIONER).nth(1).lose_answer());
            let _running = cluster.control_plane().start();
            story(cluster.clone()).await;
        });
    }
}
