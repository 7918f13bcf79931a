//! Objects in and out of a cluster, by several people.

use k8s_openapi::{
    api::{
        authentication::v1::TokenRequest,
        core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::api::{Api, DynamicObject, GroupVersionKind, ListParams, PostParams};
use operator::{
    Manager,
    webhook::{Address, Certificates, Site, Webhooks},
};
use serde_json::json;

const MANIFESTS: &str = "
apiVersion: v1
kind: Namespace
metadata:
  name: prod
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: buckets.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: buckets, singular: bucket, kind: Bucket, listKind: BucketList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: example.com/v1
kind: Bucket
metadata:
  name: logs
  namespace: prod
spec:
  size: 5
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {size: small}
";

#[test]
fn manifests_of_any_kind_are_applied() {
    testkit::run(|cluster| async move {
        let applied = cluster.apply(MANIFESTS).await;
        assert_eq!(applied.len(), 4);
        assert_eq!(applied[2]["spec"]["size"], 5);
        let definitions: Vec<CustomResourceDefinition> = cluster.list(None).await;
        assert_eq!(definitions.len(), 1);
        assert!(cluster.find::<Namespace>(None, "prod").await.is_some());
        assert!(cluster.find::<Namespace>(None, "test").await.is_none());

        let bucket = kube::api::ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Bucket"));
        let buckets: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "prod", &bucket);
        assert_eq!(buckets.get("logs").await.unwrap().data["spec"]["size"], 5);

        let again = cluster.apply(MANIFESTS).await;
        assert_eq!(again[2..], applied[2..], "applying the same again changes nothing");
    });
}

#[test]
fn objects_are_written_read_and_deleted() {
    testkit::run(|cluster| async move {
        let map: ConfigMap = serde_json::from_value(
            json!({"metadata": {"name": "a", "namespace": "default", "finalizers": ["example.com/x"]}}),
        )
        .unwrap();
        let mut made = cluster.create(&map).await;
        made.data = Some([("k".to_owned(), "v".to_owned())].into());
        let updated = cluster.update(&made).await;
        let stale = cluster.try_update(&made).await.unwrap_err();
        assert!(matches!(stale, kube::Error::Api(status) if status.code == 409));
        cluster.delete::<ConfigMap>("default", "a").await;
        let leaving: ConfigMap = cluster.get("default", "a").await;
        assert!(leaving.metadata.deletion_timestamp.is_some());
        assert_eq!(leaving.data, updated.data);
        cluster.patch::<ConfigMap>("default", "a", &json!({"metadata": {"finalizers": null}})).await;
        assert!(cluster.find::<ConfigMap>("default", "a").await.is_none());
        assert!(cluster.try_delete::<ConfigMap>("default", "a").await.is_err());
    });
}

#[test]
fn other_users_may_do_what_rbac_allows() {
    testkit::run(|cluster| async move {
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client_as("eve", &[]));
        let refused = maps.list(&ListParams::default()).await.unwrap_err();
        assert!(matches!(refused, kube::Error::Api(status) if status.code == 403));
        cluster
            .apply(
                "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}]
",
            )
            .await;
        let maps: Api<ConfigMap> = Api::default_namespaced(cluster.client_as("eve", &["readers"]));
        maps.list(&ListParams::default()).await.unwrap();
        let trace = cluster.trace();
        let codes: Vec<_> =
            trace.of("list", "configmaps").iter().map(|it| (it.caller.clone(), it.code)).collect();
        assert_eq!(codes, [("eve".to_owned(), Some(403)), ("eve".to_owned(), Some(200))]);
    });
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let tell = || {
        testkit::simulate(7, |cluster| async move {
            cluster.apply(MANIFESTS).await;
            cluster.settle().await;
            cluster.trace()
        })
    };
    let (first, second) = (tell(), tell());
    assert_eq!(first.fingerprint, second.fingerprint);
    assert_eq!(first.output, second.output);
}

#[test]
fn the_same_seed_gives_the_same_tokens() {
    let token = || {
        testkit::simulate(7, |cluster| async move {
            let accounts: Api<ServiceAccount> = Api::default_namespaced(cluster.client());
            cluster.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}").await;
            let request = TokenRequest::default();
            let made = accounts.create_token_request("robot", &PostParams::default(), &request).await;
            made.unwrap().status.unwrap().token
        })
    };
    assert_eq!(token().output, token().output);
}

#[test]
fn the_same_seed_gives_the_same_certificates() {
    let secret = |seed| {
        testkit::simulate(seed, |cluster| async move {
            let (namespace, secret) = ("default".to_owned(), "hooks".to_owned());
            let address = Address::Url("https://hooks.example.com".to_owned());
            let site = Site { address, certificates: Certificates::Shared { namespace, secret } };
            let client = cluster.client_as("hooks", &["system:masters"]);
            let manager = Manager::new("hooks", cluster.world(), client);
            let _running = cluster.run(manager.webhooks(Webhooks::new("hooks"), ([127, 0, 0, 1], 0), site));
            cluster.settle().await;
            cluster.get::<Secret>("default", "hooks").await.data.unwrap()
        })
    };
    assert_eq!(secret(7).output, secret(7).output);
    assert_ne!(secret(7).output, secret(8).output);
}
