//! The webhooks of a manager: registered and reachable while it runs.

use super::{Bucket, BucketSpec, URL};
use kube::{Api, CustomResourceExt, api::PostParams};
use operator::{
    Manager, Running,
    webhook::{Address, Certificates, Hook, Request, Site, Webhooks},
};
use testkit::Cluster;

/// A manager whose only work is to default the size of buckets.
fn start(cluster: &Cluster) -> Running {
    let webhooks = Webhooks::new("sizes").hook(Hook::defaulter(|bucket: &mut Bucket, _: &Request| {
        bucket.spec.size.get_or_insert(10);
    }));
    let certificates = Certificates::Shared { namespace: "default".to_owned(), secret: "sizes".to_owned() };
    let site = Site { address: Address::Url(URL.to_owned()), certificates };
    let client = cluster.client_as("sizes", &["system:masters"]);
    let manager = Manager::new("sizes", cluster.world(), client);
    cluster.run(manager.webhooks(webhooks, ([127, 0, 0, 1], 0), site).probes(([127, 0, 0, 1], 0)))
}

#[test]
fn webhooks_of_a_manager_are_reached_while_it_runs() {
    testkit::run(|cluster| async move {
        cluster.apply_object(&serde_json::to_value(Bucket::crd()).unwrap()).await;
        let buckets: Api<Bucket> = Api::namespaced(cluster.client(), "default");
        let create = async |name: &str| {
            let bucket = Bucket::new(name, BucketSpec { size: None });
            buckets.create(&PostParams::default(), &bucket).await
        };
        let first = start(&cluster);
        cluster.settle().await;
        assert_eq!(create("a").await.unwrap().spec.size, Some(10));
        drop(first);
        let refused = create("b").await.unwrap_err().to_string();
        assert!(refused.contains("failed calling webhook"), "{refused}");
        let second = start(&cluster);
        cluster.settle().await;
        assert_eq!(create("b").await.unwrap().spec.size, Some(10));
        second.stop().await.unwrap();
    });
}
