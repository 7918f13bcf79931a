//! Everything that a cluster needs to run an operator, as one stream of YAML documents.

use super::Manager;
use crate::{
    definition,
    rules::{Access, document, lease},
    webhook::{Address, Certificates},
};
use k8s_openapi::{
    api::rbac::v1::PolicyRule,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde_json::{Value, json};

/// A free port, chosen when the process listens: no manifest can name it.
const ANY_PORT: u16 = 0;

/// Where and how an operator is installed: what its code does not say.
#[derive(Clone, Debug)]
pub struct Installation {
    namespace: String,
    image: String,
    replicas: u32,
    definitions: Vec<CustomResourceDefinition>,
}

impl Installation {
    /// A Deployment of one replica of this container image.
    pub fn new(namespace: &str, image: &str) -> Installation {
        let (namespace, image) = (namespace.to_owned(), image.to_owned());
        Installation { namespace, image, replicas: 1, definitions: Vec::new() }
    }

    /// Several replicas need [`Manager::elect_in`]; one of them reconciles, and all answer webhooks.
    pub fn replicas(mut self, replicas: u32) -> Installation {
        self.replicas = replicas;
        self
    }

    /// Adds the definition of a type, which is created before everything else.
    pub fn definition(mut self, definition: CustomResourceDefinition) -> Installation {
        self.definitions.push(definition);
        self
    }
}

impl Manager {
    /// The manifests for `kubectl apply`: definitions, service account, the least rights of its controllers, webhooks
    /// and lease, a Deployment with its probes, a Service and the webhook configurations. The operator sets the CA
    /// bundles itself.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use operator::{Context, Controller, Failure, Installation, Key, Manager, Next, all};
    ///
    /// async fn reconcile(_: Context<()>, _: Key) -> Result<Next, Failure> { Ok(Next::Settled) }
    ///
    /// # tokio::runtime::Runtime::new().expect("a runtime").block_on(async {
    /// let controller = Controller::new("greeting", all::<ConfigMap>()).reconcile((), reconcile);
    /// let manager = Manager::disconnected("greeting").elect_in("ops").controller(controller);
    /// let yaml = manager.manifests(&Installation::new("ops", "example.com/greeting:1.0"));
    /// assert!(yaml.contains("kind: Deployment") && yaml.contains("leases"));
    /// # });
    /// ```
    pub fn manifests(&self, installation: &Installation) -> String {
        let mut documents: Vec<String> = installation.definitions.iter().map(definition::yaml).collect();
        documents.extend(self.access(installation).documents());
        documents.push(document(&self.deployment(installation)));
        for (webhooks, address, site) in &self.webhooks {
            if let Address::Service { namespace, name, port } = &site.address {
                documents.push(document(&json!({
                    "apiVersion": "v1", "kind": "Service",
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": {
                        "selector": self.labels(),
                        "ports": [{"name": "webhooks", "port": port, "targetPort": address.port()}],
                    },
                })));
            }
            documents.extend(webhooks.configurations(&site.address).iter().map(document));
        }
        documents.join("---\n")
    }

    fn access(&self, installation: &Installation) -> Access {
        let access = Access::bare(&installation.namespace, &self.name).with_kinds(&self.declared());
        let access = self
            .election
            .iter()
            .fold(access, |access, election| access.with_rules_in(&election.namespace, lease()));
        self.webhooks.iter().fold(access, |access, (webhooks, _, site)| {
            let access = access.with_cluster_rules(webhooks.rules());
            match &site.certificates {
                Certificates::Shared { namespace, .. } => access.with_rules_in(namespace, secrets()),
                Certificates::Files(_) => access,
            }
        })
    }

    fn labels(&self) -> Value {
        json!({"app.kubernetes.io/name": self.name})
    }

    /// The ports of the container, each with a name of its own.
    fn ports(&self) -> Vec<Value> {
        let probes = self.probes.map(|address| ("probes".to_owned(), address.port()));
        let webhooks = self.webhooks.iter().enumerate().map(|(nth, (_, address, _))| match nth {
            0 => ("webhooks".to_owned(), address.port()),
            _ => (format!("webhooks-{}", nth + 1), address.port()),
        });
        let ports = probes.into_iter().chain(webhooks).filter(|(_, port)| *port != ANY_PORT);
        ports.map(|(name, port)| json!({"name": name, "containerPort": port})).collect()
    }

    fn deployment(&self, installation: &Installation) -> Value {
        let mut container = json!({
            "name": "operator", "image": installation.image,
            // Kubernetes: the Pod Security Standard "restricted" asks for these.
            "securityContext": {
                "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": true, "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        });
        let ports = self.ports();
        if !ports.is_empty() {
            container["ports"] = json!(ports);
        }
        if let Some(address) = self.probes.filter(|address| address.port() != ANY_PORT) {
            let probe = |path: &str| json!({"httpGet": {"path": path, "port": address.port()}});
            container["livenessProbe"] = probe("/healthz");
            container["readinessProbe"] = probe("/readyz");
        }
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": self.name, "namespace": installation.namespace, "labels": self.labels()},
            "spec": {
                "replicas": installation.replicas,
                "selector": {"matchLabels": self.labels()},
                "template": {
                    "metadata": {"labels": self.labels()},
                    "spec": {"serviceAccountName": self.name, "containers": [container]},
                },
            },
        })
    }
}

/// For shared certificates.
fn secrets() -> Vec<PolicyRule> {
    let verbs = ["create", "get", "update"].map(str::to_owned).to_vec();
    let (groups, resources) = (Some(vec![String::new()]), Some(vec!["secrets".to_owned()]));
    vec![PolicyRule { api_groups: groups, resources, verbs, ..PolicyRule::default() }]
}
