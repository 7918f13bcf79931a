//! Rolls a Deployment back to an earlier revision, as its annotation asks.

use super::{
    plan::split,
    revision::{self, ROLLBACK_TO},
    template::{self, HASH_LABEL},
};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet};
use kube::ResourceExt;
use operator::event::EventType;

/// A Deployment without the annotation, and what to tell about it.
#[derive(Clone, Debug)]
pub(super) struct Rollback {
    pub(super) deployment: Deployment,
    pub(super) event_type: EventType,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// `wanted` is the revision, or zero for the last one.
pub(super) fn plan(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    sets: Vec<ReplicaSet>,
    wanted: i64,
) -> Rollback {
    let refused = |reason, message: String| Rollback {
        deployment: cleared(deployment.clone()),
        event_type: EventType::Warning,
        reason,
        message,
    };
    let (new, old) = split(spec, sets);
    // The last revision is the one before that of the template, which has a ReplicaSet or not.
    let last = match &new {
        Some(new) => revision::last_but_one(old.iter().chain([new])),
        None => revision::latest(&old),
    };
    let target = if wanted == 0 { last } else { wanted };
    if target == 0 {
        return refused("DeploymentRollbackRevisionNotFound", "Unable to find last revision.".to_owned());
    }
    let mut sets = old.iter().chain(&new);
    let Some(set) = sets.find(|set| revision::of(set) == Some(target)) else {
        let message = "Unable to find the revision to rollback to.".to_owned();
        return refused("DeploymentRollbackRevisionNotFound", message);
    };
    let name = deployment.name_any();
    let own = set.spec.as_ref().and_then(|spec| spec.template.clone()).unwrap_or_default();
    if template::is_same(&own, &spec.template) {
        let message =
            format!("The rollback revision contains the same template as current deployment {name:?}");
        return refused("DeploymentRollbackTemplateUnchanged", message);
    }
    let mut rolled_back = deployment.clone();
    rolled_back.metadata.annotations = Some(revision::restored(deployment, set));
    if let Some(spec) = &mut rolled_back.spec {
        spec.template = own;
        let labels = spec.template.metadata.as_mut().and_then(|metadata| metadata.labels.as_mut());
        labels.and_then(|labels| labels.remove(HASH_LABEL));
    }
    Rollback {
        deployment: cleared(rolled_back),
        event_type: EventType::Normal,
        reason: "DeploymentRollback",
        message: format!("Rolled back deployment {name:?} to revision {target}"),
    }
}

fn cleared(mut deployment: Deployment) -> Deployment {
    deployment.annotations_mut().remove(ROLLBACK_TO);
    deployment
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn template(image: &str) -> Value {
        json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}})
    }

    fn set(revision: i64, image: &str) -> ReplicaSet {
        let mut template = template(image);
        template["metadata"]["labels"][HASH_LABEL] = json!("x");
        let set = json!({
            "metadata": {"name": format!("web-{revision}"), "uid": revision.to_string(),
                "annotations": {revision::REVISION: revision.to_string()}},
            "spec": {"selector": {}, "template": template},
        });
        serde_json::from_value(set).unwrap()
    }

    #[test]
    fn a_rollback_restores_the_template_or_says_why_not() {
        let deployment: Deployment = serde_json::from_value(json!({
            "metadata": {"name": "web", "annotations": {ROLLBACK_TO: "0", "note": "kept"}},
            "spec": {"selector": {}, "template": template("c")},
        }))
        .unwrap();
        let sets = || vec![set(1, "a"), set(2, "b"), set(3, "c")];
        for (sets, wanted, image, reason, message) in [
            (sets(), 0, "b", "DeploymentRollback", r#"Rolled back deployment "web" to revision 2"#),
            (sets(), 1, "a", "DeploymentRollback", r#"Rolled back deployment "web" to revision 1"#),
            (
                vec![set(1, "a"), set(2, "b")],
                0,
                "b",
                "DeploymentRollback",
                r#"Rolled back deployment "web" to revision 2"#,
            ),
            (
                sets(),
                7,
                "c",
                "DeploymentRollbackRevisionNotFound",
                "Unable to find the revision to rollback to.",
            ),
            (
                vec![set(3, "c")],
                0,
                "c",
                "DeploymentRollbackRevisionNotFound",
                "Unable to find last revision.",
            ),
            (
                sets(),
                3,
                "c",
                "DeploymentRollbackTemplateUnchanged",
                r#"The rollback revision contains the same template as current deployment "web""#,
            ),
        ] {
            let found = plan(&deployment, deployment.spec.as_ref().unwrap(), sets, wanted);
            assert_eq!((found.reason, found.message.as_str()), (reason, message));
            assert!(!found.deployment.annotations().contains_key(ROLLBACK_TO), "{message}");
            let found = serde_json::to_value(found.deployment.spec.unwrap().template).unwrap();
            assert_eq!(found, template(image), "{message}");
        }
    }
}
