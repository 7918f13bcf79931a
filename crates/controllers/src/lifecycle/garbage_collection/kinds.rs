//! Which kinds there are: asked again whenever a CustomResourceDefinition or an APIService changes.

use super::collector::Collector;
use crate::discovery::{Discovered, discover};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use operator::{
    Context, Controller, Failure, Key, Next, all,
    queue::{Queue, Reason},
};
use std::sync::Arc;

/// There is one list of kinds, so there is one key.
const KEY: &str = "kinds";

pub(super) fn controller(collector: Arc<Collector>) -> Controller {
    // Kinds are looked for also in a cluster that has neither.
    let begin = |queue: Queue| queue.add(&Key::parse(KEY), Reason::Initial);
    Controller::of_requests::<Key>("garbage-collector-kinds")
        .watches(all::<CustomResourceDefinition>().without(&["spec", "versions", "schema"]), |_| {
            vec![Key::parse(KEY)]
        })
        .watches(all::<APIService>(), |_| vec![Key::parse(KEY)])
        .queue(begin)
        .reconcile(collector, reconcile)
}

async fn reconcile(context: Context<Arc<Collector>>, _: Key) -> Result<Next, Failure> {
    let discovered = discover(&context.client()).await?;
    let definitions = context.view::<CustomResourceDefinition>()?.list()?;
    let missing = definitions.iter().find(|definition| is_missing(definition, &discovered));
    context.state().follow(context.caches(), context.world(), discovered);
    match missing {
        // The server has reported the definition before it serves its kind.
        Some(definition) => {
            let names = &definition.spec.names;
            Err(Failure::transient(format!("{}.{} is not served yet", names.plural, definition.spec.group)))
        }
        None => Ok(Next::Settled),
    }
}

fn is_missing(definition: &CustomResourceDefinition, discovered: &Discovered) -> bool {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_established = conditions.into_iter().any(|it| it.type_ == "Established" && it.status == "True");
    let is_served = definition.spec.versions.iter().any(|version| version.served);
    let spec = &definition.spec;
    is_established && is_served && !discovered.serves(&spec.group, &spec.names.plural)
}
