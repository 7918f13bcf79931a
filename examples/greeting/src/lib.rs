//! An operator: every Greeting has a ConfigMap with its text.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{CustomResource, ResourceExt};
use operator::{
    Context, Controller, Failure, Key, Next, all,
    apply::{Force, Set},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
pub struct GreetingSpec {
    /// Who is greeted.
    pub whom: String,
}

pub fn controller() -> Controller {
    Controller::new("greeting", all::<Greeting>())
        // A change of a ConfigMap that a Greeting owns wakes its owner.
        .owns(all::<ConfigMap>())
        .reconcile((), reconcile)
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    // From the cache. An object that is gone needs nothing: its children go with it.
    let Some(greeting) = context.get::<Greeting>(&key)? else { return Ok(Next::Settled) };
    let mut text = ConfigMap::default();
    text.metadata.name = Some(format!("{}-text", greeting.name_any()));
    text.data = Some([("text".to_owned(), format!("Hello, {}!", greeting.spec.whom))].into());
    // All children of the object, applied as one set: created, corrected, and pruned if they leave it.
    let mut children = Set::of(greeting.as_ref(), "greeting")?;
    children.add(text)?;
    children.apply(&context.client(), Force::No).await?;
    Ok(Next::Settled)
}
