//! A controller under exactly the rules that its declarations give.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
    events::v1::Event,
};
use kube::{Api, ResourceExt};
use operator::{
    Context, Controller, Failure, Installation, Key, Manager, Next, all,
    apply::{Force, Set},
    finalizer::{self, Lifecycle},
    rules::{self, Access},
    webhook::{Address, Certificates, Hook, Site, Webhooks},
};
use serde_json::json;
use testkit::Cluster;

const NAMESPACE: &str = "default";
const ACCOUNT: &str = "copier";

/// Gives every map that asks for it a secret of its own, and says so.
fn copier() -> Controller {
    Controller::new("copier", all::<ConfigMap>()).owns(all::<Secret>()).reconcile((), copy)
}

async fn copy(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(map) = context.get::<ConfigMap>(&key)?.filter(|map| map.labels().contains_key("copy")) else {
        return Ok(Next::Settled);
    };
    let maps: Api<ConfigMap> = context.namespaced(&key);
    finalizer::guard(&maps, (*map).clone(), "example.com/copy", |life| async {
        let Lifecycle::Live(map) = life else { return Ok(Next::Settled) };
        let mut secret = Secret::default();
        secret.metadata.name = Some(operator::name::child(&map.name_any(), "copy"));
        let mut set = Set::of(&map, context.controller())?;
        set.add(secret)?;
        set.apply(&context.client(), Force::Yes).await?;
        context.events().normal(&map, "Copied", "Copy", "there is a secret");
        Ok(Next::Settled)
    })
    .await
}

async fn manager(cluster: &Cluster) -> Manager {
    manager_of(cluster, copier())
}

fn manager_of(cluster: &Cluster, controller: Controller) -> Manager {
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
    Manager::new("copier", cluster.world(), cluster.client_as(&user, &groups))
        .elect_in(NAMESPACE)
        .controller(controller)
}

#[test]
fn the_declared_rules_suffice() {
    testkit::run(|cluster| async move {
        let manager = manager(&cluster).await;
        cluster.apply(&Access::new(NAMESPACE, ACCOUNT, &manager.declared()).yaml()).await;
        let running = manager.start();
        cluster.watch_idle("manager", running.idle_probe());
        cluster
            .apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: web, labels: {copy: 'yes'}}}")
            .await;
        cluster.settle().await;
        assert!(cluster.find::<Secret>("default", "web-copy").await.is_some());
        assert_eq!(cluster.list::<Event>("default").await.len(), 1);

        cluster.delete::<ConfigMap>("default", "web").await;
        cluster.settle().await;
        assert!(cluster.find::<ConfigMap>("default", "web").await.is_none());
        let forbidden = cluster.trace().to_string();
        assert!(!forbidden.contains("403"), "{forbidden}");
        running.stop().await.unwrap();
    });
}

/// What the account may do in all namespaces, and in which single ones.
fn reach(access: &Access) -> String {
    let everywhere = access.cluster.as_ref().map_or(0, |(role, _)| role.rules.iter().flatten().count());
    let roles = access.roles.iter().map(|(role, _)| role.namespace().unwrap_or_default());
    format!("{everywhere} everywhere, {}", roles.collect::<Vec<_>>().join(" "))
}

#[test]
fn sources_of_some_namespaces_need_roles_there_and_nothing_else() {
    testkit::run(|cluster| async move {
        cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: other}}").await;
        let controller = Controller::new("copier", all::<ConfigMap>().in_namespace("other"))
            .owns(all::<Secret>().in_namespace("other"))
            .reconcile((), copy);
        let access = Access::new(NAMESPACE, ACCOUNT, controller.declared());
        assert_eq!(reach(&access), "0 everywhere, other default");
        let mixed = Controller::new("mixed", all::<ConfigMap>().in_namespace("other")).reads(all::<Secret>());
        let mixed = Access::new(NAMESPACE, ACCOUNT, mixed.reconcile((), copy).declared());
        assert_eq!(reach(&mixed), "2 everywhere, other default");

        cluster.apply(&access.yaml()).await;
        let running = manager_of(&cluster, controller).start();
        cluster.watch_idle("manager", running.idle_probe());
        let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: web, namespace: other, labels: {copy: 'yes'}}}";
        cluster.apply(map).await;
        cluster.settle().await;
        assert!(cluster.find::<Secret>("other", "web-copy").await.is_some());
        assert_eq!(cluster.list::<Event>("other").await.len(), 1);
        let trace = cluster.trace().to_string();
        assert!(!trace.contains("403"), "{trace}");
        running.stop().await.unwrap();
    });
}

#[test]
fn what_is_done_in_another_cluster_needs_no_rights_in_this_one() {
    let controller = Controller::new("copier", all::<ConfigMap>().in_namespace("other"))
        .owns(all::<Secret>().in_cluster("east"))
        .reconcile((), copy);
    let resources: Vec<String> = rules::collect(controller.declared())
        .into_iter()
        .flat_map(|rule| rule.resources.unwrap_or_default())
        .collect();
    assert!(resources.contains(&"configmaps".to_owned()), "{resources:?}");
    assert!(!resources.contains(&"secrets".to_owned()), "{resources:?}");
}

/// Definitions, rights, Deployment, Service and webhook configurations: the server takes them. The calls of webhooks
/// are tested elsewhere: here the Service has no endpoints.
#[test]
fn a_server_takes_the_manifests_of_a_manager() {
    testkit::run(|cluster| async move {
        let hook = Hook::defaulter(|map: &mut ConfigMap, _: &operator::webhook::Request| {
            map.data.get_or_insert_default().insert("size".to_owned(), "small".to_owned());
        });
        let certificates =
            Certificates::Shared { namespace: NAMESPACE.into(), secret: "copier-webhooks".into() };
        let site = Site { address: Address::service(NAMESPACE, "copier"), certificates };
        let manager = manager(&cluster).await.probes(([0, 0, 0, 0], 8080));
        let manager = manager.webhooks(Webhooks::new("copier").hook(hook), ([0, 0, 0, 0], 8443), site);
        let crd = serde_json::from_value(json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"kind": "Thing", "plural": "things"},
                "versions": [{"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}}]}}));
        let installation =
            Installation::new(NAMESPACE, "example.com/copier:1").replicas(2).definition(crd.unwrap());
        let manifests = manager.manifests(&installation);
        let kinds: Vec<&str> = manifests.lines().filter_map(|line| line.strip_prefix("kind: ")).collect();
        assert_eq!(
            kinds.join(" "),
            "CustomResourceDefinition ServiceAccount ClusterRole ClusterRoleBinding Role \
            RoleBinding Deployment Service MutatingWebhookConfiguration"
        );
        // Without endpoints of the Service nothing answers webhooks.
        let documents = manifests.split("---\n").filter(|document| !document.contains("kind: Service\n"));
        let documents: Vec<&str> = documents.collect();
        // Webhooks without a server would refuse what is applied after them.
        cluster.apply(&documents[..documents.len() - 1].join("---\n")).await;
        let deployment: Deployment = cluster.get(NAMESPACE, "copier").await;
        let pod = deployment.spec.unwrap().template.spec.unwrap();
        assert_eq!(pod.service_account_name.as_deref(), Some(ACCOUNT));
        assert!(pod.containers[0].liveness_probe.is_some());

        let running = cluster.run(manager);
        cluster.settle().await;
        running.stop().await.unwrap();
    });
}

/// The ways to reach webhooks, with and without other namespaces, ports and several servers of webhooks.
#[test]
fn a_server_takes_the_manifests_whatever_the_settings_of_the_manager_are() {
    let (every, local) = ([0, 0, 0, 0], [127, 0, 0, 1]);
    let service = |namespace| Address::service(namespace, "copier");
    let url = || Address::Url("https://copier.example.com".to_owned());
    for (namespace, probes, webhooks) in [
        ("default", None, vec![]),
        ("default", Some(8080), vec![(url(), (local, 9443))]),
        ("ops", Some(8080), vec![(service("ops"), (every, 9443))]),
        ("ops", None, vec![(url(), (local, 9443)), (service("ops"), (every, 9444))]),
        // As in tests: any free port.
        ("ops", Some(0), vec![(url(), (local, 0))]),
    ] {
        testkit::simulate(1, |cluster| async move {
            cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: ops}}").await;
            let mut manager = Manager::new("copier", cluster.world(), cluster.client());
            manager = manager.elect_in(namespace).controller(copier());
            if let Some(port) = probes {
                manager = manager.probes((every, port));
            }
            for (nth, (address, listen)) in webhooks.into_iter().enumerate() {
                let hook =
                    Hook::defaulter(|_: &mut ConfigMap, _: &operator::webhook::Request| {}).fails_open();
                let secret = format!("copier-webhooks-{nth}");
                let certificates = Certificates::Shared { namespace: namespace.to_owned(), secret };
                let webhooks = Webhooks::new(&format!("copier-{nth}")).hook(hook);
                manager = manager.webhooks(webhooks, listen, Site { address, certificates });
            }
            cluster.apply(&manager.manifests(&Installation::new(namespace, "example.com/copier:1"))).await;
            cluster.get::<Deployment>(namespace, "copier").await;
        });
    }
}

/// Or the tests above would prove nothing.
#[test]
fn without_the_rules_the_manager_is_refused() {
    testkit::simulate(1, |cluster| async move {
        let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
        let api: Api<Secret> =
            Api::namespaced(cluster.client_as(&user, &["system:authenticated"]), "default");
        let map = serde_json::from_value(json!({ "metadata": { "name": "s" } })).unwrap();
        let refusal = api.create(&kube::api::PostParams::default(), &map).await.unwrap_err();
        assert!(matches!(refusal, kube::Error::Api(status) if status.code == 403));
    });
}
