//! A cluster with control loops that have the permissions of their service accounts, and what they need around them.

mod authority;
mod kubelet;

use authority::Ca;
pub(crate) use authority::{ca, kubelet_ca};
pub(crate) use kubelet::{BROKEN_IMAGE, kubelet};

use controllers::{Settings, SigningAuthority};
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use operator::Running;
use std::sync::Arc;
use testkit::Cluster;

/// Starts the control loops with these names; all of them if there are none.
pub(crate) fn start(cluster: &Cluster, names: &[&str]) -> Running {
    let every: Vec<&str> = controllers::ALL.iter().map(|it| it.name).collect();
    let names = if names.is_empty() { &every[..] } else { names };
    let client_of = |account: &str| -> Client {
        cluster.client_as(&user(account), &["system:serviceaccounts", "system:serviceaccounts:kube-system"])
    };
    let caches = cluster.client_as("system:kube-controller-manager", &[]);
    let authority = |ca: &Ca| SigningAuthority::from_pem(&ca.certificate, &ca.key).ok().map(Arc::new);
    let settings = Settings {
        root_ca: Some("the CA".to_owned()),
        sign_token: Some(Arc::new(|claims: &serde_json::Value| claims["sub"].as_str().map(str::to_owned))),
        signing_authority: authority(ca()),
        kubelet_serving_authority: authority(kubelet_ca()),
        pod_range: "10.244.0.0/23".parse().ok(),
        has_other_servers: false,
    };
    cluster.run(controllers::manager(cluster.world(), caches, client_of, &settings, names))
}

/// The name of a control loop's service account as a user.
pub(crate) fn user(account: &str) -> String {
    format!("system:serviceaccount:kube-system:{account}")
}

/// The events on an object as `Reason: message`, sorted; repeated ones are listed once.
pub(crate) async fn events(cluster: &Cluster, kind: &str, name: &str) -> Vec<String> {
    let events: Vec<Event> = cluster.list("default").await;
    let about = events.into_iter().filter(|event| {
        let object = &event.involved_object;
        (object.kind.as_deref(), object.name.as_deref()) == (Some(kind), Some(name))
    });
    let text =
        |event: Event| format!("{}: {}", event.reason.unwrap_or_default(), event.message.unwrap_or_default());
    let mut texts: Vec<String> = about.map(text).collect();
    texts.sort();
    texts.dedup();
    texts
}
