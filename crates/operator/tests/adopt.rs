//! Adoption and release on a server: by selector, by UID, and never from another controller.

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Api, ResourceExt, core::Selector};
use operator::{
    adopt::{Adoption, Error},
    owner,
};
use serde_json::json;
use testkit::Cluster;

async fn owner(cluster: &Cluster, name: &str) -> ConfigMap {
    let object = json!({ "metadata": { "name": name, "namespace": "default" } });
    cluster.create(&serde_json::from_value(object).unwrap()).await
}

async fn child(cluster: &Cluster, name: &str, app: &str, owner: Option<&ConfigMap>) -> Secret {
    let object = json!({ "metadata": { "name": name, "namespace": "default", "labels": { "app": app } } });
    let mut child: Secret = serde_json::from_value(object).unwrap();
    if let Some(owner) = owner {
        owner::control(owner, &mut child).unwrap();
    }
    cluster.create(&child).await
}

async fn claim(cluster: &Cluster, owner: &ConfigMap, among: Vec<Secret>) -> Result<Vec<String>, Error> {
    let selector: Selector = [("app", "web")].into_iter().collect();
    let (owners, children) =
        (Api::namespaced(cluster.client(), "default"), Api::namespaced(cluster.client(), "default"));
    let adoption = Adoption { owner, owners: &owners, children: &children, selector: &selector };
    Ok(adoption.claim(among).await?.iter().map(ResourceExt::name_any).collect())
}

/// Every child with the name of its controller.
async fn controllers(cluster: &Cluster) -> Vec<(String, String)> {
    let children = cluster.list::<Secret>("default").await;
    let pair = |child: &Secret| {
        let controller = owner::controller_of(child).map(|reference| reference.name.clone());
        (child.name_any(), controller.unwrap_or_default())
    };
    children.iter().map(pair).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(one, other)| ((*one).into(), (*other).into())).collect()
}

#[test]
fn matching_orphans_are_adopted_and_other_children_released() {
    testkit::run(|cluster| async move {
        let (web, other) = (owner(&cluster, "web").await, owner(&cluster, "other").await);
        child(&cluster, "a-orphan", "web", None).await;
        child(&cluster, "b-stranger", "mail", None).await;
        child(&cluster, "c-theirs", "web", Some(&other)).await;
        child(&cluster, "d-mine", "web", Some(&web)).await;
        child(&cluster, "e-strayed", "mail", Some(&web)).await;

        let claimed = claim(&cluster, &web, cluster.list("default").await).await.unwrap();
        assert_eq!(claimed, ["a-orphan", "d-mine"]);
        let expected = [
            ("a-orphan", "web"),
            ("b-stranger", ""),
            ("c-theirs", "other"),
            ("d-mine", "web"),
            ("e-strayed", ""),
        ];
        assert_eq!(controllers(&cluster).await, pairs(&expected));
    });
}

#[test]
fn a_deleted_owner_adopts_nothing() {
    testkit::run(|cluster| async move {
        let stale = owner(&cluster, "web").await;
        cluster.delete::<ConfigMap>("default", "web").await;
        child(&cluster, "orphan", "web", None).await;
        assert_eq!(claim(&cluster, &stale, cluster.list("default").await).await.unwrap(), [""; 0]);
        owner(&cluster, "web").await;
        assert_eq!(claim(&cluster, &stale, cluster.list("default").await).await.unwrap(), [""; 0]);
        assert_eq!(controllers(&cluster).await, pairs(&[("orphan", "")]));
    });
}

#[test]
fn children_that_changed_since_they_were_read_are_left_out() {
    testkit::run(|cluster| async move {
        let (web, other) = (owner(&cluster, "web").await, owner(&cluster, "other").await);
        let taken = child(&cluster, "taken", "web", None).await;
        let gone = child(&cluster, "gone", "web", None).await;
        let renewed = child(&cluster, "renewed", "web", None).await;
        let references: Vec<OwnerReference> = vec![owner::reference(&other).unwrap()];
        cluster
            .patch::<Secret>("default", "taken", &json!({ "metadata": { "ownerReferences": references } }))
            .await;
        cluster.delete::<Secret>("default", "gone").await;
        cluster.delete::<Secret>("default", "renewed").await;
        child(&cluster, "renewed", "web", None).await;

        assert_eq!(claim(&cluster, &web, vec![taken, gone, renewed]).await.unwrap(), [""; 0]);
        assert_eq!(controllers(&cluster).await, pairs(&[("renewed", ""), ("taken", "other")]));
    });
}

#[test]
fn a_selector_that_selects_everything_is_refused() {
    testkit::simulate(1, |cluster| async move {
        let web = owner(&cluster, "web").await;
        let (owners, children) = (
            Api::namespaced(cluster.client(), "default"),
            Api::<Secret>::namespaced(cluster.client(), "default"),
        );
        let selector = Selector::default();
        let adoption = Adoption { owner: &web, owners: &owners, children: &children, selector: &selector };
        let refusal = adoption.claim(Vec::new()).await.unwrap_err();
        assert_eq!(refusal.to_string(), r#"the selector of "web" selects everything"#);
    });
}
