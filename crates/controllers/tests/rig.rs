//! A cluster with control loops that have the permissions of their service accounts.

use controllers::Settings;
use kube::Client;
use operator::Running;
use std::sync::Arc;
use testkit::Cluster;

/// Starts the control loops with these names; all of them if there are none.
pub(crate) fn start(cluster: &Cluster, names: &[&str]) -> Running {
    let every: Vec<&str> = controllers::ALL.iter().map(|it| it.name).collect();
    let names = if names.is_empty() { &every[..] } else { names };
    let client_of = |account: &str| -> Client {
        let user = format!("system:serviceaccount:kube-system:{account}");
        cluster.client_as(&user, &["system:serviceaccounts", "system:serviceaccounts:kube-system"])
    };
    let caches = cluster.client_as("system:kube-controller-manager", &[]);
    let settings = Settings {
        root_ca: Some("the CA".to_owned()),
        sign_token: Some(Arc::new(|claims: &serde_json::Value| claims["sub"].as_str().map(str::to_owned))),
    };
    cluster.run(controllers::manager(cluster.world(), caches, client_of, &settings, names))
}
