//! A pod gets the claims of its templates, and allocated claims are reserved for it once it has a node.

use super::{
    EntryClaim, MAX_RESERVED, POD_CLAIM_NAME, claim_name, claims_of, entries, is_allocated, is_owned_by,
    is_reserved_for, reserved_for,
};
use crate::{pod, status};
use k8s_openapi::{
    api::{
        core::v1::{Pod, PodResourceClaim},
        resource::v1::{ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::{
    ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use operator::{Context, Controller, Failure, Key, Next, all, cache::View, retry};
use serde_json::{Value, json};
use std::sync::Arc;

// Kubernetes: the component of its events, its field manager, and so many workers.
pub(super) const COMPONENT: &str = "resource_claim";
const FIELD_MANAGER: &str = "ResourceClaimController";
const WORKERS: usize = 50;
/// Kubernetes: with five random letters and a dash, a name then has 63 letters at most.
const MAX_GENERATED: usize = 57;

/// The indexes of pods by the keys of their claims and of their templates. All loops share the indexes of pods: the
/// names say of which claims.
const BY_CLAIM: &str = "resource-claim";
const BY_TEMPLATE: &str = "resource-claim-template";

pub(crate) fn controller() -> Controller {
    Controller::new("resourceclaim-pods", all::<Pod>())
        .index(BY_CLAIM, |pod| claims_of(pod).iter().map(Key::to_string).collect())
        .index(BY_TEMPLATE, |pod| {
            let templates =
                entries(pod).iter().filter_map(|entry| entry.resource_claim_template_name.as_deref());
            templates.map(|name| Key::new(pod.metadata.namespace.as_deref(), name).to_string()).collect()
        })
        .watches_through(all::<ResourceClaim>(), |pods, claim| indexed(pods, BY_CLAIM, &Key::of(claim)))
        .watches_through(all::<ResourceClaimTemplate>(), |pods, template| {
            indexed(pods, BY_TEMPLATE, &Key::of(template))
        })
        .workers(WORKERS)
        .reconcile((), reconcile)
        .event_component(COMPONENT)
}

fn indexed(pods: &View<Pod>, index: &str, key: &Key) -> Vec<Key> {
    let pods = pods.indexed(index, key.as_str()).unwrap_or_default();
    pods.iter().map(|pod| Key::of(&**pod)).collect()
}

/// What a pod needs for one entry of its `resourceClaims`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// The name of its claim is not in the status of the pod.
    Report(String),
    /// A claim of this template.
    Create(String),
}

async fn reconcile(context: Context<()>, key: Key) -> Result<Next, Failure> {
    let Some(pod) = context.get::<Pod>(&key)? else { return Ok(Next::Settled) };
    // A finished pod needs no claim: its own was deleted.
    if !pod::is_active(&pod) || entries(&pod).is_empty() {
        return Ok(Next::Settled);
    }
    let claims = context.view::<ResourceClaim>()?;
    let own = claims.owned_by(pod.metadata.uid.as_deref().unwrap_or_default())?;
    let mut found = Vec::new();
    for entry in entries(&pod) {
        let name = match need(&pod, entry, &own) {
            Need::Nothing => continue,
            Need::Report(name) => name,
            Need::Create(template) => create(&context, &pod, entry, &template).await?,
        };
        found.push((entry.name.clone(), name));
    }
    if !found.is_empty() {
        report(&context, &pod, &found).await?;
    }
    if !pod::node_name(&pod).is_empty() {
        reserve(&context, &pod).await?;
    }
    Ok(Next::Settled)
}

/// `own` are the claims that the pod owns.
fn need(pod: &Pod, entry: &PodResourceClaim, own: &[Arc<ResourceClaim>]) -> Need {
    let Some(template) = &entry.resource_claim_template_name else { return Need::Nothing };
    match claim_name(pod, entry) {
        EntryClaim::Given(_) | EntryClaim::NotNeeded => return Need::Nothing,
        EntryClaim::Generated(name)
            if own.iter().any(|claim| claim.name_any() == name && is_owned_by(claim, pod)) =>
        {
            return Need::Nothing;
        }
        EntryClaim::Generated(_) | EntryClaim::Missing => {}
    }
    // Made before a crash: its name is not in the status yet.
    let is_it = |claim: &&Arc<ResourceClaim>| {
        is_owned_by(claim, pod) && claim.annotations().get(POD_CLAIM_NAME) == Some(&entry.name)
    };
    match own.iter().find(is_it) {
        Some(claim) => Need::Report(claim.name_any()),
        None => Need::Create(template.clone()),
    }
}

async fn create(
    context: &Context<()>,
    pod: &Pod,
    entry: &PodResourceClaim,
    template: &str,
) -> Result<String, Failure> {
    let key = Key::of(pod);
    let failed = |problem: String| {
        let message = format!("PodResourceClaim {}: {problem}", entry.name);
        Failure::blocked("FailedResourceClaimCreation", message)
    };
    let Some(found) = context.get::<ResourceClaimTemplate>(&Key::new(key.namespace(), template))? else {
        let missing = format!("resourceclaimtemplate.resource.k8s.io \"{template}\" not found");
        return Err(failed(format!("resource claim template \"{template}\": {missing}")));
    };
    let claims = context.namespaced::<ResourceClaim>(&key);
    match claims.create(&PostParams::default(), &from_template(&found, pod, entry)).await {
        Ok(claim) => Ok(claim.name_any()),
        Err(error @ kube::Error::Api(_)) => {
            Err(failed(format!("create ResourceClaim : {}", pod::message(&error))))
        }
        Err(error) => Err(error.into()),
    }
}

fn from_template(template: &ResourceClaimTemplate, pod: &Pod, entry: &PodResourceClaim) -> ResourceClaim {
    let meta = template.spec.metadata.clone().unwrap_or_default();
    let mut annotations = meta.annotations.unwrap_or_default();
    annotations.insert(POD_CLAIM_NAME.to_owned(), entry.name.clone());
    let owner = OwnerReference {
        api_version: "v1".to_owned(),
        kind: "Pod".to_owned(),
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    let metadata = ObjectMeta {
        generate_name: Some(generate_name(&pod.name_any(), &entry.name)),
        namespace: pod.namespace(),
        owner_references: Some(vec![owner]),
        annotations: Some(annotations),
        labels: meta.labels,
        ..ObjectMeta::default()
    };
    ResourceClaim { metadata, spec: template.spec.spec.clone(), status: None }
}

/// Kubernetes: long names are both shortened by the same share.
fn generate_name(pod: &str, claim: &str) -> String {
    let whole = format!("{pod}-{claim}-");
    if whole.len() <= MAX_GENERATED {
        return whole;
    }
    let cut = |name: &str| name[..name.len() * MAX_GENERATED / whole.len()].to_owned();
    format!("{}-{}", cut(pod), cut(claim))
}

/// Writes the names of the claims into the status of the pod.
async fn report(context: &Context<()>, pod: &Pod, found: &[(String, String)]) -> Result<(), Failure> {
    let before = pod.status.as_ref().and_then(|status| status.resource_claim_statuses.as_deref());
    let kept =
        before.unwrap_or_default().iter().filter(|it| found.iter().all(|(entry, _)| *entry != it.name));
    let kept = kept.filter_map(|it| Some((it.name.as_str(), it.resource_claim_name.as_deref()?)));
    let new = found.iter().map(|(entry, name)| (entry.as_str(), name.as_str()));
    let statuses: Vec<Value> =
        kept.chain(new).map(|(entry, name)| json!({"name": entry, "resourceClaimName": name})).collect();
    let apply = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod.name_any(), "uid": pod.uid()},
        "status": {"resourceClaimStatuses": statuses}});
    let pods = context.namespaced::<Pod>(&Key::of(pod));
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    match pods.patch_status(&pod.name_any(), &parameters, &Patch::Apply(apply)).await {
        Err(error) if retry::is_missing(&error) => Ok(()),
        result => Ok(result.map(drop)?),
    }
}

/// Kubernetes: for pods that were not placed by a scheduler that reserves claims.
async fn reserve(context: &Context<()>, pod: &Pod) -> Result<(), Failure> {
    for entry in entries(pod) {
        let (name, is_generated) = match claim_name(pod, entry) {
            EntryClaim::Given(name) => (name, false),
            EntryClaim::Generated(name) => (name, true),
            EntryClaim::NotNeeded | EntryClaim::Missing => continue,
        };
        let key = Key::new(pod.metadata.namespace.as_deref(), name);
        let Some(claim) = context.get::<ResourceClaim>(&key)? else { continue };
        let is_due = is_allocated(&claim) && !is_reserved_for(&claim, pod);
        if !is_due || is_generated && !is_owned_by(&claim, pod) || reserved_for(&claim).len() >= MAX_RESERVED
        {
            continue;
        }
        let mut changed = claim.status.clone().unwrap_or_default();
        changed.reserved_for.get_or_insert_default().push(ResourceClaimConsumerReference {
            api_group: None,
            resource: "pods".to_owned(),
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
        });
        status::replace(&context.namespaced::<ResourceClaim>(&key), &*claim, &changed).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_made_once_for_each_template() {
        let claim = |name: &str, entry: &str, uid: &str| {
            let owner =
                json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": true});
            let meta =
                json!({"name": name, "annotations": {POD_CLAIM_NAME: entry}, "ownerReferences": [owner]});
            Arc::new(serde_json::from_value::<ResourceClaim>(json!({"metadata": meta, "spec": {}})).unwrap())
        };
        let from_template = json!({"name": "gpu", "resourceClaimTemplateName": "t"});
        let given = json!({"name": "gpu", "resourceClaimName": "c"});
        let (known, unneeded) =
            (json!([{"name": "gpu", "resourceClaimName": "c"}]), json!([{"name": "gpu"}]));
        let create = Need::Create("t".to_owned());
        for (entry, statuses, own, expected) in [
            (&given, json!([]), vec![], Need::Nothing),
            (&from_template, json!([]), vec![], create.clone()),
            (&from_template, json!([]), vec![claim("c", "gpu", "1")], Need::Report("c".to_owned())),
            (&from_template, json!([]), vec![claim("c", "other", "1")], create.clone()),
            (&from_template, known.clone(), vec![claim("c", "gpu", "1")], Need::Nothing),
            // The claim was deleted, or is that of an earlier pod of this name.
            (&from_template, known.clone(), vec![], create.clone()),
            (&from_template, known, vec![claim("c", "gpu", "0")], create),
            (&from_template, unneeded, vec![], Need::Nothing),
        ] {
            let pod = json!({"metadata": {"name": "web", "uid": "1"}, "spec": {"containers": [],
                "resourceClaims": [entry]}, "status": {"resourceClaimStatuses": statuses}});
            let pod: Pod = serde_json::from_value(pod).unwrap();
            assert_eq!(need(&pod, &entries(&pod)[0], &own), expected, "{entry} {statuses}");
        }
    }

    #[test]
    fn generated_names_leave_room_for_the_random_part() {
        for (pod, claim, expected) in [
            ("web", "gpu", "web-gpu-".to_owned()),
            (&*"p".repeat(60), &*"c".repeat(60), format!("{}-{}", "p".repeat(28), "c".repeat(28))),
        ] {
            assert_eq!(generate_name(pod, claim), expected);
        }
    }
}
