//! Default service accounts, the CA of the server, and tokens in secrets.

use crate::rig;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use serde_json::json;

#[test]
fn a_deleted_default_account_comes_back() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["serviceaccount-controller"]);
        cluster.delete::<ServiceAccount>("default", "default").await;
        cluster.settle().await;
        assert!(cluster.find::<ServiceAccount>("default", "default").await.is_some());
    });
}

#[test]
fn the_ca_of_the_server_is_in_every_namespace_and_repaired() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["root-ca-certificate-publisher-controller"]);
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: prod}}").await;
        cluster.settle().await;
        let data = |map: &ConfigMap| map.data.clone().unwrap()["ca.crt"].clone();
        for namespace in ["default", "prod"] {
            let map: ConfigMap = cluster.get(namespace, "kube-root-ca.crt").await;
            assert_eq!(data(&map), "the CA");
        }
        let wrong = json!({"data": {"ca.crt": "another", "more": "x"}});
        cluster.patch::<ConfigMap>("prod", "kube-root-ca.crt", &wrong).await;
        cluster.delete::<ConfigMap>("default", "kube-root-ca.crt").await;
        cluster.settle().await;
        for namespace in ["default", "prod"] {
            let map: ConfigMap = cluster.get(namespace, "kube-root-ca.crt").await;
            assert_eq!((data(&map).as_str(), map.data.unwrap().len()), ("the CA", 1));
        }
        // A namespace that is being deleted gets nothing.
        cluster.delete::<Namespace>(None, "prod").await;
        cluster.delete::<ConfigMap>("prod", "kube-root-ca.crt").await;
        cluster.settle().await;
        assert!(cluster.find::<ConfigMap>("prod", "kube-root-ca.crt").await.is_none());
    });
}

const TOKEN: &str = "
apiVersion: v1
kind: Secret
metadata: {name: token, annotations: {kubernetes.io/service-account.name: bot}}
type: kubernetes.io/service-account-token
";

#[test]
fn a_token_secret_is_filled_and_ends_with_its_account() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["serviceaccount-token-controller"]);
        cluster
            .apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: bot}, secrets: [{name: token}]}")
            .await;
        cluster.apply(TOKEN).await;
        cluster.settle().await;
        let secret: Secret = cluster.get("default", "token").await;
        let token = secret.data.unwrap()["token"].clone();
        assert_eq!(token.0, b"system:serviceaccount:default:bot");
        // A deleted secret is no longer referred to.
        cluster.delete::<Secret>("default", "token").await;
        cluster.settle().await;
        let bot: ServiceAccount = cluster.get("default", "bot").await;
        assert_eq!(bot.secrets.unwrap_or_default(), []);
        cluster.apply(TOKEN).await;
        cluster.settle().await;
        cluster.delete::<ServiceAccount>("default", "bot").await;
        cluster.settle().await;
        assert!(cluster.find::<Secret>("default", "token").await.is_none());
    });
}
