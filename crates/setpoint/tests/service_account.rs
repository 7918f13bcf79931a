//! The operator framework over TLS as the service account of a pod: with the files that kubelet would mount.

use crate::{
    harness::Up,
    operators::{ask_for_signature, client, in_a_runtime, signature, signer},
};
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenRequest},
    core::v1::{ConfigMap, Namespace, ServiceAccount as Account},
    rbac::v1::ClusterRoleBinding,
};
use kube::{Api, Client, api::PostParams};
use operator::{Manager, World, service_account::ServiceAccount};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{error::Error as _, fmt::Debug, fs, path::Path};

const NAMESPACE: &str = "operators";
const USER: &str = "system:serviceaccount:operators:signer";

async fn create<K: Clone + Debug + Serialize + DeserializeOwned>(api: &Api<K>, object: Value) {
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

/// Creates the service account, and returns a token of it.
async fn new_token(admin: &Client) -> String {
    let accounts: Api<Account> = Api::namespaced(admin.clone(), NAMESPACE);
    create(&accounts, json!({"metadata": {"name": "signer"}})).await;
    let (options, request) = (PostParams::default(), TokenRequest::default());
    let answer = accounts.create_token_request("signer", &options, &request).await.unwrap();
    answer.status.unwrap().token.unwrap()
}

/// The directory as kubelet fills it, and the address of the server, as a pod has it in its environment.
async fn mount(admin: &Client, directory: &Path, url: &str) -> ServiceAccount {
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    create(&namespaces, json!({"metadata": {"name": NAMESPACE}})).await;
    let rights = json!({
        "metadata": {"name": "signer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "signer", "namespace": NAMESPACE}],
    });
    create(&Api::<ClusterRoleBinding>::all(admin.clone()), rights).await;
    let maps: Api<ConfigMap> = Api::namespaced(admin.clone(), NAMESPACE);
    let authority = maps.get("kube-root-ca.crt").await.unwrap().data.unwrap().remove("ca.crt").unwrap();
    fs::write(directory.join("token"), new_token(admin).await).unwrap();
    fs::write(directory.join("ca.crt"), authority).unwrap();
    fs::write(directory.join("namespace"), NAMESPACE).unwrap();
    let (host, port) = url.strip_prefix("https://").unwrap().rsplit_once(':').unwrap();
    ServiceAccount::mounted(directory, host, port.parse().unwrap())
}

async fn user(client: &Client) -> kube::Result<String> {
    let review: Api<SelfSubjectReview> = Api::all(client.clone());
    let answer = review.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    Ok(answer.status.unwrap().user_info.unwrap().username.unwrap())
}

#[test]
fn a_manager_works_as_a_service_account_whose_token_is_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let mounted = tempfile::tempdir().unwrap();
    in_a_runtime(async {
        let admin = client(&up.kubeconfig).await;
        let account = mount(&admin, mounted.path(), &up.url).await;
        let own = account.client(&World::real()).unwrap();
        assert_eq!((user(&own).await.unwrap().as_str(), own.default_namespace()), (USER, NAMESPACE));
        let manager = Manager::connect_as("signer", &account).unwrap();
        let running = manager.controller(signer("in the pod")).start();
        ask_for_signature(&admin, "before").await;
        assert_eq!(signature(&admin, "before").await, "in the pod");

        // A token is of one UID: that of a deleted account is worth nothing, and the file has the next one.
        let accounts: Api<Account> = Api::namespaced(admin.clone(), NAMESPACE);
        accounts.delete("signer", &Default::default()).await.unwrap();
        fs::write(mounted.path().join("token"), new_token(&admin).await).unwrap();
        let refused = user(&own).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 401), "{refused}");
        assert_eq!(user(&own).await.unwrap(), USER, "it was read again");
        ask_for_signature(&admin, "after").await;
        assert_eq!(signature(&admin, "after").await, "in the pod");
        running.stop().await.unwrap();
    });
    assert_eq!(up.stop(), Some(0));
}

#[test]
fn a_service_account_trusts_no_server_of_another_ca() {
    let scratch = tempfile::tempdir().unwrap();
    let up = Up::start(&["--ephemeral"], scratch.path());
    let mounted = tempfile::tempdir().unwrap();
    in_a_runtime(async {
        let admin = client(&up.kubeconfig).await;
        let account = mount(&admin, mounted.path(), &up.url).await;
        let other = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        fs::write(mounted.path().join("ca.crt"), other.cert.pem()).unwrap();
        let error = user(&account.client(&World::real()).unwrap()).await.unwrap_err();
        let causes = std::iter::successors(error.source(), |&cause| cause.source());
        let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        assert!(text.contains("invalid peer certificate"), "{error}: {text}");

        fs::write(mounted.path().join("ca.crt"), "no certificate").unwrap();
        let error = account.client(&World::real()).err().unwrap();
        assert_eq!(error.to_string(), "the client of the service account cannot be made");
    });
    assert_eq!(up.stop(), Some(0));
}
