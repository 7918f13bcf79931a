//! Certificates change for months, and on every day the cluster trusts the one that is shown.

use super::{Bucket, URL};
use k8s_openapi::api::{admissionregistration::v1::ValidatingWebhookConfiguration, core::v1::Secret};
use operator::webhook::{Address, Certificates, Files, Hook, Review, Site, Verdict, Webhooks};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use testkit::{Cluster, Fault};
use tokio_rustls::rustls::{
    RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, ServerName, UnixTime, pem::PemObject},
};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn start(cluster: &Cluster, client: kube::Client) -> world::Task<()> {
    let hook = Hook::validator(|_: Review<Bucket>| async { Verdict::allow() });
    let webhooks = Arc::new(Webhooks::new("buckets").hook(hook));
    let certificates = Certificates::Shared { namespace: "default".to_owned(), secret: "hooks".to_owned() };
    let site = Site { address: Address::Url(URL.to_owned()), certificates };
    let world = cluster.world().clone();
    cluster.world().spawn("replica", async move {
        webhooks.keep_registered(&world, client, site).await.unwrap();
    })
}

/// The certificate that is shared, and the authorities that the cluster trusts.
async fn look(cluster: &Cluster) -> (Vec<u8>, Vec<u8>) {
    let secret: Secret = cluster.get("default", "hooks").await;
    let configured: ValidatingWebhookConfiguration = cluster.get(None, "buckets").await;
    let bundle = configured.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap();
    (secret.data.unwrap()["tls.crt"].0.clone(), bundle.0)
}

/// As the server would when it connects.
fn check(cluster: &Cluster, shown: &[u8], trusted: &[u8]) {
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_slice_iter(trusted) {
        roots.add(authority.unwrap()).unwrap();
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
    let name = ServerName::try_from("hooks.example.com").unwrap();
    let now = Duration::from_secs(cluster.world().wall().as_second() as u64);
    let shown = CertificateDer::from_pem_slice(shown).unwrap();
    verifier.verify_server_cert(&shown, &[], &name, &[], UnixTime::since_unix_epoch(now)).unwrap();
}

/// Days without any replica, and then days with two of them.
const STORY: [(u32, u32); 5] = [(0, 1), (57, 3), (57, 3), (57, 3), (57, 8)];

#[test]
fn on_every_day_the_ca_bundle_trusts_the_certificate() {
    let run = testkit::simulate(4, |cluster| async move {
        let (mut shown, mut bundles) = (BTreeSet::new(), BTreeSet::new());
        let mut yesterday = None;
        for (without, with) in STORY {
            cluster.advance(DAY * without).await;
            let users = ["one", "two"].map(|user| cluster.client_as(user, &["system:masters"]));
            let replicas = users.map(|client| start(&cluster, client));
            for _ in 0..with {
                cluster.advance(DAY).await;
                let (certificate, bundle) = look(&cluster).await;
                check(&cluster, &certificate, &bundle);
                // A replica that has not checked for a while uses its old certificate, which is still trusted.
                if let Some(yesterday) = yesterday.replace(certificate.clone()) {
                    check(&cluster, &yesterday, &bundle);
                }
                shown.insert(certificate);
                bundles.insert(bundle);
            }
            drop(replicas);
        }
        (shown.len(), bundles.len())
    });
    // Four certificates ran out, and the first authority: the second signs one more, a day after it is known.
    assert_eq!(run.output, (6, 2));
}

#[test]
fn replicas_share_one_certificate_despite_faults() {
    testkit::run(|cluster| async move {
        cluster.inject(Fault::on("create", "secrets").by("one").lose_answer());
        let one = cluster.client_as("one", &["system:masters"]);
        let webhooks =
            Webhooks::new("buckets").hook(Hook::validator(|_: Review<Bucket>| async { Verdict::allow() }));
        let certificates =
            Certificates::Shared { namespace: "default".to_owned(), secret: "hooks".to_owned() };
        let site = Site { address: Address::Url(URL.to_owned()), certificates };
        let lost = Arc::new(webhooks).keep_registered(cluster.world(), one.clone(), site).await;
        assert!(lost.is_err(), "it cannot know what became of it");
        let replicas = [start(&cluster, one), start(&cluster, cluster.client_as("two", &["system:masters"]))];
        cluster.settle().await;
        assert_eq!(cluster.trace().of("create", "secrets").len(), 1);
        let (certificate, bundle) = look(&cluster).await;
        check(&cluster, &certificate, &bundle);

        // The CA bundle is removed: the next check restores it.
        cluster.delete::<ValidatingWebhookConfiguration>(None, "buckets").await;
        cluster
            .inject(Fault::on("patch", "validatingwebhookconfigurations").error(503, "ServiceUnavailable"));
        cluster.advance(Duration::from_secs(2 * 3600)).await;
        assert_eq!(look(&cluster).await, (certificate, bundle));
        drop(replicas);
    });
}

#[test]
fn files_are_read_again_when_they_change() {
    testkit::simulate(1, |cluster| async move {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let write = || {
            let made = rcgen::generate_simple_self_signed(vec!["hooks.example.com".to_owned()]).unwrap();
            let texts = [("tls.crt", made.cert.pem()), ("tls.key", made.signing_key.serialize_pem())];
            texts.iter().for_each(|(name, text)| std::fs::write(path(name), text).unwrap());
            std::fs::write(path("ca.crt"), made.cert.pem()).unwrap();
            made.cert.pem().into_bytes()
        };
        let first = write();
        let files =
            Files { certificate: path("tls.crt"), key: path("tls.key"), authority: Some(path("ca.crt")) };
        let hook = Hook::validator(|_: Review<Bucket>| async { Verdict::allow() });
        let webhooks = Arc::new(Webhooks::new("buckets").hook(hook));
        let site = Site { address: Address::Url(URL.to_owned()), certificates: Certificates::Files(files) };
        let (world, client) = (cluster.world().clone(), cluster.client());
        let _keeping = cluster.world().spawn("replica", async move {
            webhooks.keep_registered(&world, client, site).await.unwrap();
        });
        cluster.settle().await;
        let bundle = async || {
            let configured: ValidatingWebhookConfiguration = cluster.get(None, "buckets").await;
            configured.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap().0
        };
        assert_eq!(bundle().await, first);
        // Half of a change is none.
        std::fs::write(path("tls.crt"), "half a certifi").unwrap();
        cluster.advance(Duration::from_secs(120)).await;
        assert_eq!(bundle().await, first);
        let second = write();
        cluster.advance(Duration::from_secs(120)).await;
        assert_eq!(bundle().await, second);
    });
}
