//! The bucket operator with a control plane in the test and a cloud that can fail.
#![expect(clippy::unwrap_used, reason = "a test that panics has failed")]

use example_bucket::{Bucket, BucketSpec, Cloud, FINALIZER, controller, outside_name};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use operator::{Manager, Running, definition, rules::Access};
use serde_json::json;
use std::{
    collections::BTreeMap,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use testkit::Cluster;

/// A cloud in memory, which can be down.
#[derive(Default)]
struct Clouds {
    buckets: Mutex<BTreeMap<String, i32>>,
    is_down: Mutex<bool>,
}

impl Clouds {
    fn reach(&self) -> io::Result<()> {
        if *self.is_down.lock().unwrap() { Err(io::Error::other("the cloud is down")) } else { Ok(()) }
    }

    fn set_down(&self, is_down: bool) {
        *self.is_down.lock().unwrap() = is_down;
    }

    fn names(&self) -> Vec<String> {
        self.buckets.lock().unwrap().keys().cloned().collect()
    }
}

impl Cloud for Clouds {
    fn ensure(&self, name: &str, spec: &BucketSpec) -> io::Result<String> {
        self.reach()?;
        self.buckets.lock().unwrap().insert(name.to_owned(), spec.size_gib);
        Ok(format!("cloud://{name}"))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.reach()?;
        self.buckets.lock().unwrap().remove(name);
        Ok(())
    }
}

const PHOTOS: &str = "{apiVersion: example.com/v1, kind: Bucket, metadata: {name: photos}, spec: {region: eu-west-1, sizeGib: 10}}";

fn start(cluster: &Cluster, cloud: &Arc<Clouds>) -> Running {
    let cloud: Arc<dyn Cloud> = Arc::clone(cloud) as _;
    let client = cluster.client_as("bucket", &["system:masters"]);
    cluster.run(Manager::new("bucket", cluster.world(), client).controller(controller(cloud)))
}

async fn begin(cluster: &Cluster) -> Arc<Clouds> {
    cluster.apply(&definition::yaml(&definition::of::<Bucket>())).await;
    Arc::default()
}

fn ready(bucket: &Bucket) -> Option<&Condition> {
    bucket.status.as_ref()?.conditions.iter().find(|condition| condition.type_ == "Ready")
}

#[test]
fn the_bucket_comes_with_the_object_and_goes_before_it() {
    testkit::run(|cluster| async move {
        let cloud = begin(&cluster).await;
        let _operator = start(&cluster, &cloud);
        cluster.apply(PHOTOS).await;
        cluster.settle().await;
        let bucket: Bucket = cluster.get("default", "photos").await;
        assert_eq!(bucket.finalizers(), [FINALIZER]);
        assert_eq!(cloud.names(), [outside_name(&bucket)]);
        let status = bucket.status.clone().expect("a status");
        assert_eq!(status.observed_generation, bucket.metadata.generation);
        assert_eq!(ready(&bucket).map(|ready| ready.status.as_str()), Some("True"));

        cluster.delete::<Bucket>("default", "photos").await;
        cluster.settle().await;
        assert_eq!(cloud.names(), [""; 0]);
        assert!(cluster.find::<Bucket>("default", "photos").await.is_none());
    });
}

#[test]
fn a_cloud_that_is_down_is_told_and_survived() {
    testkit::run(|cluster| async move {
        let cloud = begin(&cluster).await;
        let _operator = start(&cluster, &cloud);
        cloud.set_down(true);
        cluster.apply(PHOTOS).await;
        cluster.world().sleep(Duration::from_secs(1)).await;
        let bucket: Bucket = cluster.get("default", "photos").await;
        assert_eq!(ready(&bucket).map(|ready| ready.message.as_str()), Some("the cloud is down"));
        cluster.delete::<Bucket>("default", "photos").await;
        cluster.world().sleep(Duration::from_secs(60)).await;
        assert!(cluster.find::<Bucket>("default", "photos").await.is_some(), "not before the bucket is gone");
        cloud.set_down(false);
        cluster.settle().await;
        assert!(cluster.find::<Bucket>("default", "photos").await.is_none());
    });
}

#[test]
fn what_happens_while_the_operator_is_away_is_made_good() {
    testkit::run(|cluster| async move {
        let cloud = begin(&cluster).await;
        let operator = start(&cluster, &cloud);
        cluster.apply(PHOTOS).await;
        cluster.settle().await;
        let first: Bucket = cluster.get("default", "photos").await;
        drop(operator);
        cluster.delete::<Bucket>("default", "photos").await;
        cluster.advance(Duration::from_secs(3600)).await;
        assert_eq!(cloud.names(), [outside_name(&first)], "nobody was there to clean up");

        let _operator = start(&cluster, &cloud);
        cluster.settle().await;
        assert!(cluster.find::<Bucket>("default", "photos").await.is_none());
        cluster.apply(PHOTOS).await;
        cluster.settle().await;
        let second: Bucket = cluster.get("default", "photos").await;
        assert_ne!(outside_name(&first), outside_name(&second));
        assert_eq!(cloud.names(), [outside_name(&second)]);
    });
}

#[test]
fn no_crash_leaves_rubbish_behind() {
    // The cloud outlives the operator, and is empty after each story.
    let cloud: Arc<Clouds> = Arc::default();
    let restart = async |cluster: &Cluster| {
        begin(cluster).await;
        start(cluster, &cloud)
    };
    let crashes = testkit::crash_everywhere("bucket", restart, |cluster| {
        let cloud = Arc::clone(&cloud);
        async move {
            cluster.apply(PHOTOS).await;
            cluster.settle().await;
            let bucket: Bucket = cluster.get("default", "photos").await;
            assert_eq!(cloud.names(), [outside_name(&bucket)]);
            cluster.delete::<Bucket>("default", "photos").await;
            cluster.settle().await;
            assert_eq!(cloud.names(), [""; 0]);
            assert!(cluster.find::<Bucket>("default", "photos").await.is_none());
        }
    });
    assert!(crashes.writes >= 3, "the finalizer comes, the status is written, the finalizer goes: {crashes}");
}

#[test]
fn the_definition_holds_what_the_type_says() {
    let definition = definition::of::<Bucket>();
    assert_eq!(definition::review(&definition), []);
    testkit::run(|cluster| async move {
        begin(&cluster).await;
        cluster.apply(PHOTOS).await;
        for (patch, complaint) in [
            (json!({"spec": {"sizeGib": 0}}), "should be greater than or equal to 1"),
            (json!({"spec": {"region": "us-east-1"}}), "a bucket cannot move"),
            (json!({"spec": {"region": "Mars"}}), "should match"),
        ] {
            let refused = cluster.try_patch::<Bucket>("default", "photos", &patch).await.unwrap_err();
            assert!(refused.to_string().contains(complaint), "{refused}");
        }
    });
}

/// The declared RBAC rules suffice.
#[test]
fn the_declared_access_is_enough() {
    testkit::run(|cluster| async move {
        let cloud = begin(&cluster).await;
        let controller = controller(Arc::clone(&cloud) as _);
        cluster.apply(&Access::new("default", "bucket", controller.declared()).yaml()).await;
        let account = "system:serviceaccount:default:bucket";
        let client = cluster.client_as(account, &["system:serviceaccounts", "system:authenticated"]);
        let manager = Manager::new("bucket", cluster.world(), client).elect_in("default");
        let _running = cluster.run(manager.controller(controller));
        cluster.apply(PHOTOS).await;
        cluster.advance(Duration::from_secs(10)).await;
        assert_eq!(cloud.names().len(), 1);
        cluster.delete::<Bucket>("default", "photos").await;
        cluster.settle().await;
        assert_eq!(cloud.names().len(), 0);
    });
}
