//! Every namespace has the ConfigMap `kube-root-ca.crt` with the CA that pods trust for the API server.

use super::{create_default, is_active};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{ResourceExt, api::PostParams};
use operator::{Context, Controller, Failure, Key, Next, all, retry};
use std::collections::BTreeMap;

const NAME: &str = "kube-root-ca.crt";
const DATA_KEY: &str = "ca.crt";
const DESCRIPTION_KEY: &str = "kubernetes.io/description";
// Kubernetes: this text.
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints \
     such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of \
     Kubernetes clusters.";

pub(crate) fn controller(root_ca: String) -> Controller {
    Controller::new("root-ca-cert-publisher", all::<Namespace>())
        .watches(all::<ConfigMap>().with_fields(&format!("metadata.name={NAME}")), |map: &ConfigMap| {
            map.namespace().map(|namespace| Key::new(None, &namespace)).into_iter().collect()
        })
        .reconcile(root_ca, reconcile)
}

async fn reconcile(context: Context<String>, key: Key) -> Result<Next, Failure> {
    let Some(namespace) = context.get::<Namespace>(&key)? else { return Ok(Next::Settled) };
    if !is_active(&namespace) {
        return Ok(Next::Settled);
    }
    let own = Key::new(Some(key.name()), NAME);
    let maps = context.namespaced::<ConfigMap>(&own);
    match context.get::<ConfigMap>(&own)? {
        None => create_default(&maps, &repaired(ConfigMap::default(), context.state())).await?,
        Some(map) => {
            let repaired = repaired(ConfigMap::clone(&map), context.state());
            if repaired != *map {
                match maps.replace(NAME, &PostParams::default(), &repaired).await {
                    // Deleted meanwhile: that triggers another reconcile.
                    Err(error) if retry::is_missing(&error) => {}
                    result => drop(result?),
                }
            }
        }
    }
    Ok(Next::Settled)
}

/// The map with the data and the description that it should have.
fn repaired(mut map: ConfigMap, root_ca: &str) -> ConfigMap {
    map.metadata.name = Some(NAME.to_owned());
    map.data = Some(BTreeMap::from([(DATA_KEY.to_owned(), root_ca.to_owned())]));
    let annotations = map.metadata.annotations.get_or_insert_default();
    annotations.insert(DESCRIPTION_KEY.to_owned(), DESCRIPTION.to_owned());
    map
}
