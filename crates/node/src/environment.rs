//! The environment of a simulated container: its command, its variables, and the volumes whose files are known.

mod variables;

use crate::{
    budget::{Budget, OverBudget, STEP},
    image,
    plan::Role,
    shell::{self, Change, End, Surroundings, Texts, Variables},
    simulation::Simulation,
};
use k8s_openapi::api::core::v1::{Container, Pod, Volume};
use std::{collections::BTreeMap, ops::Bound};

/// So many earlier runs of a container are repeated to know which files they have left.
const MOST_RUNS: i32 = 20;
/// Empty in most images.
const SCRATCH: &str = "/tmp";
/// To compare the path of a file with the folder of a mount.
const COMPARE: usize = 16;

/// What a container finds in each of its runs.
#[derive(Debug)]
pub(crate) struct Environment {
    /// Its command and arguments after the expansion of `$(NAME)`.
    pub(crate) command: Vec<String>,
    variables: Variables,
    mounts: Vec<Mount>,
    /// The folders whose files are those that it has written itself.
    folders: Vec<String>,
    termination_log: String,
}

/// A volume as a container sees it.
#[derive(Debug)]
struct Mount {
    /// Where it is in the container.
    folder: String,
    /// Where it is for all containers: a folder of the node, or the name of an emptyDir of the pod.
    source: String,
    /// Another container that runs at the same time may write to it.
    is_shared: bool,
}

/// The volumes of a pod, and which of its containers use them.
#[derive(Debug, Default)]
pub(crate) struct Volumes<'a> {
    sources: BTreeMap<&'a str, String>,
    /// The first container that runs beside others and mounts a volume, and whether there are more.
    users: BTreeMap<&'a str, (&'a str, bool)>,
}

impl<'a> Volumes<'a> {
    pub(crate) fn of(pod: &'a Pod) -> Volumes<'a> {
        let mut volumes = Volumes::default();
        let Some(spec) = pod.spec.as_ref().filter(|spec| spec.volumes.is_some()) else { return volumes };
        for volume in spec.volumes.iter().flatten() {
            if let Some(source) = source(volume) {
                volumes.sources.entry(&volume.name).or_insert(source);
            }
        }
        let is_sidecar = |it: &&Container| it.restart_policy.as_deref() == Some("Always");
        let sidecars = spec.init_containers.iter().flatten().filter(is_sidecar);
        for container in sidecars.chain(&spec.containers) {
            for mount in container.volume_mounts.iter().flatten() {
                let (first, has_more) =
                    volumes.users.entry(&mount.name).or_insert((container.name.as_str(), false));
                *has_more |= *first != container.name;
            }
        }
        volumes
    }

    /// Whether a container other than this one mounts a volume and runs at the same time.
    fn is_shared(&self, volume: &str, container: &str) -> bool {
        self.users.get(volume).is_some_and(|(first, has_more)| *has_more || *first != container)
    }
}

impl Environment {
    pub(crate) fn of(
        pod: &Pod,
        container: &Container,
        volumes: &Volumes<'_>,
        budget: &Budget,
    ) -> Result<Environment, OverBudget> {
        let variables = variables::variables(pod, container, budget)?;
        let words = container.command.iter().chain(&container.args).flatten();
        let expanded = |word: &String| -> Result<String, OverBudget> {
            Ok(variables::expand(word, &variables, budget)?.unwrap_or_else(|| word.clone()))
        };
        let command = words.map(expanded).collect::<Result<Vec<_>, _>>()?;
        let mounts = mounts(container, volumes, budget)?;
        let own = mounts.iter().filter(|mount| !mount.is_shared).map(|mount| mount.folder.clone());
        let mut folders: Vec<String> = own.collect();
        if !container.volume_mounts.iter().flatten().any(|it| it.mount_path.starts_with(SCRATCH)) {
            folders.push(SCRATCH.to_owned());
        }
        let termination_log = container.termination_message_path.as_deref();
        let termination_log = termination_log.unwrap_or(shell::TERMINATION_LOG).to_owned();
        Ok(Environment { command, variables, mounts, folders, termination_log })
    }

    /// The changes of files on the node among those that the container has made.
    pub(crate) fn on_node(&self, changes: Vec<Change>, budget: &Budget) -> Result<Vec<Change>, OverBudget> {
        let mut outside = self.outside(changes, budget)?;
        outside.retain(|(_, path, _)| path.starts_with('/'));
        Ok(outside)
    }

    /// The changes of files in volumes, with their paths there.
    fn outside(&self, changes: Vec<Change>, budget: &Budget) -> Result<Vec<Change>, OverBudget> {
        budget.charge((self.mounts.len() * changes.len()).saturating_mul(COMPARE))?;
        let moved = changes.into_iter();
        Ok(moved.filter_map(|(at, path, text)| Some((at, self.path_outside(&path)?, text))).collect())
    }

    fn path_outside(&self, path: &str) -> Option<String> {
        self.mounts.iter().find_map(|mount| {
            let rest = path.strip_prefix(&mount.folder).filter(|it| it.starts_with('/'))?;
            Some(format!("{}{rest}", mount.source))
        })
    }

    /// What a run finds beside these files of the volumes.
    fn before(
        &self,
        texts: &Texts,
        has_other_variables: bool,
        seed: u64,
        budget: &Budget,
    ) -> Result<Surroundings<'_>, OverBudget> {
        budget.charge(STEP)?;
        let mut files = Texts::new();
        for mount in self.mounts.iter().filter(|_| !texts.is_empty()) {
            budget.charge(STEP)?;
            for (path, text) in
                texts.range::<str, _>((Bound::Included(mount.source.as_str()), Bound::Unbounded))
            {
                budget.charge(COMPARE)?;
                let Some(rest) = path.strip_prefix(&mount.source) else { break };
                if rest.starts_with('/') {
                    budget.charge(STEP + mount.folder.len() + path.len() + text.len())?;
                    files.insert(format!("{}{rest}", mount.folder), text.clone());
                }
            }
        }
        let (variables, folders) = (&self.variables, &self.folders[..]);
        let termination_log = &self.termination_log;
        Ok(Surroundings { variables, has_other_variables, files, folders, termination_log, seed: Some(seed) })
    }
}

/// What run number `run` of a container finds; `on_node` are the files of the node when it started.
pub(crate) fn surroundings<'s>(
    simulation: &'s Simulation<'_>,
    at: usize,
    run: i32,
    on_node: &Texts,
    budget: &Budget,
) -> Result<Surroundings<'s>, OverBudget> {
    let environment = simulation.environment(at)?;
    if environment.mounts.is_empty() {
        return before(simulation, at, run, &Texts::new(), budget);
    }
    // Files of an emptyDir: from the init containers that have ended, and from the earlier runs.
    let Left { mut texts, mut is_complete } = if on_node.is_empty() {
        let left = simulation.left_by_inits(at)?;
        budget.charge(shell::size(&left.texts))?;
        (*left).clone()
    } else {
        budget.charge(shell::size(on_node))?;
        let mut left = Left { texts: on_node.clone(), is_complete: true };
        for init in 0..at {
            left.add(simulation, init, budget)?;
        }
        left
    };
    for earlier in 0..run.min(MOST_RUNS) {
        is_complete &= replay(simulation, at, earlier, &mut texts, budget)? != End::Unknown;
    }
    let mut around = before(simulation, at, run, &texts, budget)?;
    if !is_complete || simulation.role(at) == Role::Ephemeral {
        around.folders = &[];
    }
    Ok(around)
}

/// The files that the init containers before a container leave in volumes.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    texts: Texts,
    /// There are no others.
    is_complete: bool,
}

impl Left {
    pub(crate) fn by_none() -> Left {
        Left { texts: Texts::new(), is_complete: true }
    }

    /// The same with what one more container leaves; `None` if it leaves nothing.
    pub(crate) fn with(
        &self,
        simulation: &Simulation<'_>,
        at: usize,
        budget: &Budget,
    ) -> Result<Option<Left>, OverBudget> {
        if simulation.role(at) != Role::Init || simulation.environment(at)?.mounts.is_empty() {
            return Ok(None);
        }
        budget.charge(STEP + shell::size(&self.texts))?;
        let mut left = self.clone();
        left.add(simulation, at, budget)?;
        Ok(Some(left))
    }

    /// Repeats the runs of an init container up to the one that succeeds.
    fn add(&mut self, simulation: &Simulation<'_>, at: usize, budget: &Budget) -> Result<(), OverBudget> {
        budget.charge(STEP)?;
        if simulation.role(at) != Role::Init || simulation.environment(at)?.mounts.is_empty() {
            return Ok(());
        }
        for run in 0..MOST_RUNS {
            if let End::At(_, 0) = replay(simulation, at, run, &mut self.texts, budget)? {
                return Ok(());
            }
        }
        self.is_complete = false;
        Ok(())
    }
}

/// Repeats a run for the files that it leaves.
fn replay(
    simulation: &Simulation<'_>,
    at: usize,
    run: i32,
    texts: &mut Texts,
    budget: &Budget,
) -> Result<End, OverBudget> {
    let environment = simulation.environment(at)?;
    let around = before(simulation, at, run, texts, budget)?;
    let result = shell::run_in(&environment.command, around, budget);
    let outside = environment.outside(result.changes, budget)?;
    // The files of the node are those at the start of the present run.
    apply(texts, outside.into_iter().filter(|(_, path, _)| !path.starts_with('/')));
    Ok(result.end)
}

fn before<'s>(
    simulation: &'s Simulation<'_>,
    at: usize,
    run: i32,
    texts: &Texts,
    budget: &Budget,
) -> Result<Surroundings<'s>, OverBudget> {
    let container = simulation.container(at);
    let has_other_variables = container.env_from.as_ref().is_some_and(|it| !it.is_empty());
    let uid = simulation.pod().metadata.uid.as_deref().unwrap_or_default();
    let seed = image::number(&(uid, &container.name, run));
    simulation.environment(at)?.before(texts, has_other_variables, seed, budget)
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

/// The volumes of a container whose files are known: those that are empty at first.
fn mounts(container: &Container, volumes: &Volumes<'_>, budget: &Budget) -> Result<Vec<Mount>, OverBudget> {
    let plain = container.volume_mounts.iter().flatten().filter(|it| it.sub_path_expr.is_none());
    let mut mounts = Vec::new();
    for mount in plain {
        budget.charge(STEP)?;
        let Some(source) = volumes.sources.get(mount.name.as_str()) else { continue };
        let sub_path = mount.sub_path.as_deref().unwrap_or_default().trim_matches('/');
        let slash = if sub_path.is_empty() { "" } else { "/" };
        budget.charge(source.len() + sub_path.len() + 2 * mount.mount_path.len())?;
        let source = format!("{source}{slash}{sub_path}");
        let folder = mount.mount_path.trim_end_matches('/').to_owned();
        mounts.push(Mount { folder, source, is_shared: volumes.is_shared(&mount.name, &container.name) });
    }
    Ok(mounts)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::FULL;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn pod(spec: &Value) -> Pod {
        let metadata = json!({"name": "p-0", "namespace": "a", "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    /// The exit code of a run of the last container, and what it changes on its node.
    fn outcome(pod: &Pod, run: i32, on_node: &Texts) -> (Option<i32>, Vec<Change>) {
        let simulation = Simulation::new(pod, FULL);
        let course = simulation.course(simulation.len() - 1, run, &Arc::new(on_node.clone()));
        assert!(!simulation.is_over_budget());
        (course.end.map(|(_, code)| code), course.changes.clone())
    }

    #[test]
    fn variables_in_commands_and_arguments_are_expanded() {
        let pod = pod(&json!({"containers": [{"name": "c",
            "command": ["echo", "$(A)", "$$(A)"], "args": ["$(UNSET)", "$A", "$(SECRET)", "$("],
            "env": [{"name": "A", "value": "1"},
                {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]}]}));
        let simulation = Simulation::new(&pod, FULL);
        let command = &simulation.environment(0).unwrap().command;
        assert_eq!(command[1..], ["1", "$(A)", "$(UNSET)", "$A", "$(SECRET)", "$("]);
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
