//! Applies YAML documents to a cluster, and waits until they have an effect.

use super::manifests::Document;
use anyhow::{Context, Result, bail};
use kube::{
    Api, Client, Config,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
    discovery::{self, Scope},
};
use std::{path::Path, time::Duration};
use world::World;

/// The owner of the fields that are applied.
const FIELD_MANAGER: &str = "setpoint";
/// How long a definition may take until its kind is served.
const ESTABLISHED_LIMIT: Duration = Duration::from_secs(30);
/// How often the cluster is asked meanwhile.
const INTERVAL: Duration = Duration::from_millis(50);

/// A client for the cluster of this kubeconfig, or else of `KUBECONFIG` or `~/.kube/config`.
pub(crate) async fn client(kubeconfig: Option<&Path>) -> Result<Client> {
    let read = || -> Result<Kubeconfig> {
        Ok(match kubeconfig {
            Some(path) => Kubeconfig::read_from(path)?,
            None => Kubeconfig::read()?,
        })
    };
    let read = read().with_context(|| match kubeconfig {
        Some(path) => {
            format!("cannot use the kubeconfig {}: `setpoint kubeconfig` prints one", path.display())
        }
        None => {
            "there is no kubeconfig: start a cluster with `setpoint up`, and name its file with --kubeconfig"
                .to_owned()
        }
    })?;
    let config = Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
    let config = config.context(
        "the kubeconfig has no usable cluster: correct its current-context, or name another file with --kubeconfig",
    )?;
    let url = config.cluster_url.to_string();
    Client::try_from(config).with_context(|| {
        format!(
            "cannot make a client for {url}: correct the certificates in the kubeconfig, or name another with \
             --kubeconfig"
        )
    })
}

/// Applies definitions, and waits until the kinds of all are served.
pub(crate) async fn install(world: &World, client: &Client, definitions: &[Document]) -> Result<()> {
    let api = definitions_api(client);
    for definition in definitions {
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api.patch(definition.name(), &parameters, &Patch::Apply(&definition.object)).await;
        applied.map_err(|error| {
            let what = format!("cannot install the definition {:?}", definition.name());
            failed(error.into(), &what, "correct the type, or use a kubeconfig that may write definitions")
        })?;
    }
    for definition in definitions {
        let name = definition.name();
        until(world, ESTABLISHED_LIMIT, async || Ok(is_established(&api.get(name).await?)))
            .await
            .with_context(|| {
                format!(
                    "the kind of {name:?} is not served: `setpoint get crd {name} -o yaml` has the reason in its \
                     conditions"
                )
            })?;
    }
    Ok(())
}

/// Deletes definitions, and with them all objects of their kinds. Returns the names of those that were there.
pub(crate) async fn uninstall(client: &Client, definitions: &[Document]) -> Result<Vec<String>> {
    let api = definitions_api(client);
    let mut deleted = Vec::new();
    for definition in definitions {
        match api.delete(definition.name(), &DeleteParams::default()).await {
            Ok(_) => deleted.push(definition.name().to_owned()),
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                let what = format!("cannot delete the definition {:?}", definition.name());
                return Err(failed(error.into(), &what, "use a kubeconfig that may, with --kubeconfig"));
            }
        }
    }
    Ok(deleted)
}

/// Applies an object of any kind; one without a namespace goes to `default`.
pub(crate) async fn apply(client: &Client, document: &Document) -> Result<Api<DynamicObject>> {
    let name = document.name();
    let put = async || -> Result<Api<DynamicObject>> {
        let kind =
            api::object::group_version_kind(&document.object).map_err(|error| anyhow::anyhow!("{error}"))?;
        let kind = GroupVersionKind::gvk(&kind.group, &kind.version, &kind.kind);
        let (resource, capabilities) = discovery::pinned_kind(client, &kind).await?;
        let namespace = document.object["metadata"]["namespace"].as_str().unwrap_or("default");
        let objects = match capabilities.scope {
            Scope::Cluster => Api::all_with(client.clone(), &resource),
            Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, &resource),
        };
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        objects.patch(name, &parameters, &Patch::Apply(&document.object)).await?;
        Ok(objects)
    };
    put().await.map_err(|error| {
        let what = format!("cannot apply {} {name:?}", document.kind());
        failed(error, &what, "correct its file in config/samples")
    })
}

/// The error of a request, with what to do if the cluster has refused it, or if there was no answer.
fn failed(error: anyhow::Error, what: &str, refused: &str) -> anyhow::Error {
    let remedy = match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(_)) | None => refused,
        Some(_) => "start the cluster of the kubeconfig, or name another with --kubeconfig",
    };
    error.context(format!("{what}: {remedy}"))
}

/// Waits until the operator has written a status about the last generation of an object.
pub(crate) async fn reconciled(
    world: &World,
    objects: &Api<DynamicObject>,
    name: &str,
    limit: Duration,
) -> Result<()> {
    until(world, limit, async || {
        let object = objects.get(name).await?;
        let observed = object.data["status"]["observedGeneration"].as_i64();
        Ok(observed.is_some() && observed == object.metadata.generation)
    })
    .await
    .with_context(|| {
        format!(
            "the operator has written no status.observedGeneration of {name:?}: see its log above, and let its reconciler \
             write this field last"
        )
    })
}

/// Asks again and again until the answer is yes.
async fn until(world: &World, limit: Duration, is_so: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let begun = world.now();
    while !is_so().await? {
        if world.now().since(begun) > limit {
            bail!("waited for {limit:?}");
        }
        world.sleep(INTERVAL).await;
    }
    Ok(())
}

fn definitions_api(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

fn is_established(definition: &DynamicObject) -> bool {
    let conditions = definition.data["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Established" && it["status"] == "True")
}
