//! The pod of a Job, for one of its indexes or for none.

use super::{
    desired::{COMPLETION_INDEX, Desired, FINALIZER},
    plan::{FAILURES, IGNORED_FAILURES, NewPod},
};
use crate::pod;
use k8s_openapi::{
    api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::ResourceExt;

const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// Kubernetes: the server adds five letters to a prefix, and the host name that follows from it has 63 at most.
const LONGEST_PREFIX: usize = 58;

pub(super) fn pod(desired: &Desired<'_>, new: &NewPod, owner: OwnerReference) -> Pod {
    let job_name = desired.job.name_any();
    let mut pod = pod::from_template(&desired.spec.template, &job_name, owner);
    let finalizers = pod.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let Some(index) = new.index else { return pod };
    pod.metadata.generate_name = Some(prefix(&job_name, index));
    pod.labels_mut().insert(COMPLETION_INDEX.to_owned(), index.to_string());
    let annotations = pod.annotations_mut();
    annotations.insert(COMPLETION_INDEX.to_owned(), index.to_string());
    if let Some(failures) = new.failures {
        annotations.insert(FAILURES.to_owned(), failures.counted.to_string());
        if failures.ignored > 0 {
            annotations.insert(IGNORED_FAILURES.to_owned(), failures.ignored.to_string());
        }
    }
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{job_name}-{index}"));
    for container in spec.init_containers.iter_mut().flatten().chain(&mut spec.containers) {
        add_index_variable(container);
    }
    pod
}

fn prefix(job_name: &str, index: usize) -> String {
    let suffix = format!("-{index}-");
    let room = LONGEST_PREFIX.saturating_sub(suffix.len());
    // Names of objects are ASCII.
    format!("{}{suffix}", job_name.get(..room).unwrap_or(job_name))
}

fn add_index_variable(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field_path = format!("metadata.labels['{COMPLETION_INDEX}']");
    let field_ref = ObjectFieldSelector { field_path, ..ObjectFieldSelector::default() };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource { field_ref: Some(field_ref), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_before_the_index() {
        assert_eq!(prefix("web", 12), "web-12-");
        let long = prefix(&"a".repeat(63), 12);
        assert_eq!((long.len(), &long[50..]), (58, "aaaa-12-"));
    }
}
