//! The environment of a simulated container: its variables, and the volumes whose files are known.

use crate::{
    image,
    plan::{Role, roles},
    shell::{self, Change, End, Surroundings, Texts},
};
use k8s_openapi::api::core::v1::{Container, EnvVar, ObjectFieldSelector, Pod, Volume};
use std::collections::BTreeMap;

/// So many earlier runs of a container are repeated to know which files they have left.
const MOST_RUNS: i32 = 20;
/// Empty in most images.
const SCRATCH: &str = "/tmp";

/// A volume as a container sees it.
struct Mount {
    /// Where it is in the container.
    folder: String,
    /// Where it is for all containers: a folder of the node, or the name of an emptyDir of the pod.
    source: String,
    /// Another container that runs at the same time may write to it.
    is_shared: bool,
}

/// Where run number `run` of a container takes place; `on_node` are the files of the node when it started.
pub(crate) fn surroundings(
    pod: &Pod,
    container: &Container,
    role: Role,
    run: i32,
    on_node: &Texts,
) -> Surroundings {
    if mounts(pod, container).is_empty() {
        return before(pod, container, run, &Texts::new());
    }
    let (mut texts, mut is_complete) = (on_node.clone(), true);
    // Files of an emptyDir: from the init containers that have ended, and from the earlier runs.
    let inits = roles(pod).into_iter().take_while(|(it, _)| it.name != container.name);
    for (init, _) in inits.filter(|(_, role)| *role == Role::Init) {
        let mut ends = (0..MOST_RUNS).map(|run| replay(pod, &init, run, &mut texts));
        let has_succeeded = ends.any(|end| matches!(end, End::At(_, 0)));
        is_complete &= has_succeeded || mounts(pod, &init).is_empty();
    }
    for earlier in 0..run.min(MOST_RUNS) {
        is_complete &= replay(pod, container, earlier, &mut texts) != End::Unknown;
    }
    let mut around = before(pod, container, run, &texts);
    if !is_complete || role == Role::Ephemeral {
        around.folders.clear();
    }
    around
}

/// What a container's command is after the expansion of `$(NAME)`.
pub(crate) fn command(pod: &Pod, container: &Container) -> Vec<String> {
    let variables = variables(pod, container);
    let words = container.command.iter().chain(&container.args).flatten();
    words.map(|word| expand(word, &variables).unwrap_or_else(|| word.clone())).collect()
}

/// The changes of files on the node among those that a container has made.
pub(crate) fn on_node(pod: &Pod, container: &Container, changes: Vec<Change>) -> Vec<Change> {
    let mounts = mounts(pod, container);
    let moved = changes.into_iter().filter_map(|(at, path, text)| Some((at, outside(&mounts, &path)?, text)));
    moved.filter(|(_, path, _)| path.starts_with('/')).collect()
}

/// The folders of the node whose files a pod sees.
pub(crate) fn folders_of_node(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(source).filter(|it| it.starts_with('/')).collect()
}

/// Carries out changes of files.
pub(crate) fn apply(texts: &mut Texts, changes: impl IntoIterator<Item = Change>) {
    for (_, path, text) in changes {
        match text {
            Some(text) => texts.insert(path, text),
            None => texts.remove(&path),
        };
    }
}

/// Repeats a run for the files that it leaves.
fn replay(pod: &Pod, container: &Container, run: i32, texts: &mut Texts) -> End {
    let result = shell::run_in(&command(pod, container), &before(pod, container, run, texts));
    let mounts = mounts(pod, container);
    let moved = result.changes.into_iter().filter_map(|(at, path, text)| {
        // The files of the node are those at the start of the present run.
        let path = outside(&mounts, &path).filter(|it| !it.starts_with('/'))?;
        Some((at, path, text))
    });
    apply(texts, moved);
    result.end
}

fn before(pod: &Pod, container: &Container, run: i32, texts: &Texts) -> Surroundings {
    let (mut files, mut folders) = (Texts::new(), Vec::new());
    for mount in mounts(pod, container) {
        for (path, text) in texts {
            if let Some(rest) = path.strip_prefix(&mount.source).filter(|it| it.starts_with('/')) {
                files.insert(format!("{}{rest}", mount.folder), text.clone());
            }
        }
        if !mount.is_shared {
            folders.push(mount.folder);
        }
    }
    if !container.volume_mounts.iter().flatten().any(|it| it.mount_path.starts_with(SCRATCH)) {
        folders.push(SCRATCH.to_owned());
    }
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    Surroundings {
        variables: variables(pod, container),
        has_other_variables: container.env_from.as_ref().is_some_and(|it| !it.is_empty()),
        files,
        folders,
        seed: image::number(&(uid, &container.name, run)),
    }
}

fn outside(mounts: &[Mount], path: &str) -> Option<String> {
    mounts.iter().find_map(|mount| {
        let rest = path.strip_prefix(&mount.folder).filter(|it| it.starts_with('/'))?;
        Some(format!("{}{rest}", mount.source))
    })
}

/// The volumes of a container whose files are known: those that are empty at first.
fn mounts(pod: &Pod, container: &Container) -> Vec<Mount> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let volume = |name: &str| spec.volumes.iter().flatten().find(|it| it.name == name);
    let is_shared = |name: &str| {
        let has_it = |it: &Container| it.volume_mounts.iter().flatten().any(|mount| mount.name == name);
        let mut others = roles(pod).into_iter().filter(|(it, _)| it.name != container.name);
        others.any(|(it, role)| role != Role::Init && has_it(&it))
    };
    let plain = container.volume_mounts.iter().flatten().filter(|it| it.sub_path_expr.is_none());
    plain
        .filter_map(|it| {
            let sub_path = it.sub_path.as_deref().unwrap_or_default().trim_matches('/');
            let slash = if sub_path.is_empty() { "" } else { "/" };
            let source = format!("{}{slash}{sub_path}", source(volume(&it.name)?)?);
            let folder = it.mount_path.trim_end_matches('/').to_owned();
            Some(Mount { folder, source, is_shared: is_shared(&it.name) })
        })
        .collect()
}

/// Where the files of a volume are.
fn source(volume: &Volume) -> Option<String> {
    if volume.empty_dir.is_some() {
        return Some(volume.name.clone());
    }
    let host_path = volume.host_path.as_ref()?;
    // Other folders of a node have files that no pod has written.
    let is_made = host_path.type_.as_deref() == Some("DirectoryOrCreate");
    is_made.then(|| host_path.path.trim_end_matches('/').to_owned())
}

/// The environment of a container; a variable without a value has an unknown one.
fn variables(pod: &Pod, container: &Container) -> BTreeMap<String, Option<String>> {
    let spec = pod.spec.as_ref();
    let host = spec.and_then(|spec| spec.hostname.clone()).or_else(|| pod.metadata.name.clone());
    let mut variables = BTreeMap::from([("HOSTNAME".to_owned(), host)]);
    for EnvVar { name, value, value_from } in container.env.iter().flatten() {
        let value = match (value, value_from) {
            (_, Some(source)) => source.field_ref.as_ref().and_then(|it| field(pod, it)),
            (Some(value), None) => expand(value, &variables),
            (None, None) => Some(String::new()),
        };
        variables.insert(name.clone(), value);
    }
    variables
}

/// The field of a pod that a variable takes; addresses are not known before the pod runs.
fn field(pod: &Pod, selector: &ObjectFieldSelector) -> Option<String> {
    let (meta, spec) = (&pod.metadata, pod.spec.as_ref());
    let entry = |path: &str, map: &Option<BTreeMap<String, String>>| {
        let key = selector.field_path.strip_prefix(path)?.strip_prefix("['")?.strip_suffix("']")?;
        // Kubernetes: a missing label or annotation is an empty text.
        Some(map.as_ref().and_then(|it| it.get(key)).cloned().unwrap_or_default())
    };
    match selector.field_path.as_str() {
        "metadata.name" => meta.name.clone(),
        "metadata.namespace" => meta.namespace.clone(),
        "metadata.uid" => meta.uid.clone(),
        "spec.nodeName" => spec?.node_name.clone(),
        "spec.serviceAccountName" => spec?.service_account_name.clone(),
        _ => entry("metadata.labels", &meta.labels)
            .or_else(|| entry("metadata.annotations", &meta.annotations)),
    }
}

/// Kubernetes: `$(NAME)` is the value of a variable, `$$` is a dollar; unknown names stay as they are.
///
/// `None` if the value is not known.
fn expand(text: &str, variables: &BTreeMap<String, Option<String>>) -> Option<String> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        done.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            done.push('$');
            rest = after;
            continue;
        }
        let name = rest.strip_prefix('(').and_then(|it| it.split_once(')'));
        match name.and_then(|(name, after)| Some((variables.get(name)?, after))) {
            Some((value, after)) => {
                done.push_str(value.as_deref()?);
                rest = after;
            }
            None => done.push('$'),
        }
    }
    done.push_str(rest);
    Some(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plan::course_with, script::Script};
    use serde_json::{Value, json};

    fn pod(spec: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p-0", "namespace": "a", "uid": "u", "labels": {"app": "web"},
                "annotations": {"batch.kubernetes.io/job-completion-index": "3"}},
            "spec": spec}))
        .unwrap()
    }

    /// The exit code of a run of the last container, and what it changes on its node.
    fn outcome(pod: &Pod, run: i32, on_node: &Texts) -> (Option<i32>, Vec<Change>) {
        let (container, role) = roles(pod).pop().unwrap();
        let course = course_with(pod, &container, role, Script::default().part("c"), run, on_node);
        (course.end.map(|(_, code)| code), course.changes)
    }

    #[test]
    fn variables_come_from_values_and_fields() {
        let from = |path: &str| json!({"fieldRef": {"fieldPath": path}});
        let pod = pod(&json!({"nodeName": "n", "containers": [{"name": "c",
            "command": ["echo", "$(A)", "$$(A)", "$(UNSET)", "$A", "$(SECRET)", "$("],
            "env": [
                {"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(UNSET)"},
                {"name": "NAME", "valueFrom": from("metadata.name")},
                {"name": "NODE", "valueFrom": from("spec.nodeName")},
                {"name": "APP", "valueFrom": from("metadata.labels['app']")},
                {"name": "NONE", "valueFrom": from("metadata.labels['none']")},
                {"name": "INDEX", "valueFrom": from("metadata.annotations['batch.kubernetes.io/job-completion-index']")},
                {"name": "IP", "valueFrom": from("status.podIP")},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                {"name": "AFTER", "value": "x$(SECRET)"}]}]}));
        let (container, _) = roles(&pod).pop().unwrap();
        let found = variables(&pod, &container);
        for (name, value) in [
            ("A", Some("1")),
            ("B", Some("1-$(UNSET)")),
            ("NAME", Some("p-0")),
            ("HOSTNAME", Some("p-0")),
            ("NODE", Some("n")),
            ("APP", Some("web")),
            ("NONE", Some("")),
            ("INDEX", Some("3")),
            ("IP", None),
            ("SECRET", None),
            ("AFTER", None),
        ] {
            assert_eq!(found[name].as_deref(), value, "{name}");
        }
        assert_eq!(command(&pod, &container)[1..], ["1", "$(A)", "$(UNSET)", "$A", "$(SECRET)", "$("]);
    }

    const FAIL_ONCE: &str = "if [[ -r /data/foo ]]\nthen\n exit 0\nelse\n touch /data/foo\n exit 1\nfi";

    #[test]
    fn a_restarted_container_finds_its_files_in_an_empty_dir() {
        let mount = json!([{"name": "data", "mountPath": "/data"}]);
        let main = json!({"name": "c", "command": ["sh", "-c", FAIL_ONCE], "volumeMounts": mount});
        let volumes = json!([{"name": "data", "emptyDir": {}}]);
        let alone = pod(&json!({"restartPolicy": "OnFailure", "volumes": volumes, "containers": [main]}));
        for (run, code) in [(0, 1), (1, 0), (2, 0), (100, 0)] {
            assert_eq!(outcome(&alone, run, &Texts::new()), (Some(code), vec![]), "run {run}");
        }
        // An init container has written the file, elsewhere in its own view.
        let init = json!({"name": "i", "command": ["touch", "/init/foo"],
            "volumeMounts": [{"name": "data", "mountPath": "/init"}]});
        let with_init =
            pod(&json!({"restartPolicy": "OnFailure", "volumes": volumes, "initContainers": [init],
            "containers": [main]}));
        assert_eq!(outcome(&with_init, 0, &Texts::new()).0, Some(0));
        // Another container may write it at any time: nothing is known, and the image decides.
        let shared = pod(&json!({"restartPolicy": "Always", "volumes": volumes,
            "containers": [{"name": "other", "volumeMounts": mount}, main]}));
        assert_eq!(outcome(&shared, 0, &Texts::new()).0, None);
    }

    #[test]
    fn a_later_pod_finds_the_files_of_its_node() {
        let host = |path: &str, folder_type: &str| {
            pod(&json!({"restartPolicy": "Never",
                "volumes": [{"name": "data", "hostPath": {"path": path, "type": folder_type}}],
                "containers": [{"name": "c", "command": ["sh", "-c", FAIL_ONCE],
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}))
        };
        let made = host("/tmp/x", "DirectoryOrCreate");
        let mut node = Texts::new();
        let (code, changes) = outcome(&made, 0, &node);
        assert_eq!(code, Some(1));
        apply(&mut node, changes);
        assert_eq!(node.keys().collect::<Vec<_>>(), ["/tmp/x/foo"]);
        assert_eq!(outcome(&made, 0, &node), (Some(0), vec![]));
        assert_eq!(outcome(&host("/tmp/xy", "DirectoryOrCreate"), 0, &node).0, Some(1));
        assert_eq!(outcome(&host("/tmp/x", ""), 0, &node).0, None, "other folders of a node are unknown");
    }

    #[test]
    fn random_numbers_differ_by_pod_and_run_and_repeat() {
        let mut pod = pod(&json!({"containers": [
            {"name": "c", "command": ["sh", "-c", "exit $(( $RANDOM / 16384 ))"]}]}));
        let mut codes = Vec::new();
        for uid in ["a", "b", "c", "d"] {
            pod.metadata.uid = Some(uid.to_owned());
            let run = || (0..10).map(|run| outcome(&pod, run, &Texts::new()).0).collect::<Vec<_>>();
            assert_eq!(run(), run());
            codes.push(run());
        }
        assert!(
            codes[0] != codes[1] && codes.concat().iter().all(|it| matches!(it, Some(0 | 1))),
            "{codes:?}"
        );
        assert!(codes.concat().contains(&Some(0)) && codes.concat().contains(&Some(1)), "{codes:?}");
    }
}
