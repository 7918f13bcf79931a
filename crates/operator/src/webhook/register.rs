//! Applies the webhook configurations, with the address and the CA bundle of the webhook server.

use super::{
    Webhooks,
    conversion::{self, ErasedConversion},
    hook::HookType,
};
use k8s_openapi::{
    ByteString,
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        rbac::v1::PolicyRule,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Resource,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;

const REGISTRATION: &str = "admissionregistration.k8s.io";

/// Where the API server reaches the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A service of the operator in the cluster.
    Service {
        /// The namespace of the service.
        namespace: String,
        /// The name of the service.
        name: String,
        /// The port of the service, usually 443.
        port: u16,
    },
    /// `https://host:port`, for an operator outside of the cluster.
    Url(String),
}

impl Address {
    /// The service of this name, at port 443.
    pub fn service(namespace: &str, name: &str) -> Address {
        Address::Service { namespace: namespace.to_owned(), name: name.to_owned(), port: 443 }
    }

    /// The DNS names or addresses that the certificate must have.
    pub(crate) fn names(&self) -> Vec<String> {
        match self {
            Address::Service { namespace, name, .. } => {
                let short = format!("{name}.{namespace}");
                vec![format!("{short}.svc"), format!("{short}.svc.cluster.local"), short]
            }
            Address::Url(url) => {
                let uri: Option<http::Uri> = url.parse().ok();
                let host = uri.as_ref().and_then(|uri| uri.host()).unwrap_or_default();
                vec![host.trim_start_matches('[').trim_end_matches(']').to_owned()]
            }
        }
    }

    /// The `clientConfig` of a webhook. Without a bundle, the one in the cluster stays.
    fn client_config(&self, path: &str, bundle: Option<&str>) -> Value {
        let mut config = match self {
            Address::Service { namespace, name, port } => {
                json!({"service": {"namespace": namespace, "name": name, "port": port, "path": path}})
            }
            Address::Url(url) => json!({"url": format!("{}{path}", url.trim_end_matches('/'))}),
        };
        if let Some(bundle) = bundle {
            config["caBundle"] = json!(ByteString(bundle.as_bytes().to_vec()));
        }
        config
    }
}

impl Webhooks {
    /// The cluster-wide RBAC rules that are needed to register these webhooks. Shared certificates also
    /// need `get`, `create` and `update` of Secrets in their namespace.
    pub fn rules(&self) -> Vec<PolicyRule> {
        let rule = |group: &str, resource: &str, verbs: &[&str]| PolicyRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            ..PolicyRule::default()
        };
        let types = [
            (HookType::Mutating, "mutatingwebhookconfigurations"),
            (HookType::Validating, "validatingwebhookconfigurations"),
        ];
        let used = types.into_iter().filter(|(hook_type, _)| self.hooks_of(*hook_type).next().is_some());
        let configurations = used.map(|(_, resource)| rule(REGISTRATION, resource, &["create", "patch"]));
        let names = self.conversions.iter().map(ErasedConversion::definition).collect::<Vec<_>>();
        let definitions = (!names.is_empty()).then(|| PolicyRule {
            resource_names: Some(names),
            ..rule("apiextensions.k8s.io", "customresourcedefinitions", &["patch"])
        });
        configurations.chain(definitions).collect()
    }

    /// Applies the configurations. Nothing is written if they are the same.
    pub(super) async fn register(
        &self,
        client: &Client,
        address: &Address,
        bundle: Option<&str>,
    ) -> Result<(), kube::Error> {
        if let Some(webhooks) = self.entries(HookType::Mutating, address, bundle) {
            self.apply::<MutatingWebhookConfiguration>(client, &self.name, webhooks).await?;
        }
        if let Some(webhooks) = self.entries(HookType::Validating, address, bundle) {
            self.apply::<ValidatingWebhookConfiguration>(client, &self.name, webhooks).await?;
        }
        for conversion in &self.conversions {
            let config = address.client_config(conversion::PATH, bundle);
            let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": config});
            let spec = json!({"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}});
            self.apply::<CustomResourceDefinition>(client, &conversion.definition(), spec).await?;
        }
        Ok(())
    }

    /// The configurations without CA bundles, which [`Webhooks::serve`] adds.
    pub(crate) fn configurations(&self, address: &Address) -> Vec<Value> {
        let types = [
            (HookType::Mutating, "MutatingWebhookConfiguration"),
            (HookType::Validating, "ValidatingWebhookConfiguration"),
        ];
        let configuration = |(hook_type, kind)| {
            let mut found = self.entries(hook_type, address, None)?;
            found["apiVersion"] = json!(format!("{REGISTRATION}/v1"));
            found["kind"] = json!(kind);
            found["metadata"] = json!({"name": self.name});
            Some(found)
        };
        types.into_iter().filter_map(configuration).collect()
    }

    fn entries(&self, hook_type: HookType, address: &Address, bundle: Option<&str>) -> Option<Value> {
        let entry = |hook: &super::Hook| hook.entry(address.client_config(&hook.path(), bundle));
        let entries: Vec<Value> = self.hooks_of(hook_type).map(entry).collect();
        (!entries.is_empty()).then(|| json!({"webhooks": entries}))
    }

    async fn apply<K>(&self, client: &Client, name: &str, mut wanted: Value) -> Result<(), kube::Error>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        wanted["apiVersion"] = json!(K::api_version(&()));
        wanted["kind"] = json!(K::kind(&()));
        wanted["metadata"] = json!({"name": name});
        let manager = format!("{}-webhooks", self.name);
        let objects: Api<K> = Api::all(client.clone());
        objects.patch(name, &PatchParams::apply(&manager).force(), &Patch::Apply(&wanted)).await.map(drop)
    }
}
