//! Two managers and one lease: only the leader writes.

use k8s_openapi::api::{coordination::v1::Lease, core::v1::ConfigMap};
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use operator::{
    Context, Controller, Error, Failure, Key, Manager, Next, Running, all,
    lease::{Election, LeaseLost},
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use testkit::{Cluster, Fault};

/// Writes its own name into ConfigMap `log`, once a second.
fn signer(name: &'static str, signed: Arc<AtomicU64>) -> Controller {
    Controller::new("signer", all::<ConfigMap>()).reconcile((name, signed), sign)
}

async fn sign(context: Context<(&'static str, Arc<AtomicU64>)>, key: Key) -> Result<Next, Failure> {
    if key.name() != "web" {
        return Ok(Next::Settled);
    }
    let (name, signed) = context.state();
    let maps: Api<ConfigMap> = Api::namespaced(context.client(), "default");
    let patch = json!({"data": {"by": name, "at": signed.load(Ordering::SeqCst).to_string()}});
    maps.patch("log", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    signed.fetch_add(1, Ordering::SeqCst);
    Ok(Next::CheckAfter(Duration::from_secs(1)))
}

fn manager(cluster: &Cluster, name: &'static str) -> (Running, Arc<AtomicU64>) {
    let signed = Arc::new(AtomicU64::new(0));
    let election = Election::new(cluster.world(), "default", "signer").identity(name);
    let manager = Manager::new("signer", cluster.world(), cluster.client_as(name, &["system:masters"]));
    (manager.elect(election).controller(signer(name, Arc::clone(&signed))).start(), signed)
}

async fn signed_by(cluster: &Cluster) -> String {
    cluster.get::<ConfigMap>("default", "log").await.data.unwrap_or_default()["by"].clone()
}

async fn begin(cluster: &Cluster) {
    for name in ["web", "log"] {
        let manifest =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{by: nobody}}}}");
        cluster.apply(&manifest).await;
    }
}

#[test]
fn one_of_two_managers_leads_and_the_other_takes_over_when_it_stops() {
    testkit::run(|cluster| async move {
        begin(&cluster).await;
        let (first, first_signed) = manager(&cluster, "first");
        cluster.advance(Duration::from_secs(5)).await;
        let (_second, second_signed) = manager(&cluster, "second");
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(signed_by(&cluster).await, "first");
        assert_eq!(second_signed.load(Ordering::SeqCst), 0, "a standby writes nothing");

        let before = first_signed.load(Ordering::SeqCst);
        first.stop().await.expect("a clean end");
        cluster.advance(Duration::from_secs(4)).await;
        assert_eq!(signed_by(&cluster).await, "second", "a released lease is taken at the next look");
        assert_eq!(first_signed.load(Ordering::SeqCst), before);
        let lease: Lease = cluster.get("default", "signer").await;
        assert_eq!(lease.spec.and_then(|spec| spec.lease_transitions), Some(1));
    });
}

#[test]
fn after_a_crash_the_lease_is_taken_over_when_it_expires() {
    testkit::run(|cluster| async move {
        begin(&cluster).await;
        let (first, _) = manager(&cluster, "first");
        cluster.advance(Duration::from_secs(5)).await;
        let (_second, second_signed) = manager(&cluster, "second");
        cluster.advance(Duration::from_secs(5)).await;
        drop(first);
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(second_signed.load(Ordering::SeqCst), 0, "15 seconds are not over");
        cluster.advance(Duration::from_secs(10)).await;
        assert!(second_signed.load(Ordering::SeqCst) > 0);
        assert_eq!(signed_by(&cluster).await, "second");
    });
}

#[test]
fn a_leader_that_cannot_renew_stops_before_another_starts() {
    testkit::run(|cluster| async move {
        begin(&cluster).await;
        let (first, first_signed) = manager(&cluster, "first");
        cluster.advance(Duration::from_secs(5)).await;
        let (_second, second_signed) = manager(&cluster, "second");
        cluster.advance(Duration::from_secs(5)).await;

        // The leader can do everything but reach its lease.
        cluster.inject(Fault::on("update", "leases").by("first").always().error(500, "InternalError"));
        cluster.advance(Duration::from_secs(9)).await;
        assert!(first_signed.load(Ordering::SeqCst) > 10, "it goes on until its deadline");
        cluster.advance(Duration::from_secs(4)).await;
        let last = first_signed.load(Ordering::SeqCst);
        assert_eq!(second_signed.load(Ordering::SeqCst), 0, "the lease has not ended yet");
        cluster.advance(Duration::from_secs(30)).await;
        assert_eq!(first_signed.load(Ordering::SeqCst), last, "it has written nothing since");
        assert!(second_signed.load(Ordering::SeqCst) > 0);
        let ended = first.ended().await;
        assert!(matches!(ended, Err(Error::NoLongerLeading(LeaseLost::NotRenewed))), "{ended:?}");
    });
}

#[test]
fn a_leader_whose_lease_was_taken_stops_at_once() {
    testkit::run(|cluster| async move {
        begin(&cluster).await;
        let (first, _) = manager(&cluster, "first");
        cluster.advance(Duration::from_secs(5)).await;
        let leases: Api<Lease> = Api::namespaced(cluster.client(), "default");
        let usurped = json!({"spec": {"holderIdentity": "usurper"}});
        leases.patch("signer", &PatchParams::default(), &Patch::Merge(&usurped)).await.unwrap();
        cluster.advance(Duration::from_secs(3)).await;
        let ended = first.ended().await;
        assert!(matches!(ended, Err(Error::NoLongerLeading(LeaseLost::Taken))), "{ended:?}");
    });
}

#[test]
fn a_renewal_is_one_write_and_reads_the_lease_only_if_it_has_changed() {
    testkit::run(|cluster| async move {
        begin(&cluster).await;
        let (first, _) = manager(&cluster, "first");
        cluster.advance(Duration::from_secs(5)).await;
        let of_leader = |verb: &str| {
            let trace = cluster.trace();
            trace.of(verb, "leases").iter().filter(|entry| entry.caller == "first").count()
        };
        let (reads, writes) = (of_leader("get"), of_leader("update"));
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(of_leader("get"), reads);
        assert!((20..=31).contains(&(of_leader("update") - writes)), "once in two seconds and a bit");
        let page = first.metrics().render();
        assert!(!page.contains("leader_election_slowpath_total{"), "{page}");

        let leases: Api<Lease> = Api::namespaced(cluster.client(), "default");
        let touched = json!({"metadata": {"labels": {"touched": "by-hand"}}});
        leases.patch("signer", &PatchParams::default(), &Patch::Merge(&touched)).await.unwrap();
        cluster.advance(Duration::from_secs(30)).await;
        let page = first.metrics().render();
        assert!(page.contains(r#"leader_election_slowpath_total{name="signer"} 1"#), "{page}");
        assert_eq!(of_leader("get"), reads + 1);
        first.stop().await.unwrap();
    });
}
