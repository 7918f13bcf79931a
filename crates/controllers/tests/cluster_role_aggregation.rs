//! ClusterRoles that consist of others.

use crate::rig;
use k8s_openapi::api::rbac::v1::ClusterRole;
use testkit::Cluster;

async fn resources(cluster: &Cluster, role: &str) -> Vec<String> {
    let role: ClusterRole = cluster.get(None, role).await;
    role.rules.unwrap_or_default().into_iter().flat_map(|rule| rule.resources.unwrap_or_default()).collect()
}

#[test]
fn an_aggregated_role_has_the_rules_of_the_selected_ones() {
    testkit::run(|cluster| async move {
        let _running = rig::start(&cluster, &["clusterrole-aggregation-controller"]);
        cluster.settle().await;
        assert!(
            cluster.trace().writes().iter().all(|write| !write.caller.contains("aggregation")),
            "nothing to do"
        );
        cluster
            .apply(
                "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: shop}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: shop}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: carts, labels: {to: shop}}
rules: [{apiGroups: [shop.io], resources: [carts], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bags, labels: {to: shop, rbac.authorization.k8s.io/aggregate-to-view: 'true'}}
rules: [{apiGroups: [shop.io], resources: [bags], verbs: [get]}]
",
            )
            .await;
        cluster.settle().await;
        assert_eq!(resources(&cluster, "shop").await, ["bags", "carts"]);
        // admin selects edit, which selects view.
        for role in ["view", "edit", "admin"] {
            assert!(resources(&cluster, role).await.contains(&"bags".to_owned()), "{role}");
        }
        cluster.delete::<ClusterRole>(None, "bags").await;
        cluster.settle().await;
        assert_eq!(resources(&cluster, "shop").await, ["carts"]);
    });
}
