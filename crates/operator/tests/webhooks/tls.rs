//! The same over sockets and TLS, in real time.

use super::Bucket;
use crate::webhooks::BucketSpec;
use kube::CustomResourceExt;
use operator::webhook::{Address, Certificates, Change, Hook, Request, Review, Site, Verdict, Webhooks};
use std::{sync::Arc, time::Duration};
use testkit::{Cluster, Setup, Sockets};
use tokio::{net::TcpListener, sync::oneshot};
use world::{Task, World};

fn webhooks() -> Webhooks {
    Webhooks::new("buckets")
        .hook(Hook::defaulter(|bucket: &mut Bucket, _: &Request| _ = bucket.spec.size.get_or_insert(5)))
        .hook(Hook::validator(|review: Review<Bucket>| async move {
            match review.change {
                Change::Create(bucket) if bucket.spec.size == Some(0) => Verdict::deny("too small"),
                _ => Verdict::allow(),
            }
        }))
}

struct Served {
    cluster: Cluster,
    url: String,
    serving: Task<()>,
    stop: oneshot::Sender<()>,
}

async fn serve(world: &World, certificates: Certificates) -> Served {
    let setup = Setup { outbound: Some(Arc::new(Sockets::default())), ..Setup::default() };
    let cluster = setup.start(world).await;
    cluster.apply_object(&serde_json::to_value(Bucket::crd()).unwrap()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let site = Site { address: Address::Url(url.clone()), certificates };
    let (stop, stopped) = oneshot::channel();
    let (client, served) = (cluster.client(), world.clone());
    let serving = world.spawn("webhooks", async move {
        let stopped = async { stopped.await.unwrap() };
        webhooks().serve(&served, client, listener, site, stopped).await.unwrap();
    });
    Served { cluster, url, serving, stop }
}

/// Creates buckets until the webhooks are registered and set defaults.
async fn wait_until_asked(served: &Served) {
    for number in 0..200 {
        let made = served.cluster.create(&bucket(&format!("early-{number}"), None)).await;
        if made.spec.size == Some(5) {
            return;
        }
        served.cluster.world().sleep(Duration::from_millis(20)).await;
    }
    panic!("the webhooks are not asked");
}

fn bucket(name: &str, size: Option<u32>) -> Bucket {
    let mut bucket = Bucket::new(name, BucketSpec { size });
    bucket.metadata.namespace = Some("default".to_owned());
    bucket
}

#[test]
fn webhooks_are_served_over_tls_and_shut_down_gracefully() {
    let told = world::run(|world| async move {
        let certificates =
            Certificates::Shared { namespace: "default".to_owned(), secret: "hooks".to_owned() };
        let served = serve(&world, certificates).await;
        wait_until_asked(&served).await;
        let refused = served.cluster.try_create(&bucket("a", Some(0))).await.unwrap_err();
        assert!(refused.to_string().contains("too small"), "{refused}");
        served.stop.send(()).unwrap();
        served.serving.await.unwrap();
        let refused = served.cluster.try_create(&bucket("b", Some(1))).await.unwrap_err();
        assert!(refused.to_string().contains("failed calling webhook"), "{refused} at {}", served.url);
    });
    told.unwrap();
}
