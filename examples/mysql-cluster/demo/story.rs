//! The life of a cluster: each line is what `kubectl get` would show when it has changed, with the virtual time.

use example_mysql_cluster::{
    NAME, configure,
    v1::{MySQLCluster, MySQLClusterStatus},
};
use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, PersistentVolumeClaim, Pod},
};
use kube::ResourceExt;
use operator::{Manager, Timestamp};
use serde_json::{Value, json};
use std::time::Duration;
use testkit::Cluster;

const DEFINITION: &str = include_str!("../manifests/definition.yaml");
const OPERATOR: &str = include_str!("../manifests/operator.yaml");
const SAMPLE: &str = include_str!("../manifests/sample.yaml");
const ACCOUNT: &str = "system:serviceaccount:default:mysql-operator";
const NAMESPACE: &str = "default";
const SHOP: &str = "shop";
const NODES: usize = 4;
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: u64 = 60;
/// Each step of the story takes less.
const MAX_STEPS: usize = 600;

/// Plays the story, and hands each line to `print`.
pub(crate) async fn play(cluster: Cluster, print: impl FnMut(&str)) {
    cluster.apply(DEFINITION).await;
    cluster.apply(OPERATOR).await;
    let _control_plane = cluster.control_plane().nodes(NODES).start();
    // With the rights of its manifests.
    let client = cluster.client_as(ACCOUNT, &["system:serviceaccounts", "system:authenticated"]);
    let operator = cluster.run(configure(Manager::new(NAME, cluster.world(), client)));
    cluster.advance(SECOND * 10).await;
    let mut story = Story { begin: cluster.world().wall(), cluster, print, last: String::new() };

    story.say("$ kubectl apply -f examples/mysql-cluster/manifests/sample.yaml");
    story.cluster.apply(SAMPLE).await;
    story.watch_until(|shop| phase(shop) == "Running").await;

    let patch = json!({"spec": {"version": "8.4.7"}});
    story.patch(patch).await;
    story.watch_until(|shop| phase(shop) == "Running" && shop.status.as_ref().is_some_and(is_upgraded)).await;

    let refused = json!({"spec": {"version": "8.0.40"}});
    story.say(&format!("$ kubectl patch mysql {SHOP} --type=merge -p '{refused}'"));
    if let Err(kube::Error::Api(status)) =
        story.cluster.try_patch::<MySQLCluster>(NAMESPACE, SHOP, &refused).await
    {
        story.say(&format!("          {}", status.message));
    }

    story.lose_the_primary().await;
    story.back_up_and_restore().await;
    let page = operator.metrics().render();
    for line in page.lines().filter(|line| line.starts_with("mysql_cluster_") && !line.contains("_bucket")) {
        story.say(&format!("          {line}"));
    }
    story.delete().await;
}

struct Story<P> {
    cluster: Cluster,
    begin: Timestamp,
    print: P,
    last: String,
}

impl<P: FnMut(&str)> Story<P> {
    fn say(&mut self, line: &str) {
        (self.print)(line);
    }

    async fn shop(&self) -> Option<MySQLCluster> {
        self.cluster.find(NAMESPACE, SHOP).await
    }

    async fn patch(&mut self, patch: Value) {
        self.say(&format!("$ kubectl patch mysql {SHOP} --type=merge -p '{patch}'"));
        self.cluster.patch::<MySQLCluster>(NAMESPACE, SHOP, &patch).await;
    }

    /// Its node fails, and comes back.
    async fn lose_the_primary(&mut self) {
        let primary = self.shop().await.and_then(|shop| shop.status?.primary).unwrap_or_default();
        let pod: Pod = self.cluster.get(NAMESPACE, &primary).await;
        let node = pod.spec.and_then(|spec| spec.node_name).unwrap_or_default();
        self.say(&format!("# the node of the primary fails: {node}"));
        let fail = json!({"metadata": {"annotations": {"setpoint.dev/node": "stopped"}}});
        self.cluster.patch::<Node>(None, &node, &fail).await;
        self.watch_until(|shop| phase(shop) == "Degraded").await;
        self.say(&format!("# {node} comes back"));
        let back = json!({"metadata": {"annotations": {"setpoint.dev/node": "simulated"}}});
        self.cluster.patch::<Node>(None, &node, &back).await;
        self.watch_until(|shop| phase(shop) == "Running").await;
    }

    /// By name.
    async fn back_up_and_restore(&mut self) {
        self.say("# 40 minutes later");
        self.cluster.advance(Duration::from_secs(40 * MINUTE)).await;
        let backups = self.shop().await.and_then(|shop| Some(shop.status?.backups)).unwrap_or_default();
        self.say(&format!("          backups: {}", backups.join(", ")));
        self.patch(json!({"spec": {"restoreFrom": backups.first()}})).await;
        self.watch_until(|shop| shop.status.as_ref().is_some_and(|status| status.restored.is_some())).await;

        let restored = self.shop().await.and_then(|shop| shop.status?.restored).unwrap_or_default();
        self.say(&format!("          restored: {restored}"));
    }

    /// What is left is the last backup.
    async fn delete(&mut self) {
        self.say(&format!("$ kubectl delete mysql {SHOP}"));
        self.cluster.delete::<MySQLCluster>(NAMESPACE, SHOP).await;
        self.cluster.advance(SECOND * 10).await;
        let jobs: Vec<_> =
            self.cluster.list::<Job>(NAMESPACE).await.iter().map(ResourceExt::name_any).collect();
        let claims = self.cluster.list::<PersistentVolumeClaim>(NAMESPACE).await;
        let claims: Vec<_> = claims.iter().map(ResourceExt::name_any).collect();
        self.say(&format!("          what stays: job {}, claim {}", jobs.join(", "), claims.join(", ")));
    }

    /// Shows each change of the cluster and its members, until it is as it should be.
    async fn watch_until(&mut self, is_done: impl Fn(&MySQLCluster) -> bool) {
        for _ in 0..MAX_STEPS {
            self.cluster.advance(SECOND).await;
            let Some(shop) = self.shop().await else { return };
            let pods = self.cluster.list::<Pod>(NAMESPACE).await;
            let line = format!("{}   {}", summary(&shop), members(&pods));
            if line != self.last {
                let at = self.cluster.world().wall().duration_since(self.begin).as_secs();
                self.say(&format!("{at:>6}s   {line}"));
                self.last = line;
            }
            if is_done(&shop) {
                return;
            }
        }
    }
}

fn phase(shop: &MySQLCluster) -> &str {
    shop.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn is_upgraded(status: &MySQLClusterStatus) -> bool {
    status.version.as_deref() == Some("8.4.7")
}

fn summary(shop: &MySQLCluster) -> String {
    let status = shop.status.clone().unwrap_or_default();
    let text = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let (phase, ready, primary) = (text(status.phase), text(status.ready), text(status.primary));
    format!("{phase:<10} ready {ready}   primary {primary}")
}

/// The version of each member, in brackets while it is not ready.
fn members(pods: &[Pod]) -> String {
    let versions = pods.iter().filter_map(|pod| {
        let version = pod.labels().get("mysql.example.com/version")?;
        let conditions = pod.status.as_ref()?.conditions.as_deref().unwrap_or_default();
        let is_ready = conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True");
        Some(if is_ready { format!(" {version} ") } else { format!("({version})") })
    });
    versions.collect::<Vec<_>>().join(" ")
}
