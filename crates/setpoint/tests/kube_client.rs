//! The crate `kube`, over TLS, with the kubeconfig that `up` writes.

use crate::harness::Up;
use base64::{Engine, engine::general_purpose::STANDARD};
use futures::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::Deployment, authentication::v1::SelfSubjectReview,
        certificates::v1::CertificateSigningRequest, core::v1::ConfigMap,
    },
};
use kube::{
    Api, Client, Config, ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    runtime::wait::await_condition,
};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::{Value, json};

/// A few versions of an object of this size fill the history that is kept.
const LARGE: usize = 1_000_000;
/// More versions of it than are kept.
const TOO_MANY: usize = 70;

/// Runs `act` with a client of a control plane of its own.
fn with_client<F: Future<Output = ()>>(act: impl FnOnce(Client) -> F) {
    let scratch = tempfile::tempdir().unwrap();
    with_client_of(Up::start(&["--ephemeral"], scratch.path()), act);
}

/// Runs `act` with a client of a control plane, and stops it then.
pub(crate) fn with_client_of<F: Future<Output = ()>>(up: Up, act: impl FnOnce(Client) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(&up.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        act(Client::try_from(config).unwrap()).await;
    });
    drop(runtime);
    assert_eq!(up.stop(), Some(0));
}

fn config_map(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}, "data": {"k": value}})).unwrap()
}

fn deployment() -> Deployment {
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "one"}, {"name": "side", "image": "two"}]},
            },
        },
    });
    serde_json::from_value(object).unwrap()
}

fn code(error: &kube::Error) -> u16 {
    let kube::Error::Api(status) = error else { return 0 };
    status.code
}

/// The next `count` events after a version: event type and object name. An error shows as its code.
async fn follow(api: &Api<ConfigMap>, from: &str, count: usize) -> Vec<(String, String)> {
    let events = api.watch(&WatchParams::default().timeout(20), from).await.unwrap().take(count);
    pin_mut!(events);
    let mut followed = Vec::new();
    while let Some(event) = events.try_next().await.unwrap() {
        followed.push(match event {
            WatchEvent::Added(object) => ("added".to_owned(), object.name_any()),
            WatchEvent::Modified(object) => ("modified".to_owned(), object.name_any()),
            WatchEvent::Deleted(object) => ("deleted".to_owned(), object.name_any()),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => ("error".to_owned(), status.code.to_string()),
        });
    }
    followed
}

#[test]
fn kube_creates_reads_replaces_and_deletes() {
    with_client(|client| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let made = api.create(&PostParams::default(), &config_map("one", "1")).await.unwrap();
        let again = api.create(&PostParams::default(), &config_map("one", "1")).await.unwrap_err();
        assert_eq!(code(&again), 409);
        assert_eq!(code(&api.get("none").await.unwrap_err()), 404);
        let mut read = api.get("one").await.unwrap();
        assert_eq!((&read.metadata.uid, &read.data), (&made.metadata.uid, &made.data));
        read.data = Some([("k".to_owned(), "2".to_owned())].into());
        api.replace("one", &PostParams::default(), &read).await.unwrap();
        assert_eq!(
            code(&api.replace("one", &PostParams::default(), &read).await.unwrap_err()),
            409,
            "it is stale"
        );
        let chosen = api.list(&ListParams::default().fields("metadata.name=one")).await.unwrap();
        assert_eq!(chosen.items.len(), 1);
        let gone = api.delete("one", &DeleteParams::default()).await.unwrap();
        assert!(gone.is_right(), "nothing holds it");
        assert_eq!(code(&api.delete("one", &DeleteParams::default()).await.unwrap_err()), 404);
    });
}

#[test]
fn kube_patches_in_every_way() {
    with_client(|client| async move {
        let api: Api<Deployment> = Api::default_namespaced(client);
        api.create(&PostParams::default(), &deployment()).await.unwrap();
        let images = |object: &Deployment| {
            let object = serde_json::to_value(object).unwrap();
            let containers = object["spec"]["template"]["spec"]["containers"].as_array().unwrap();
            containers.iter().map(|it| it["image"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let containers = |list: Value| json!({"spec": {"template": {"spec": {"containers": list}}}});
        let operations =
            json!([{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "four"}]);
        let operations = serde_json::from_value(operations).unwrap();
        let apply = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}});
        let steps: [(PatchParams, Patch<Value>, &[&str]); 4] = [
            (
                PatchParams::default(),
                Patch::Strategic(containers(json!([{"name": "side", "image": "three"}]))),
                &["one", "three"],
            ),
            (
                PatchParams::default(),
                Patch::Merge(containers(json!([{"name": "only", "image": "three"}]))),
                &["three"],
            ),
            (PatchParams::default(), Patch::Json(operations), &["four"]),
            (PatchParams::apply("me").force(), Patch::Apply(apply), &["four"]),
        ];
        for (options, patch, expected) in steps {
            let patched = api.patch("web", &options, &patch).await.unwrap();
            assert_eq!(images(&patched), expected, "{patch:?}");
        }
        let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
        let scaled = api.patch_scale("web", &PatchParams::default(), &five).await.unwrap();
        assert_eq!(scaled.spec.unwrap().replicas, Some(5));
        let unwanted =
            Patch::Apply(json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}}));
        let conflict = api.patch("web", &PatchParams::apply("me"), &unwanted).await.unwrap_err();
        assert_eq!(code(&conflict), 409, "the manager that scaled owns the replicas");
        let bad = Patch::Merge(json!({"spec": {"replicas": -1}}));
        assert_eq!(code(&api.patch("web", &PatchParams::default(), &bad).await.unwrap_err()), 422);
    });
}

#[test]
fn kube_watches_resumes_and_gets_410_for_a_version_too_old() {
    with_client(|client| async move {
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let version = |object: ConfigMap| object.resource_version().unwrap();
        let first = version(api.create(&PostParams::default(), &config_map("one", "1")).await.unwrap());
        let second = version(api.create(&PostParams::default(), &config_map("two", "1")).await.unwrap());
        let patch = Patch::Merge(json!({"data": {"k": "2"}}));
        api.patch("one", &PatchParams::default(), &patch).await.unwrap();
        api.delete("one", &DeleteParams::default()).await.unwrap();
        let event = |what: &str, name: &str| (what.to_owned(), name.to_owned());
        let after_second = [event("modified", "one"), event("deleted", "one")];
        let after_first = [&[event("added", "two")], after_second.as_slice()].concat();
        assert_eq!(follow(&api, &first, 3).await, after_first);
        assert_eq!(follow(&api, &second, 2).await, after_second, "resumed from the last version seen");

        for number in 0..TOO_MANY {
            let patch = Patch::Merge(json!({"data": {"k": format!("{number}{}", "x".repeat(LARGE))}}));
            api.patch("two", &PatchParams::default(), &patch).await.unwrap();
        }
        assert_eq!(follow(&api, &second, 1).await, [event("error", "410")]);
        // The remedy: list, and continue from there.
        let list = api.list(&ListParams::default()).await.unwrap();
        api.delete("two", &DeleteParams::default()).await.unwrap();
        let latest = list.metadata.resource_version.unwrap();
        assert_eq!(follow(&api, &latest, 1).await, [event("deleted", "two")]);
    });
}

/// Asks for a client certificate, approves that, and returns the certificate as PEM.
async fn issue(admin: &Client, request: &[u8]) -> Vec<u8> {
    let requests = Api::<CertificateSigningRequest>::all(admin.clone());
    let spec = json!({"request": ByteString(request.to_vec()), "usages": ["client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client"});
    let csr: CertificateSigningRequest =
        serde_json::from_value(json!({"metadata": {"name": "jane"}, "spec": spec})).unwrap();
    let csr = requests.create(&PostParams::default(), &csr).await.unwrap();
    let mut approved = serde_json::to_value(csr).unwrap();
    approved["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "Test"}]});
    requests.replace_subresource("approval", "jane", &PostParams::default(), &approved).await.unwrap();
    let is_issued = |csr: Option<&CertificateSigningRequest>| {
        csr.and_then(|csr| csr.status.as_ref()).is_some_and(|status| status.certificate.is_some())
    };
    let csr = await_condition(requests, "jane", is_issued).await.unwrap().unwrap();
    csr.status.unwrap().certificate.unwrap().0
}

#[test]
fn the_server_recognises_the_user_of_a_certificate_that_it_has_issued() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let kubeconfig = Kubeconfig::read_from(&up.kubeconfig).unwrap();
    with_client_of(up, |admin| async move {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "jane");
        params.distinguished_name.push(DnType::OrganizationName, "devs");
        let request = params.serialize_request(&key).unwrap().pem().unwrap();
        let certificate = issue(&admin, request.as_bytes()).await;
        let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
        let user = json!({"client-certificate-data": STANDARD.encode(certificate),
            "client-key-data": STANDARD.encode(key.serialize_pem())});
        let own = json!({"clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"});
        let own = Kubeconfig::from_yaml(&own.to_string()).unwrap();
        let config = Config::from_custom_kubeconfig(own, &KubeConfigOptions::default()).await.unwrap();
        let reviews = Api::<SelfSubjectReview>::all(Client::try_from(config).unwrap());
        let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
        let user = review.status.unwrap().user_info.unwrap();
        assert_eq!(user.username.as_deref(), Some("jane"));
        assert_eq!(user.groups.unwrap(), ["devs", "system:authenticated"]);
    });
}
